"""Training is one run of Algorithm 1: rules are learned chunk by chunk, watched, and kept whatever ends it.

Between two chunks, held-out examples are evaluated, progress is shown, callbacks are called and Ctrl-C is looked for.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.columns.binned import bin_columns, count_bins
from pyboomer.columns.device import DeviceMatrix, bin_device_matrix
from pyboomer.columns.gaps import round_thresholds
from pyboomer.columns.sorted import sort_columns
from pyboomer.columns.sparse import sort_stored
from pyboomer.engine.choice import choose_device, make_engine
from pyboomer.engine.promise import Chunk, Engine, Settings, Task
from pyboomer.engine.sampling import NO_STRATA, NOTHING, Strata
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.learning.stopping import Validation
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.ensemble import RuleEnsemble, join_rules
from pyboomer.rules.schema import Schema

CHUNK_SECONDS = 0.1  # how long compiled code may run before Python looks for Ctrl-C and moves the progress bar
FIRST_LOOK = 32  # rules, after which the training loss is looked at first; then whenever there are twice as many


@dataclass(frozen=True)
class Progress:
    """What a callback gets: the number of rules so far, the seconds, the mean training loss, the validation score.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier, Progress
    >>> from pyboomer.datasets import load_dataset
    >>> def is_enough(progress: Progress) -> bool:
    ...     return progress.n_rules >= 20
    ...
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(callbacks=is_enough, random_state=1).fit(digits.X, digits.Y)
    >>> len(clf.rules_)
    20
    """

    n_rules: int
    seconds: float
    loss: float
    validation_score: float | None = None


@dataclass
class Watch:
    """Who watches training, and may end it."""

    interrupt: DeferredInterrupt
    callbacks: Sequence[Callable[[Progress], Any]] = ()
    verbose: bool = False
    begin: float = field(default_factory=time.perf_counter)
    chunk_seconds: float = CHUNK_SECONDS


class Lesson(NamedTuple):
    """What rules are learned from: examples as losses take them, and what features and labels are called."""

    matrix: Matrix
    Y: NDArray[Any]  # (N, K): -1 and +1 (int8), or targets (float64)
    weight: Array  # (N,)
    label_weight: Array | None  # (N, K); None if all labels are known and have weight 1
    schema: Schema
    label_names: tuple[str, ...]
    strata: Strata = NO_STRATA
    fixed_features: NDArray[np.int64] = NOTHING
    scale: float = 1.0  # the unit in which targets are learned: a power of 2, so that no digit depends on it
    loss_scale: float = 1.0  # that of the loss then


class Trained(NamedTuple):
    """What was learned: the rules, their mean loss on the examples they were learned from, and what went wrong."""

    rules: RuleEnsemble
    loss: float
    course: list[float]  # the loss at the beginning and after 32, 64, 128, ... rules
    error: Exception | None


def train(
    lesson: Lesson,
    settings: Settings,
    watch: Watch,
    past: RuleEnsemble | None = None,
    validation: Validation | None = None,
) -> Trained:
    """Learn as many rules as the settings say; `past` are those there are already."""
    matrix, scale = lesson.matrix, lesson.scale
    settings = choose_device(settings, lesson.Y.shape, sp.issparse(matrix), isinstance(matrix, DeviceMatrix))
    columns, edges = _prepare_columns(lesson, settings)

    def replay(scores: Array, first: int, last: int) -> None:
        assert past is not None
        add_scores(in_units(past[first:last], scale), matrix, scores)

    Y = lesson.Y if scale == 1 else lesson.Y / scale
    task = Task(columns, Y, lesson.weight, lesson.label_weight, lesson.strata, lesson.fixed_features)
    engine = make_engine(task, settings, *(() if past is None else (replay, len(past))))

    def name_rules(chunks: Sequence[Chunk]) -> RuleEnsemble:
        return collect_rules(chunks, lesson, edges)

    with closing(engine):
        trained = run(engine, name_rules, settings.n_rules, lesson.loss_scale, watch, past, validation)
    return trained._replace(rules=round_thresholds(trained.rules, columns, matrix))


def in_units(rules: RuleEnsemble, scale: float) -> RuleEnsemble:
    """Rules whose scores are in the units that targets are learned in."""
    return rules if scale == 1 else replace(rules, head_scores=rules.head_scores / scale)


def run(
    engine: Engine,
    name_rules: Callable[[Sequence[Chunk]], RuleEnsemble],
    n_rules: int,
    loss_scale: float,
    watch: Watch,
    past: RuleEnsemble | None = None,
    validation: Validation | None = None,
) -> Trained:
    """Let an engine learn; `name_rules` makes an ensemble of its rules."""
    learned = [] if past is None else [past]

    def take_rules() -> RuleEnsemble:
        learned.append(name_rules(engine.take_rules()))
        return learned[-1]

    def compute_loss() -> float:
        return engine.training_loss() * loss_scale

    failure = None
    course = [compute_loss()]  # now, as a loss of the user's own may be at fault
    try:
        _learn(engine, n_rules, take_rules, compute_loss, validation, watch, course)
    except KeyboardInterrupt:
        watch.interrupt.pending = True
    except Exception as error:  # of a callback or a scorer: hours of learning must not be lost with it
        failure = error
    if sum(map(len, learned)) < engine.n_rules:
        take_rules()
    return Trained(join_rules(learned), compute_loss(), course, failure)


def _prepare_columns(lesson: Lesson, settings: Settings) -> tuple[Any, tuple[Array, ...] | None]:
    """The columns, and the values that separate their bins if they have any."""
    schema, matrix = lesson.schema, lesson.matrix
    n_bins = count_bins(settings.max_bins, settings.search, matrix)
    if isinstance(matrix, DeviceMatrix):
        assert n_bins is not None
        return bin_device_matrix(matrix, n_bins)
    if n_bins is not None:
        return bin_columns(matrix, schema.nominal, n_bins, settings.n_threads)
    return (sort_stored if sp.issparse(matrix) else sort_columns)(matrix, schema.nominal), None


def collect_rules(chunks: Sequence[Chunk], lesson: Lesson, edges: tuple[Array, ...] | None) -> RuleEnsemble:
    """The rules of an engine in the words of the lesson: its thresholds, levels and units."""

    def join(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(chunk, name) for chunk in chunks])

    offsets = np.append(0, np.cumsum(join("n_conditions")))
    features, operators, values, gains = join("conditions").T
    features, operators, values = features.astype(np.int32), operators.astype(np.int8), values.copy()
    if edges is not None:  # thresholds between bins become the values that separate them, bins their categories
        for c in range(len(features)):
            if len(own := edges[features[c]]):
                values[c] = own[int(values[c])]
    if lesson.schema.ordinal:  # a threshold names the last level that is not above it
        on_levels = np.isin(features, lesson.schema.ordinal)
        values[on_levels] = np.floor(values[on_levels])
    return RuleEnsemble(
        condition_offsets=offsets,
        condition_features=features,
        condition_operators=operators,
        condition_values=values,
        head_offsets=np.append(0, np.cumsum(join("n_scores"))),
        head_labels=join("labels"),
        head_scores=join("scores") * lesson.scale,
        coverage=join("coverage"),
        gain=join("gain") * lesson.loss_scale,
        schema=lesson.schema,
        label_names=lesson.label_names,
        condition_shares=_find_shares(gains, offsets),
    )


def _find_shares(gains: Array, offsets: NDArray[np.int64]) -> Array:
    """What part of the gain of its rule each condition has brought, given the gain that the body had with it."""
    lengths = np.diff(offsets)
    rule = np.repeat(np.arange(len(lengths)), lengths)
    is_first = np.arange(len(gains)) == offsets[rule]
    added = np.where(is_first, gains, np.diff(gains, prepend=0.0))
    return added / gains[offsets[rule + 1] - 1]


def _learn(
    engine: Engine,
    n_rules: int,
    take_rules: Callable[[], RuleEnsemble],
    compute_loss: Callable[[], float],
    validation: Validation | None,
    watch: Watch,
    course: list[float],
) -> None:
    n_rules = int(n_rules)  # of NumPy's kinds of integers, compiled code would want a version each
    size, begin = 1, engine.n_rules
    with _show_progress(watch.verbose, n_rules, begin) as bar:
        while not watch.interrupt.pending:
            if (
                validation is not None
                and validation.n_rules < engine.n_rules
                and validation.is_due(engine.n_rules, n_rules)
            ):
                validation.add(take_rules())
                if bar is not None:
                    bar.set_postfix_str(f"validation score {validation.curve[-1].score:.4g}", refresh=False)
            if watch.callbacks:
                score = None if validation is None else validation.curve[-1].score
                progress = Progress(engine.n_rules, time.perf_counter() - watch.begin, compute_loss(), score)
                answers = [callback(progress) for callback in watch.callbacks]
                if any(isinstance(answer, bool | np.bool_) and answer for answer in answers):
                    break
            if engine.n_rules >= n_rules or (validation is not None and validation.is_enough(engine.n_rules)):
                break
            start = time.perf_counter()
            looked_at = max(FIRST_LOOK, 2 ** engine.n_rules.bit_length())
            count = min(size, n_rules - engine.n_rules, looked_at - engine.n_rules)
            if validation is not None:
                count = min(count, validation.count_until_due(engine.n_rules))
            engine.learn(count)
            if engine.n_rules == looked_at:
                course.append(compute_loss())
            if bar is not None:
                if engine.n_rules == begin + count:
                    bar.unpause()  # the first rule may have had to be compiled: that tells nothing about the others
                bar.update(count)
            if not watch.callbacks:
                # the number of rules that would take that many seconds, but at most eight times the last number
                seconds = max(time.perf_counter() - start, 1e-6)
                size = max(1, min(8 * size, int(count * watch.chunk_seconds / seconds)))


def _show_progress(verbose: bool, total: int, done: int) -> Any:
    """A progress bar, or nothing."""
    if not verbose:
        return nullcontext()
    from tqdm.auto import tqdm  # a notebook that lacks widgets warns: only those who want a bar should see that

    return tqdm(total=total, initial=done, unit=" rules", desc="Learning")
