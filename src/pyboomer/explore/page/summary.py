"""A summary is what a page shows of a model, as plain values that JSON can hold: rules, data, curves, how to decode.

Numbers that scores depend on are packed without loss, so that whoever reads the summary computes exactly the scores of
the model. Of the data it has as many examples as are asked for, drawn at random; histograms are those of all examples.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.data.examples import read_examples
from pyboomer.data.labels import Labels
from pyboomer.data.targets import Targets
from pyboomer.explore.dependence import label_dependence
from pyboomer.explore.judging import make_judge
from pyboomer.explore.page.packing import pack
from pyboomer.explore.page.recipe import describe_decoding
from pyboomer.explore.shapes.steps import list_columns
from pyboomer.learning.fitted import FittedModel
from pyboomer.losses import Loss
from pyboomer.predicting.decision import Decision
from pyboomer.rules.ensemble import RuleEnsemble

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator

SEED = 1  # of the examples drawn
MOST_TEXT = 1_600_000  # characters that the features of the examples shown may take
MOST_CURVE = 1000  # examples that the curves are computed on
MOST_DECODING = 4e8  # multiplications to decode them at one point of a curve
CURVE_POINTS = 24
N_BINS = 30
LARGEST_HALF = 2.0**51  # beyond, there are no halves between whole numbers
MOST_CATEGORIES = 30  # bars of a nominal feature
MOST_FRIENDS = 5  # labels that a label goes with, and as many that it is set against
UNKNOWN = 2  # a truth that is neither 0 nor 1
METRIC_TITLES = {
    "labels": {"hamming_loss": "Hamming loss", "subset_zero_one_loss": "subset 0/1 loss"},
    "classes": {"subset_zero_one_loss": "wrong classes"},
}
PIXEL = re.compile(r"pixel_([0-9]{1,2})_([0-9]{1,2})")


Truth = Labels | Targets


class Data(NamedTuple):
    """The examples to show a model on: features as the rules read them, and the truth, if it is known."""

    matrix: Matrix
    truth: Truth | None

    def take(self, rows: NDArray[np.int64]) -> "Data":
        """Some of the examples."""
        if self.truth is None:
            return Data(self.matrix[rows], None)
        known = None if self.truth.known is None else self.truth.known[rows]
        values: Any = self.truth.values[rows]
        return Data(self.matrix[rows], self.truth._replace(values=values, known=known))


def summarise(
    model: "RuleEstimator", X: Any = None, y: Any = None, *, max_examples: int = 200, title: str | None = None
) -> dict[str, Any]:
    """Say all that a page shows of a fitted model, and of examples, if there are any.

    Parameters
    ----------
    model : BoomerClassifier or BoomerRegressor
    X : array, sparse matrix or DataFrame of shape (N, L), optional
        Examples, as `predict` takes them.
    y : array, sparse matrix or DataFrame, optional
        Their labels or targets, as `fit` takes them; NaN for an unknown one.
    max_examples : int, default=200
        How many of the examples, drawn at random, are part of the summary. Fewer are, if they have very many features.
    title : str, optional
    """
    fitted = model.get_fitted()
    if isinstance(max_examples, bool) or not isinstance(max_examples, int | np.integer) or max_examples < 0:
        raise ValueError(f"max_examples must be a whole number of at least 0, got {max_examples!r}")
    if X is None and y is not None:
        raise ValueError("y is given without X: the labels of which examples?")
    data = None if X is None else _read_data(fitted, X, y)
    rules, decision = fitted.rules, fitted.decision
    image = find_image(rules.feature_names)
    shown = (np.arange(len(rules.feature_names)) if image else np.unique(rules.condition_features)).astype(np.int64)
    kind = find_kind(decision)
    return {
        "title": _name_subject(rules.label_names) if title is None else str(title),
        "kind": kind,
        "objective": decision.loss.name,
        "decoding": describe_decoding(model),
        "parameters": list(_list_parameters(model)),
        "training": {str(name): _plain_fact(value) for name, value in model.training_facts_.items()},
        "labels": {
            "names": list(rules.label_names),
            "relevant": None if data is None or kind == "numbers" else _count_relevant(data.truth),
            "friends": _find_friends(model, X) if kind != "classes" else [],
        },
        "features": _describe_features(rules, shown, data),
        "rules": _pack_rules(rules, shown),
        "data": None if data is None else _describe_data(data),
        "examples": None if data is None else _pack_examples(rules, shown, data, max_examples),
        "curves": [curve for curve in _draw_curves(model, data) if curve["values"]],
        "image": image,
        "segments": image is not None and rules.label_names == tuple("abcdefg"),
    }


def find_kind(decision: Decision) -> str:
    """What a model predicts: "labels", "classes" (one of them per example) or "numbers"."""
    return {"numbers": "numbers", "class": "classes"}.get(decision.rule, "labels")


def _read_data(fitted: FittedModel, X: Any, y: Any) -> Data:
    matrix = fitted.read_matrix(X)
    truth = None if y is None else fitted.label_format.read(y)
    if truth is not None and len(truth.values) != matrix.shape[0]:
        raise ValueError(f"X has {matrix.shape[0]} examples, but y has {len(truth.values)}")
    if matrix.shape[0] == 0:
        raise ValueError("X has no examples")
    return Data(matrix, truth)


def find_image(names: tuple[str, ...]) -> dict[str, int] | None:
    """The size of the picture that features of the names `pixel_row_column`, in this order, are; None if it is none."""
    last = PIXEL.fullmatch(names[-1])
    if last is None:
        return None
    height, width = int(last[1]) + 1, int(last[2]) + 1
    expected = tuple(f"pixel_{r}_{c}" for r in range(height) for c in range(width))
    return {"height": height, "width": width} if names == expected else None


def _name_subject(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3])
    return f"Rules about {shown} and {len(names) - 3} more" if len(names) > 3 else f"Rules about {shown}"


# --- Numbers ----------------------------------------------------------------------------------------------------------


def _pack_rules(rules: RuleEnsemble, shown: NDArray[np.int64]) -> dict[str, Any]:
    """The arrays of the rules; features are counted among those shown."""
    names = (
        *("condition_offsets", "condition_operators", "condition_values", "condition_digits"),
        *("head_offsets", "head_labels", "head_scores", "coverage", "gain"),
    )
    features = np.searchsorted(shown, rules.condition_features)
    return {name: pack(getattr(rules, name)) for name in names} | {"condition_features": pack(features)}


def _pack_examples(rules: RuleEnsemble, shown: NDArray[np.int64], data: Data, most: int) -> dict[str, Any]:
    rows = draw_rows(data.matrix.shape[0], int(most))
    columns = [pack(column) for column in list_columns(rules.schema, shown, data.matrix[rows])]
    size = sum(len(column["data"]) for column in columns)
    if size > MOST_TEXT:
        rows = draw_rows(data.matrix.shape[0], max(1, len(rows) * MOST_TEXT // size))
        columns = [pack(column) for column in list_columns(rules.schema, shown, data.matrix[rows])]
    truth = data.take(rows).truth
    packed = None
    if truth is not None:
        unknown: Any = np.nan if isinstance(truth, Targets) else UNKNOWN
        packed = pack(truth.values if truth.known is None else np.where(truth.known, truth.values, unknown))
    return {"rows": rows.tolist(), "columns": columns, "truth": packed}


def draw_rows(n: int, most: int) -> NDArray[np.int64]:
    """Up to so many of n rows, at random, ascending; always the same ones."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(SEED).choice(n, most, replace=False))


# --- Data -------------------------------------------------------------------------------------------------------------


def _describe_data(data: Data) -> dict[str, Any]:
    stored = data.matrix.data if sp.issparse(data.matrix) else data.matrix
    truth = data.truth
    n = data.matrix.shape[0]
    figures = {
        "examples": n,
        "measured": 0 if truth is None else min(n, MOST_CURVE),
        "missing_values": int(np.isnan(stored).sum()),
    }
    if isinstance(truth, Labels):
        unknown = 0 if truth.known is None else int((~truth.known).sum())
        figures |= {"unknown_labels": unknown, "relevant_labels": int(truth.values.sum(dtype=np.int64))}
    return figures


def _count_relevant(truth: Truth | None) -> list[int] | None:
    return None if truth is None else truth.values.sum(axis=0, dtype=np.int64).tolist()


def _find_friends(model: "RuleEstimator", X: Any) -> list[list[tuple[int, float]]]:
    """The labels that each label depends on: in the predictions for the examples or, without them, in the heads."""
    rules = model.rules_
    if X is None and (np.diff(rules.head_offsets)[1:] <= 1).all():
        return []
    dependence = label_dependence(model, X)
    return [dependence.find_friends(k, MOST_FRIENDS) for k in range(len(rules.label_names))]


def _describe_features(rules: RuleEnsemble, shown: NDArray[np.int64], data: Data | None) -> dict[str, Any]:
    """Names of the features shown, their histograms, and the names of the categories that appear anywhere."""
    histograms, categories = [], {}
    mentioned = _find_mentioned(rules)
    columns = [None] * len(shown) if data is None else list_columns(rules.schema, shown, data.matrix)
    for i, (feature, column) in enumerate(zip(shown.tolist(), columns, strict=True)):
        if feature not in rules.categories:
            histograms.append(None if column is None else _count_numbers(column))
            continue
        counts = None if column is None else _count_categories(column, rules.categories[feature])
        histograms.append(counts)
        # an identifier may have more categories than a page has room for
        codes = mentioned.get(feature, set()) | set((counts or {"counts": {}})["counts"])
        if rules.schema.is_ordinal(feature):
            codes |= set(range(len(rules.categories[feature])))
        categories[i] = {code: str(rules.categories[feature][code]) for code in sorted(codes)}
    return {
        "names": [rules.feature_names[feature] for feature in shown.tolist()],
        "total": len(rules.feature_names),
        "categories": categories,
        "ordinal": [i for i, feature in enumerate(shown.tolist()) if rules.schema.is_ordinal(feature)],
        "histograms": histograms,
    }


def _find_mentioned(rules: RuleEnsemble) -> dict[int, set[int]]:
    """The categories, as codes, that conditions on each nominal feature mention."""
    mentioned: dict[int, set[int]] = {}
    conditions = zip(rules.condition_features.tolist(), rules.condition_values.tolist(), strict=True)
    for feature, value in conditions:
        if feature in rules.categories:
            mentioned.setdefault(feature, set()).add(int(value))
    return mentioned


def _count_numbers(column: Array) -> dict[str, Any]:
    present = column[~np.isnan(column)]
    if len(present) == 0:
        return {"low": None, "high": None, "counts": [], "missing": len(column)}
    low, high = float(present.min()), float(present.max())
    distinct = np.unique(present[:10_000])
    whole = bool((distinct == np.floor(distinct)).all()) and max(-low, high) < LARGEST_HALF
    few = whole and len(distinct) <= N_BINS and high - low < N_BINS
    if few:  # whole numbers: a bar each, in the middle of which they lie
        low, high = low - 0.5, high + 0.5
    bins = int(high - low) if few else N_BINS
    span = high / 2 - low / 2  # the distance of the largest numbers is infinite
    scaled = np.zeros(len(present)) if span == 0 else (present / 2 - low / 2) / span * bins
    counts = np.bincount(np.minimum(scaled.astype(np.int64), bins - 1), minlength=bins)
    return {"low": low, "high": high, "counts": counts.tolist(), "missing": len(column) - len(present)}


def _count_categories(column: Array, categories: tuple[Any, ...]) -> dict[str, Any]:
    present = column[~np.isnan(column)].astype(np.int64)
    counts = np.bincount(present, minlength=len(categories) + 1)
    frequent = np.argsort(-counts[: len(categories)], kind="stable")[:MOST_CATEGORIES]
    return {
        "counts": {code: int(counts[code]) for code in sorted(frequent.tolist()) if counts[code]},
        "others": int(counts.sum() - counts[frequent].sum()),
        "missing": len(column) - len(present),
    }


# --- Parameters and curves --------------------------------------------------------------------------------------------


def _list_parameters(model: "RuleEstimator") -> Iterator[dict[str, Any]]:
    for parameter in model.parameter_table:
        value = getattr(model, parameter.name)
        shown = value.name if isinstance(value, Loss) else _describe_value(value)
        changed = shown != _describe_value(parameter.default)
        yield {"name": parameter.name, "value": shown, "changed": changed, "meaning": parameter.meaning}


def _plain_fact(value: Any) -> Any:
    """A fact of training as JSON can hold it, which has no word for infinity."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    return value if isinstance(value, float) and np.isfinite(value) else str(value)


def _describe_value(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _draw_curves(model: "RuleEstimator", data: Data | None) -> Iterator[dict[str, Any]]:
    """What changes with the number of rules: losses and measures where there is a truth, else the gain."""
    rules = model.rules_
    counts = np.unique(np.geomspace(1, len(rules), CURVE_POINTS).round().astype(np.int64)).tolist()
    if data is not None and data.truth is not None:
        rows = draw_rows(data.matrix.shape[0], MOST_CURVE)
        yield from _measure(model, data.take(rows), counts)
    elif rules.gain[1:].sum() > 0:
        shares = np.cumsum(np.append(0.0, rules.gain[1:])) / rules.gain[1:].sum()
        yield _curve("share of the gain", counts, [float(shares[n - 1]) for n in counts])
    points = getattr(model, "validation_curve_", None)
    if points:
        by_loss = isinstance(model.scoring, str) and model.scoring == "loss"
        name = "loss, held out in training" if by_loss else "score, held out in training"
        values = [-score if by_loss else score for _, score in points]
        yield _curve(name, [n for n, _ in points], values)


def _curve(name: str, counts: list[int], values: list[float]) -> dict[str, Any]:
    kept = [(int(n), float(value)) for n, value in zip(counts, values, strict=True) if np.isfinite(value)]
    return {"name": name, "n_rules": [n for n, _ in kept], "values": [value for _, value in kept]}


def _measure(model: Any, data: Data, counts: list[int]) -> Iterator[dict[str, Any]]:
    """The loss after each number of rules and, where decoding does not take too long, the measures of the paper."""
    truth = data.truth
    assert truth is not None
    if truth.known is not None and not truth.known.any():
        return
    fitted = model.get_fitted()
    examples, decision = read_examples(data.matrix, truth, None), fitted.decision
    names = {"loss": "mean loss"}
    if len(examples.Y) * _count_operations(model, decision) <= MOST_DECODING:
        names |= METRIC_TITLES.get(find_kind(decision), {})
    judges = [make_judge(model, name, examples) for name in names]
    stages = fitted.stage_scores(examples.matrix, counts)
    points = np.array([[judge.rate(scores) for judge in judges] for scores in stages])
    for i, title in enumerate(names.values()):
        yield _curve(title, counts, points[:, i].tolist())


def _count_operations(model: Any, decision: Decision) -> float:
    """About how many multiplications it takes to decode the scores of an example."""
    n_labels = len(model.label_names_)
    if find_kind(decision) != "labels":
        return float(n_labels)
    if decision.rule == "f1":
        return float(n_labels) ** 3
    return float(n_labels * max(len(model.label_vectors_), 1))
