"""What is done with a block, where it lies: its labels profiled, its features sketched, all of it binned.

Results of blocks are put together here, too. They come out the same however examples are divided into blocks: weights
are added up in fixed point, and who is looked at depends on the numbers of examples alone.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.binned import LARGEST, OTHER, find_edges, list_sampled, number_values, pick_common
from pyboomer.columns.gaps import Ends, find_ends
from pyboomer.data.class_weight import weigh_classes
from pyboomer.data.examples import Examples, count_nonzero, read_examples
from pyboomer.data.labels import LabelFormat, read_labels
from pyboomer.data.tables import Features, Table, read_table
from pyboomer.data.targets import TargetFormat
from pyboomer.engine.cluster.task import Block
from pyboomer.engine.fixed import choose_unit, fix_values
from pyboomer.learning.training import in_units, take_targets
from pyboomer.predicting.decoding import group_equal, pack_bits
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.schema import Schema

MOST_ROWS = 2**22  # of different labels and weights of labels


def named(work: Callable[..., Any]) -> Callable[..., Any]:
    """Let errors say which block they are about: what is done takes its name first."""

    @wraps(work)
    def call(name: str, *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{name}: {error}") from None

    return call


# --- Labels -----------------------------------------------------------------------------------------------------------


class Kinds(NamedTuple):
    """Examples by their labels: one for all that have the same, and the same weights of labels."""

    Y: NDArray[Any]  # (V, K): 0 and 1; or (V, 1), classes
    label_weight: Array | None  # (V, K)
    weight: NDArray[np.int64]  # in units
    largest: Array  # the weight of the heaviest one
    times: NDArray[np.int64]  # how often they occur
    first: NDArray[np.int64]  # the number of the first one


class Profile(NamedTuple):
    """What is known of the labels and weights of some examples."""

    label_format: LabelFormat | TargetFormat
    n: int  # examples that count
    absent: NDArray[np.uint8] | None  # bits of the rows of a block that do not, if there are any
    weight: int  # in units
    largest: float  # weight
    known: NDArray[np.bool_]  # (K,): whether any target is
    moments: Array  # of targets: how many there are, their sum, the sum of the squares of their distances to the mean


def measure_weights(weight: Any) -> tuple[int, float]:
    """How many rows there are in a block of weights, and the largest one."""
    values = np.asarray(weight, dtype=np.float64)
    return len(values), float(values.max(initial=0.0)) if values.ndim == 1 else 1.0


@named
def profile_block(
    y: Any, weight: Any, read_y: Callable[[Any], Any], unit: float, number: int
) -> tuple[Profile | None, Kinds | None]:
    """Look at the labels of a block, whose number is `number`; there is nothing to tell of one without rows."""
    if y.shape[0] == 0:
        return None, None
    labels = read_y(y)
    n, k = labels.values.shape
    examples = _read_present(np.zeros((n, 1)), labels, weight)
    if examples is None:
        nothing = np.packbits(np.ones(n, dtype=bool))
        return Profile(labels.label_format, 0, nothing, 0, 0.0, np.zeros(k, dtype=bool), np.zeros(3)), None
    absent = None
    if len(examples.Y) < n:
        marked = np.arange(n, dtype=np.float64)[:, None]
        present = _read_present(marked, labels, weight)
        assert present is not None
        absent = np.packbits(~np.isin(np.arange(n), present.matrix[:, 0]))
    whole = fix_values(examples.weight, unit)
    known = np.ones(k, dtype=bool)
    if examples.label_weight is not None:
        known = np.asarray(examples.label_weight.any(axis=0))
    moments, kinds = np.zeros(3), None
    if isinstance(labels.label_format, TargetFormat):
        moments = np.array([examples.Y.size, examples.Y.sum(), examples.Y.size * examples.Y.var()])
    else:
        kinds = _list_kinds(examples, labels.label_format, whole, number)
    largest = float(examples.weight.max())
    return Profile(labels.label_format, len(examples.Y), absent, int(whole.sum()), largest, known, moments), kinds


def _read_present(matrix: Any, labels: Any, weight: Any) -> Examples | None:
    """The examples of a block that count; None if there are none, which is no fault of a block."""
    given = None if weight is None else np.asarray(weight, dtype=np.float64)
    if given is not None and not (given > 0).any():
        return None
    if labels.known is not None:
        counts = labels.known if given is None else labels.known & ((given if given.ndim > 1 else given[:, None]) > 0)
        if not counts.any():
            return None
    return read_examples(matrix, labels, weight)


def _list_kinds(examples: Examples, label_format: LabelFormat, whole: NDArray[np.int64], number: int) -> Kinds:
    """The kinds of a block: those of its examples, each of which is one."""
    Y, n = examples.Y, len(examples.Y)
    each = Kinds(Y, examples.label_weight, whole, examples.weight, np.ones(n, np.int64), np.arange(n) + (number << 40))
    kinds = merge_kinds([each])
    assert kinds is not None
    classes = label_format.classes
    if classes is None:
        return kinds
    return kinds._replace(Y=classes[kinds.Y[:, 0] if Y.shape[1] == 1 else kinds.Y.argmax(axis=1)][:, None])


def _pack(Y: NDArray[Any], label_weight: Array | None) -> NDArray[np.uint64]:
    """Labels and their weights as words, so that what is equal can be found quickly."""
    if Y.dtype == object:  # classes
        names = {name: i for i, name in enumerate(sorted(set(Y[:, 0].tolist())))}
        return np.array([[names[name] for name in Y[:, 0].tolist()]], dtype=np.uint64)
    if Y.dtype != np.uint8 or (Y > 1).any():
        return np.unique(Y[:, 0], return_inverse=True)[1].astype(np.uint64)[None]
    words = pack_bits(Y)
    if label_weight is None:
        return words
    return np.vstack([words, np.ascontiguousarray(label_weight).view(np.uint64).T])


def merge_kinds(blocks: Sequence[Kinds | None]) -> Kinds | None:
    """Those of several blocks, in the order in which they are first seen; None if there are none."""
    parts = [part for part in blocks if part is not None]
    if not parts:
        return None
    Y = np.concatenate([part.Y for part in parts])
    label_weight = None
    if any(part.label_weight is not None for part in parts):
        each = [np.ones(part.Y.shape) if part.label_weight is None else part.label_weight for part in parts]
        label_weight = np.concatenate(each)
    weight, largest, times, first = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("weight", "largest", "times", "first")
    )
    kept, group = group_equal(_pack(Y, label_weight))
    size = len(kept)
    if size > MOST_ROWS:
        raise ValueError(
            f"there are {size:,} different rows of labels and their weights, at most {MOST_ROWS:,} can be looked at in "
            "one place: give weights per example, of shape (N,)"
        )
    total, often = np.zeros((2, size), dtype=np.int64)
    most, earliest = np.zeros(size), np.full(size, np.iinfo(np.int64).max)
    np.add.at(total, group, weight)
    np.add.at(often, group, times)
    np.maximum.at(most, group, largest)
    np.minimum.at(earliest, group, first)
    order = np.argsort(earliest)
    some = None if label_weight is None else label_weight[kept[order]]
    return Kinds(Y[kept[order]], some, total[order], most[order], often[order], earliest[order])


def merge_formats(formats: Sequence[Any]) -> Any:
    """The format of all labels; of classes, each block may have some."""
    first = formats[0]
    if isinstance(first, TargetFormat) or first.classes is None:
        for other in formats:
            if not isinstance(first, TargetFormat) and (other.classes is not None):
                raise ValueError("y has one column, which is 0 and 1 in some blocks only: pass it with one dimension")
            if other.names != first.names:
                raise ValueError(f"blocks of y must have the same columns, got {first.names} and {other.names}")
        return first
    return read_labels(np.concatenate([np.unique(other.classes) for other in formats])).label_format


# --- Features ---------------------------------------------------------------------------------------------------------


class Sketch(NamedTuple):
    """What is known of the features of a block."""

    schema: Schema
    features: Features
    filled: int  # how many values are not 0
    sample: Array  # some examples


@named
def sketch_block(X: Any, absent: Any, first: int, n: int, read_X: Callable[[Any], Table]) -> Sketch:
    """Read the features of a block, whose first example has the number `first` of n."""
    matrix, schema, features = read_X(X)
    rows = list_present(absent, matrix.shape[0])
    filled = count_nonzero(matrix if absent is None else matrix[rows], schema.categories)
    rows = rows[list_sampled(first, len(rows), n)]
    sample = matrix.tocsr()[rows].toarray() if sp.issparse(matrix) else matrix[rows]
    return Sketch(schema, features, filled, sample)


def list_present(absent: NDArray[np.uint8] | None, n: int) -> NDArray[np.int64]:
    """The rows of a block that count."""
    return np.arange(n) if absent is None else np.flatnonzero(np.unpackbits(absent, count=n) == 0)


def merge_schemas(schemas: Sequence[Schema]) -> Schema:
    """The features of all blocks: a nominal one has the categories of all."""
    schema = schemas[0]
    categories: dict[int, tuple[Any, ...]] = {}
    for other in schemas:
        if other.names != schema.names:
            raise ValueError(f"blocks of X must have the same columns, got {schema.names} and {other.names}")
        for f, own in other.categories.items():
            if f in schema.ordinal and categories.get(f, own) != own:
                raise ValueError(
                    f"levels of feature {schema.names[f]!r} differ between blocks: {own} and {categories[f]}"
                )
            categories[f] = own if f in schema.ordinal else (*categories.get(f, ()), *own)
    try:
        for f in set(categories) - set(schema.ordinal):
            categories[f] = tuple(sorted(set(categories[f])))
    except TypeError:
        raise ValueError(
            f"feature {schema.names[f]!r} is of numbers in some blocks and of text in others: turn it all into text"
        ) from None
    return Schema(schema.names, dict(sorted(categories.items())), schema.ordinal)


def find_sample_edges(samples: Sequence[Array], nominal: Sequence[int], max_bins: int) -> list[Array]:
    """What separates the bins of some features, given samples in the order of the examples."""
    sample = np.concatenate(samples)
    return [
        np.empty(0) if f in nominal else find_edges(np.ascontiguousarray(sample[:, f]), max_bins)
        for f in range(sample.shape[1])
    ]


@named
def count_categories(X: Any, absent: Any, table: Table, some: Sequence[int]) -> list[NDArray[Any]]:
    """How often each category of some features occurs in a block."""
    _, schema, features = table
    matrix = read_table(X, schema, features)
    rows = list_present(absent, matrix.shape[0])
    columns = [_take_column(matrix, f, schema)[rows] for f in some]
    return [
        np.bincount(column[~np.isnan(column)].astype(np.int64), minlength=len(schema.categories[f]))
        for f, column in zip(some, columns, strict=True)
    ]


def choose_common(counts: NDArray[np.int64]) -> Array:
    """The categories that have a bin of their own, given how often each occurs."""
    present = np.flatnonzero(counts)
    return pick_common(present.astype(np.float64), counts[present], OTHER)


def list_crowded(schema: Schema) -> list[int]:
    """Nominal features of more categories than a byte can tell apart."""
    return [f for f in schema.nominal if len(schema.categories[f]) > LARGEST]


# --- All of it --------------------------------------------------------------------------------------------------------


class Reading(NamedTuple):
    """What all blocks are read by."""

    table: Table  # without values
    label_format: LabelFormat | TargetFormat
    class_weight: Any
    edges: tuple[Array, ...]
    scale: float  # of targets
    past: RuleEnsemble | None
    n_before: int = 0  # rules of the past that had been learned when the round began that is to be gone on with


@named
def encode_block(X: Any, y: Any, weight: Any, first: int, reading: Reading, held_out: bool) -> tuple[Block, Ends]:
    """Bin the examples of a block that count, and read their labels; classes have no weights if they are held out."""
    (_, schema, features), label_format, class_weight, edges, scale, past, n_before = reading
    labels = label_format.read(y)
    examples = _read_present(read_table(X, schema, features), labels, weight)
    assert examples is not None
    matrix = examples.matrix
    examples = examples._replace(matrix=None)
    if not held_out:
        _refuse_mixtures(matrix, schema)
        examples = weigh_classes(examples, class_weight, label_format)
    n = len(examples.Y)
    codes = np.empty((len(schema.names), n), dtype=np.uint8)
    ends = Ends(*np.full((2, len(schema.names), 256), np.nan))
    for f in range(len(schema.names)):
        column = _take_column(matrix, f, schema)
        number_values(column, f in schema.nominal, edges[f], codes[f])
        own = find_ends(column[:, None], codes[f : f + 1], np.zeros(1, dtype=np.int32))
        ends.lowest[f], ends.highest[f] = own.lowest[0], own.highest[0]
    scores = before = None
    if past is not None:
        scores = np.zeros(examples.Y.shape)
        add_scores(in_units(past[:n_before], scale), matrix, scores)
        if n_before < len(past):
            before = scores.copy()
            add_scores(in_units(past[n_before:], scale), matrix, scores)
    Y, weight, label_weight = take_targets(examples, scale)
    return Block(first, codes, Y, None if (weight == 1).all() else weight, label_weight, scores, before), ends


def _refuse_mixtures(matrix: Any, schema: Schema) -> None:
    """Refuse numbers where other blocks have text, which are no categories."""
    for f, categories in schema.nominal.items():
        if not sp.issparse(matrix) and (matrix[:, f] == len(categories)).any():
            raise ValueError(
                f"feature {schema.names[f]!r} is of numbers here and of text in other blocks: turn it all into text"
            )


def _take_column(matrix: Any, f: int, schema: Schema) -> Array:
    """A column of a matrix, dense; of a sparse one, values become category codes."""
    if not sp.issparse(matrix):
        return np.ascontiguousarray(matrix[:, f])
    from pyboomer.columns.categories import encode_values

    column = matrix[:, [f]].toarray().ravel()
    return encode_values(column, np.array(schema.categories[f], dtype=np.float64)) if f in schema.nominal else column


def merge_ends(parts: Sequence[Ends]) -> Ends:
    """The ends of bins over several blocks."""
    lowest = np.fmin.reduce([part.lowest for part in parts])
    return Ends(lowest, np.fmax.reduce([part.highest for part in parts]))


def choose_weight_unit(measured: Sequence[tuple[int, float]]) -> float:
    """The unit that weights are added up in."""
    largest = max(weight for _, weight in measured)
    return choose_unit(largest, largest * sum(n for n, _ in measured))
