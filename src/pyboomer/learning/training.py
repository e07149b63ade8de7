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

import pyboomer
from pyboomer.arrays import Array
from pyboomer.columns.binned import bin_columns, count_bins
from pyboomer.columns.device import DeviceMatrix, bin_device_matrix
from pyboomer.columns.gaps import round_thresholds
from pyboomer.columns.sorted import sort_columns
from pyboomer.columns.sparse import sort_stored
from pyboomer.data.alerts import alert
from pyboomer.data.examples import Examples
from pyboomer.data.stratification import group_examples
from pyboomer.engine.choice import choose_device, make_engine
from pyboomer.engine.protocol import Chunk, Engine, Settings, Task
from pyboomer.engine.sampling import NO_STRATA, Strata
from pyboomer.learning.fitted import FittedModel
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.learning.reading import TrainingData
from pyboomer.learning.stopping import Validation
from pyboomer.losses import Loss
from pyboomer.losses.catalog import DEGREE
from pyboomer.predicting.calibration import FOLDS, calibrate
from pyboomer.predicting.decoding import joint_probabilities
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.ensemble import RuleEnsemble, join_rules
from pyboomer.rules.schema import Schema

CHUNK_SECONDS = 0.1  # how long compiled code may run before Python looks for Ctrl-C and moves the progress bar
RISE = 0.01  # of the training loss, relative to the one before all rules, that users are told of
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
class Monitor:
    """What looks at training while it goes on, and may end it."""

    interrupt: DeferredInterrupt
    callbacks: Callable[[Progress], Any] | Sequence[Callable[[Progress], Any]] | None = None
    verbose: int = 0
    begin: float = field(default_factory=time.perf_counter)
    chunk_seconds: float = CHUNK_SECONDS

    def call(self, progress: Progress) -> bool:
        """Call all callbacks; returns whether any of them wants training to end."""
        callbacks = (self.callbacks,) if callable(self.callbacks) else self.callbacks or ()
        answers = [callback(progress) for callback in callbacks]
        return any(isinstance(answer, bool | np.bool_) and answer for answer in answers)


class Trained(NamedTuple):
    """What was learned: the rules, their mean loss on the examples they were learned from, and what went wrong."""

    rules: RuleEnsemble
    loss: float
    loss_history: list[float]  # the loss at the beginning and after 32, 64, 128, ... rules
    validation: Validation | None
    error: Exception | None


def train(
    data: TrainingData,
    settings: Settings,
    monitor: Monitor,
    past: RuleEnsemble | None = None,
    validation: Validation | None = None,
) -> Trained:
    """Learn as many rules as the settings say; `past` are those there are already."""
    examples, matrix = data.examples, data.examples.matrix
    scale, loss_scale = find_scales(examples.Y, settings.loss)
    settings = choose_device(settings, examples.Y.shape, sp.issparse(matrix), isinstance(matrix, DeviceMatrix))
    columns, edges = _prepare_columns(matrix, data.schema, settings)

    def replay(scores: Array, first: int, last: int) -> None:
        assert past is not None
        add_scores(in_units(past[first:last], scale), matrix, scores)

    engine = make_engine(
        Task(columns, *take_targets(examples, scale), find_strata(examples.Y, settings), data.fixed_features),
        settings,
        *(() if past is None else (replay, len(past))),
    )

    def name_rules(chunks: Sequence[Chunk]) -> RuleEnsemble:
        return collect_rules(chunks, data.schema, data.label_format.names, edges, scale, loss_scale)

    with closing(engine):
        trained = run(engine, name_rules, settings.n_rules, loss_scale, monitor, past, validation)
    return trained._replace(rules=round_thresholds(trained.rules, columns, matrix))


def take_targets(examples: Examples, scale: float = 1.0) -> tuple[NDArray[Any], Array, Array | None]:
    """Labels or targets as an engine takes them, in units of `scale`, and their weights."""
    Y = examples.signed
    return Y if scale == 1 else Y / scale, examples.weight, examples.label_weight


def find_scales(Y: NDArray[Any], loss: Loss) -> tuple[float, float]:
    """The unit in which targets are learned, a power of 2 so that no digit depends on it; and that of the loss."""
    spread = float(np.std(Y)) if loss in DEGREE and Y.dtype != np.uint8 else 1.0
    scale = 2.0 ** round(np.log2(spread)) if spread > 0 else 1.0
    return scale, scale ** DEGREE.get(loss, 0)


def find_strata(Y: NDArray[Any], settings: Settings) -> Strata:
    """The groups of examples that samples without replacement are drawn from."""
    if settings.sampling == "with-replacement" or not settings.bootstrap:
        return NO_STRATA
    return group_examples(Y, settings.sampling.removeprefix("stratified-"))


def in_units(rules: RuleEnsemble, scale: float) -> RuleEnsemble:
    """Rules whose scores are in the units that targets are learned in."""
    return rules if scale == 1 else replace(rules, head_scores=rules.head_scores / scale)


def run(
    engine: Engine,
    name_rules: Callable[[Sequence[Chunk]], RuleEnsemble],
    n_rules: int,
    loss_scale: float,
    monitor: Monitor,
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
    loss_history = [compute_loss()]  # now, as a loss of the user's own may be at fault
    try:
        _learn(engine, n_rules, take_rules, compute_loss, validation, monitor, loss_history)
    except KeyboardInterrupt:
        monitor.interrupt.pending = True
    except Exception as error:  # of a callback or a scorer: hours of learning must not be lost with it
        failure = error
    if sum(map(len, learned)) < engine.n_rules:
        take_rules()
    return Trained(join_rules(learned), compute_loss(), loss_history, validation, failure)


def _prepare_columns(matrix: Any, schema: Schema, settings: Settings) -> tuple[Any, tuple[Array, ...] | None]:
    """The columns, and the values that separate their bins if they have any."""
    n_bins = count_bins(settings.max_bins, settings.search, matrix)
    if isinstance(matrix, DeviceMatrix):
        assert n_bins is not None
        return bin_device_matrix(matrix, n_bins)
    if n_bins is not None:
        return bin_columns(matrix, schema.nominal, n_bins, settings.n_threads)
    return (sort_stored if sp.issparse(matrix) else sort_columns)(matrix, schema.nominal), None


def collect_rules(
    chunks: Sequence[Chunk],
    schema: Schema,
    label_names: tuple[str, ...],
    edges: tuple[Array, ...] | None,
    scale: float = 1.0,
    loss_scale: float = 1.0,
) -> RuleEnsemble:
    """The rules of an engine in the terms of the data: their thresholds, levels and units."""

    def join(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(chunk, name) for chunk in chunks])

    offsets = np.append(0, np.cumsum(join("n_conditions")))
    features, operators, values, gains = join("conditions").T
    features, operators, values = features.astype(np.int32), operators.astype(np.int8), values.copy()
    if edges is not None:  # thresholds between bins become the values that separate them, bins their categories
        for c in range(len(features)):
            if len(own := edges[features[c]]):
                values[c] = own[int(values[c])]
    if schema.ordinal:  # a threshold names the last level that is not above it
        on_levels = np.isin(features, schema.ordinal)
        values[on_levels] = np.floor(values[on_levels])
    return RuleEnsemble(
        condition_offsets=offsets,
        condition_features=features,
        condition_operators=operators,
        condition_values=values,
        head_offsets=np.append(0, np.cumsum(join("n_scores"))),
        head_labels=join("labels"),
        head_scores=join("scores") * scale,
        coverage=join("coverage"),
        gain=join("gain") * loss_scale,
        schema=schema,
        label_names=label_names,
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
    monitor: Monitor,
    loss_history: list[float],
) -> None:
    n_rules = int(n_rules)  # of NumPy's kinds of integers, compiled code would want a version each
    size, begin = 1, engine.n_rules
    with _show_progress(monitor.verbose, n_rules, begin) as bar:
        while not monitor.interrupt.pending:
            if (
                validation is not None
                and validation.n_rules < engine.n_rules
                and validation.is_due(engine.n_rules, n_rules)
            ):
                validation.add(take_rules())
                if bar is not None:
                    bar.set_postfix_str(f"validation score {validation.curve[-1].score:.4g}", refresh=False)
            if monitor.callbacks:
                score = None if validation is None else validation.curve[-1].score
                progress = Progress(engine.n_rules, time.perf_counter() - monitor.begin, compute_loss(), score)
                if monitor.call(progress):
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
                loss_history.append(compute_loss())
            if bar is not None:
                if engine.n_rules == begin + count:
                    bar.unpause()  # the first rule may have had to be compiled: that tells nothing about the others
                bar.update(count)
            if not monitor.callbacks:
                # the number of rules that would take that many seconds, but at most eight times the last number
                seconds = max(time.perf_counter() - start, 1e-6)
                size = max(1, min(8 * size, int(count * monitor.chunk_seconds / seconds)))


def _show_progress(verbose: int, total: int, done: int) -> Any:
    """A progress bar, or nothing."""
    if not verbose:
        return nullcontext()
    from tqdm.auto import tqdm  # a notebook that lacks widgets warns: only those who want a bar should see that

    return tqdm(total=total, initial=done, unit=" rules", desc="Learning")


# --- What is kept ---------------------------------------------------------------------------------------------------


def keep(model: FittedModel, trained: Trained, examples: Examples, settings: Settings, begin: float) -> FittedModel:
    """The model with what was learned, or the best part of it."""
    rules, loss, history, validation, _ = trained
    params = model.params
    if params["l1"] > 0 and len(rules) > 1 and not rules.head_scores[rules.head_offsets[1] :].any():
        alert(f"l1={params['l1']} makes every score zero: choose a smaller one")
    if not loss <= min(history) + RISE * abs(history[0]):
        alert(
            f"the training loss has risen from {min(history):.4g} to {loss:.4g}: steps are too long; choose a "
            f"larger l2 (it is {params['l2']}) or a smaller learning_rate (it is {settings.learning_rate})"
        )
    curve = None if validation is None else validation.curve
    if validation is not None and curve and params["early_stopping"] and validation.best.n_rules < len(rules):
        rules = rules[: validation.best.n_rules].renumber()
        known = validation.losses.get(len(rules))
        loss = model.measure(examples, rules) if known is None else known
    facts = {
        "pyboomer": pyboomer.__version__,
        "examples": examples.size,
        "features": model.features.n,
        "labels": examples.Y.shape[1],
        "rules": len(rules),
        "objective": model.loss.name,
        "loss": loss,
        "seconds": round(time.perf_counter() - begin, 3),
        "seed": settings.seed,
    }
    return replace(model, rules=rules, training_facts=facts, validation_curve=curve)


def calibrate_model(
    model: FittedModel, data: TrainingData, settings: Settings, interrupt: DeferredInterrupt
) -> FittedModel:
    """The model with calibrated probabilities: by examples held out, or else by cross-fitting."""
    examples = data.held_out
    if examples is None:
        examples = data.examples
        scores = _score_unseen(model, data, settings, interrupt)
    else:
        scores = model.score(examples.matrix)
    if interrupt.pending:
        alert("interrupted before the calibration: probabilities are not calibrated")
        return model
    Y = examples.Y.astype(np.float64)
    if examples.label_weight is not None:
        Y[examples.label_weight == 0] = np.nan
    loss, vectors = model.objective, model.label_vectors
    joint = None if loss.known is None else joint_probabilities(scores, vectors, model.decision.bias)
    return replace(model, calibration=calibrate(loss.log_odds(scores), Y, vectors, joint))


def _score_unseen(model: FittedModel, data: TrainingData, settings: Settings, interrupt: DeferredInterrupt) -> Array:
    """The score of each example by rules that were learned from others (cross-fitting)."""
    examples, settings = data.examples, replace(settings, n_rules=len(model.rules))
    scores = np.zeros(examples.Y.shape)
    fold = np.random.default_rng(data.seed).permutation(len(scores)) % FOLDS
    for i in range(FOLDS):
        if interrupt.pending:
            break
        others, own = np.flatnonzero(fold != i), np.flatnonzero(fold == i)
        rules = train(data._replace(examples=examples.take(others)), settings, Monitor(interrupt)).rules
        scores[own] = model.score(examples.take(own).matrix, rules)
    return scores
