"""Training is one run of Algorithm 1: rules are learned chunk by chunk, watched, and kept whatever ends it.

Between two chunks, held-out examples are evaluated, progress is shown, callbacks are called and Ctrl-C is looked for.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.binning import bin_columns, count_bins, separate_bins
from pyboomer.columns.features import Columns, sort_columns
from pyboomer.columns.rounding import round_thresholds
from pyboomer.data.examples import Examples
from pyboomer.data.tables import Table, find_features
from pyboomer.engine.booster import COMPILED, Booster, Steps
from pyboomer.engine.boosting import needs_compiling
from pyboomer.engine.sampling import NO_STRATA, count_examples, count_features, count_labels
from pyboomer.engine.threads import spread_steps
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.learning.stopping import Validation
from pyboomer.losses.loss import Loss, find_loss
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.ensemble import RuleEnsemble, join_rules
from pyboomer.rules.schema import Schema

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator


COMPILING = "Compiling the learner, once; this takes up to a minute ..."
CHUNK_SECONDS = 0.1  # how long compiled code may run before Python looks for Ctrl-C and moves the progress bar


@dataclass(frozen=True)
class Progress:
    """What a callback is told: the rules learned so far, the seconds, the mean training loss, the validation score."""

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


class Trained(NamedTuple):
    """What was learned: the rules, their mean loss on the examples they were learned from, and what went wrong."""

    rules: RuleEnsemble
    loss: float
    error: Exception | None


def train(
    model: "RuleEstimator",
    table: Table,
    names: tuple[str, ...],
    examples: Examples,
    n_rules: int,
    seed: int,
    watch: Watch,
    past: RuleEnsemble | None = None,
    validation: Validation | None = None,
) -> Trained:
    """Learn up to `n_rules` rules about the labels `names`; `past` are those there are already."""
    matrix, schema = examples.matrix, table.schema
    n_bins = count_bins(model.max_bins, model._search(), matrix)
    n_threads = 1 if n_bins is None else effective_n_jobs(model.n_jobs)
    bins = None if n_bins is None else bin_columns(matrix, schema.nominal, schema.names, n_bins, n_threads)
    columns = sort_columns(matrix, schema.nominal) if bins is None else bins.columns
    scale = model._find_scale(examples.Y)
    fixed = np.flatnonzero(find_features("fixed_features", model.fixed_features, schema.names))
    pool = ThreadPoolExecutor(n_threads)
    steps = spread_steps(pool, n_threads) if n_threads > 1 else COMPILED
    booster = _make_booster(model, columns, fixed, examples, scale, past, seed, steps)
    learned = [] if past is None else [past]

    def take_rules() -> RuleEnsemble:
        rules = booster.take_rules(schema.without_levels, names)
        rules = rules if bins is None else separate_bins(rules, bins)
        learned.append(_scale_heads(_name_levels(rules, schema), scale))
        return learned[-1]

    def compute_loss() -> float:
        return booster.training_loss() * scale**2

    failure = None
    if isinstance(model.loss, Loss):
        compute_loss()  # a loss of the user's own may be at fault: better now than when all is learned
    with pool:
        try:
            _learn(booster, n_rules, take_rules, compute_loss, validation, watch)
        except KeyboardInterrupt:
            watch.interrupt.pending = True
        except Exception as error:  # of a callback or a scorer: hours of learning must not be lost with it
            failure = error
    if booster.chunks:
        take_rules()
    rules = round_thresholds(join_rules(learned), columns, matrix)
    return Trained(rules, compute_loss(), failure)


def _make_booster(
    model: "RuleEstimator",
    columns: Columns,
    fixed: NDArray[np.int64],
    examples: Examples,
    scale: float,
    past: RuleEnsemble | None,
    seed: int,
    steps: Steps,
) -> Booster:
    def replay(scores: Array) -> None:
        assert past is not None
        add_scores(_scale_heads(past, 1 / scale), examples.matrix, scores)

    Y = model._sign(examples.Y)
    put_back = model.sampling == "with-replacement" or not model.bootstrap
    return Booster(
        columns,
        Y if scale == 1 else Y / scale,
        examples.weight,
        label_weight=examples.label_weight,
        replay=None if past is None else replay,
        n_rules=0 if past is None else len(past),
        default_l2=model._default_l2(),
        loss=find_loss(model.loss),
        head=model.head,
        search=model._search(),
        learning_rate=model.learning_rate,
        l1=model.l1,
        l2=model.l2,
        n_samples=count_examples(model.max_samples, len(Y), put_back) if model.bootstrap else 0,
        strata=NO_STRATA if put_back else model._find_strata(examples.Y),
        n_drawn_labels=count_labels(model.max_labels, Y.shape[1]),
        n_drawn_features=count_features(model.max_features, model.n_features_in_ - len(fixed)),
        fixed_features=fixed,
        max_conditions=model.max_conditions,
        min_coverage=model.min_coverage if model.min_coverage > 1 else 0.0,  # weights may add up to less than 1
        seed=seed,
        steps=steps,
    )


def _learn(
    booster: Booster,
    n_rules: int,
    take_rules: Callable[[], RuleEnsemble],
    compute_loss: Callable[[], float],
    validation: Validation | None,
    watch: Watch,
) -> None:
    n_rules = int(n_rules)  # of NumPy's kinds of integers, compiled code would want a version each
    size, begin = 1, booster.n_rules
    with _show_progress(watch.verbose, n_rules, begin) as bar:
        while not watch.interrupt.pending:
            if validation is not None and booster.chunks and validation.is_due(booster.n_rules, n_rules):
                validation.add(take_rules())
                if bar is not None:
                    bar.set_postfix_str(f"validation score {validation.curve[-1].score:.4g}", refresh=False)
            if watch.callbacks:
                score = None if validation is None else validation.curve[-1].score
                progress = Progress(booster.n_rules, time.perf_counter() - watch.begin, compute_loss(), score)
                answers = [callback(progress) for callback in watch.callbacks]
                if any(isinstance(answer, bool | np.bool_) and answer for answer in answers):
                    break
            if booster.n_rules >= n_rules or (validation is not None and validation.is_enough(booster.n_rules)):
                break
            start = time.perf_counter()
            count = min(size, n_rules - booster.n_rules)
            if validation is not None:
                count = min(count, validation.count_until_due(booster.n_rules))
            booster.learn(count)
            if bar is not None:
                if booster.n_rules == begin + count:
                    bar.unpause()  # the first rule may have had to be compiled: that tells nothing about the others
                bar.update(count)
            if not watch.callbacks:
                # the number of rules that would take CHUNK_SECONDS, but at most eight times the last number
                seconds = max(time.perf_counter() - start, 1e-6)
                size = max(1, min(8 * size, int(count * CHUNK_SECONDS / seconds)))


def _show_progress(verbose: bool, total: int, done: int) -> Any:
    """A progress bar, or nothing."""
    if not verbose:
        return nullcontext()
    from tqdm.auto import tqdm  # a notebook that lacks widgets warns: only those who want a bar should see that

    if needs_compiling():
        tqdm.write(COMPILING, file=sys.stderr)
    return tqdm(total=total, initial=done, unit=" rules", desc="Learning")


def _name_levels(rules: RuleEnsemble, schema: Schema) -> RuleEnsemble:
    """The conditions on ordinal features name the last level that is not above the threshold."""
    if not schema.ordinal:
        return rules
    on_levels = np.isin(rules.condition_features, schema.ordinal)
    values = np.where(on_levels, np.floor(rules.condition_values), rules.condition_values)
    return replace(rules, condition_values=values, schema=schema)


def _scale_heads(rules: RuleEnsemble, scale: float) -> RuleEnsemble:
    if scale == 1:
        return rules
    return replace(rules, head_scores=rules.head_scores * scale, gain=rules.gain * scale**2)
