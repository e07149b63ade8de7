"""A booster is Algorithm 1 under way: the scores and statistics of the training examples, and the rules learned so far.

It learns as many rules as it is asked for; whoever asks may look at it in between.
"""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.features import Columns
from pyboomer.compiling.simd import LANES, make_zeros
from pyboomer.engine.boosting import Chunk, learn_rules
from pyboomer.engine.heads import fit_head
from pyboomer.engine.rating import RATE_BOUND, RATE_DECOMPOSABLE, RATE_EXACT, RATE_SINGLE, Settings
from pyboomer.engine.sampling import NO_STRATA, Strata
from pyboomer.engine.statistics import (
    SQUARED,
    USER_DEFINED,
    Truth,
    add_scores_to_rows,
    choose_layout,
    choose_update,
    count_columns,
    pad,
    sum_values,
    update_statistics,
    write_statistics,
)
from pyboomer.losses.loss import Loss
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.schema import Schema

LARGEST = np.iinfo(np.int64).max
BLOCK_NUMBERS = 2**17  # numbers in a temporary array: 1 MB
NO_FEATURES = np.empty(0, dtype=np.int64)
NO_TRUTH = Truth(np.zeros((0, LANES), dtype=np.int8), np.zeros((0, LANES)))


def choose_rating(loss: Loss, single: bool, search: str) -> int:
    """How candidates are rated. The bound is for curvature of the outer shape; all else is searched exactly."""
    if single:
        return RATE_SINGLE
    if loss.decomposable:
        return RATE_DECOMPOSABLE
    return RATE_EXACT if search == "exact" or loss.shape == "dense" else RATE_BOUND


def measure_head(head: str | int | float, n_labels: int) -> tuple[int, float]:
    """The most labels that a head is about, and the share of the largest gain that each must have."""
    if isinstance(head, str):
        return (1 if head == "single" else n_labels), 0.0
    return (min(int(head), n_labels), 0.0) if isinstance(head, Integral) else (n_labels, float(head))


class Steps(NamedTuple):
    """What threads may share: the loop over rules and, for the default rule before it, steps over all examples."""

    learn_rules: Callable[..., tuple[Chunk, NDArray[np.uint32]]]
    fit_head: Callable[..., tuple[float, int, float]]
    update_statistics: Callable[..., None]
    add_scores_to_rows: Callable[..., None]


COMPILED = Steps(learn_rules, fit_head, update_statistics, add_scores_to_rows)


class Booster:
    """The state of Algorithm 1 between two chunks of rules.

    Parameters
    ----------
    columns : Columns
        The features.
    Y : array of shape (N, K)
        Labels, -1 and +1 (int8), or the targets of a regression (float64).
    sample_weight : array of shape (N,)
    label_weight : array of shape (N, K), optional
        Weights of the labels; 0 for an unknown one.
    replay : callable, optional
        To go on after `n_rules` rules that there are already: adds their scores to an (N, K) array, in the order of the
        rules, so that nothing differs from having learned them now. Without it, the default rule is learned.
    loss : Loss
    default_l2 : float, optional
        The L2 regularisation of the default rule, if it is another than that of all rules.
    head : {"multi", "single"}, a number of labels, or a share of the largest gain
    search : {"bound", "exact"}
    n_samples, strata
        How many examples the sample of a rule has (0 for no sampling), and the groups they are drawn from.
    fixed_features : array
        The features that need not be drawn, in ascending order.
    learning_rate, l1, l2, n_drawn_labels, n_drawn_features, max_conditions, min_coverage, seed
        See `Settings`; None for no limit, and for all labels.
    """

    def __init__(
        self,
        columns: Columns,
        Y: NDArray[Any],
        sample_weight: Array,
        *,
        label_weight: Array | None = None,
        replay: Callable[[Array], None] | None = None,
        n_rules: int = 0,
        default_l2: float | None = None,
        loss: Loss,
        head: str | int | float,
        search: str,
        learning_rate: float,
        l1: float = 0.0,
        l2: float,
        n_samples: int,
        strata: Strata = NO_STRATA,
        n_drawn_labels: int | None = None,
        n_drawn_features: int,
        fixed_features: NDArray[np.int64] = NO_FEATURES,
        max_conditions: int | None,
        min_coverage: float,
        seed: int,
        steps: Steps = COMPILED,
    ) -> None:
        n, n_labels = Y.shape
        head_size, head_share = measure_head(head, n_labels)
        single = head == "single" or head_size == 1 < n_labels
        width = pad(n_labels)
        self.loss = loss
        self.columns = columns
        self.sample_weight = sample_weight
        self.strata = strata
        self.fixed_features = fixed_features
        self.settings = Settings(
            n_labels=n_labels,
            update=choose_update(loss),
            layout=choose_layout(loss, single),
            rating=choose_rating(loss, single, search),
            head_size=head_size,
            head_share=head_share,
            learning_rate=float(learning_rate),
            l1=float(l1),
            l2=float(l2),
            n_samples=int(n_samples),
            n_drawn_labels=n_labels if n_drawn_labels is None else int(n_drawn_labels),
            n_drawn_features=int(n_drawn_features),
            max_conditions=LARGEST if max_conditions is None else int(max_conditions),
            min_coverage=float(min_coverage),
            seed=int(seed),
        )
        self.truth = make_truth(Y, label_weight, self.settings.update, width)
        self.scores = make_zeros((n, width))
        if self.settings.update == SQUARED:  # what is still missing: see `Truth`
            self.scores[:, :n_labels] = -Y
        self.steps = steps
        self.chunks: list[Chunk] = []
        self.n_rules = n_rules
        self.statistics = make_zeros((n, count_columns(self.settings.layout, n_labels)))
        if replay is None:
            self._learn_default_rule(self.settings.l2 if default_l2 is None else float(default_l2))
        else:
            replayed = self.scores[:, :n_labels].copy()
            replay(replayed)
            self.scores[:, :n_labels] = replayed
        self._write(self.settings.layout, self.statistics, np.arange(n, dtype=np.uint32))

    def _learn_default_rule(self, l2: float) -> None:
        """It predicts for every label, whatever the other heads are (Alg. 1, line 2)."""
        n, n_labels = len(self.scores), self.settings.n_labels
        layout = choose_layout(self.loss, single=False)
        everyone = np.arange(n, dtype=np.uint32)
        own = layout == self.settings.layout
        statistics = self.statistics if own else make_zeros((n, count_columns(layout, n_labels)))
        self._write(layout, statistics, everyone)
        padded = np.zeros(self.scores.shape[1])
        head = padded[:n_labels]
        l1, weight = self.settings.l1, self.sample_weight
        gain, _, coverage = self.steps.fit_head(layout, statistics, everyone, weight, l1, l2, False, -1, head)
        self.steps.add_scores_to_rows(self.scores, everyone, padded, 0, n_labels)
        default_rule = Chunk(
            n_conditions=np.zeros(1, dtype=np.int64),
            conditions=np.empty((0, 3)),
            n_scores=np.array([n_labels]),
            labels=np.arange(n_labels, dtype=np.int32),
            scores=head,
            coverage=np.array([coverage]),
            gain=np.array([gain]),
        )
        self.chunks.append(default_rule)
        self.n_rules = 1

    def _write(self, layout: int, statistics: Array, rows: NDArray[np.uint32]) -> None:
        write_statistics(
            self.loss,
            layout,
            self.truth,
            self.scores,
            rows,
            statistics,
            self.settings.n_labels,
            self.steps.update_statistics,
        )

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        user_defined = self.settings.update == USER_DEFINED
        # compiled code never looks at the labels of a user's own loss, which may be of another type
        truth = NO_TRUTH if user_defined else self.truth
        for _ in range(count if user_defined else min(count, 1)):
            chunk, covered = self.steps.learn_rules(
                self.columns,
                self.fixed_features,
                truth,
                self.sample_weight,
                self.strata,
                self.scores,
                self.statistics,
                self.settings,
                self.n_rules,
                1 if user_defined else count,
            )
            self.chunks.append(chunk)
            self.n_rules += len(chunk.gain)
            if user_defined:
                self._write(self.settings.layout, self.statistics, covered)

    def take_rules(self, schema: Schema, label_names: tuple[str, ...]) -> RuleEnsemble:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return _collect_rules(chunks, schema, label_names)

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        n, k = len(self.scores), self.settings.n_labels
        if self.settings.update != USER_DEFINED and not len(self.truth.weight):
            total = sum_values(self.settings.update, self.truth, self.scores, self.sample_weight)
            return float(total) / float(self.sample_weight.sum())
        size = max(1, BLOCK_NUMBERS // k)  # examples at a time: temporary arrays stay small
        total = 0.0
        for start in range(0, n, size):
            rows = np.arange(start, min(start + size, n), dtype=np.uint32)
            Y, weight = self.truth.take(rows, k)
            if self.settings.update == SQUARED:
                Y = np.zeros_like(Y)
            total += float(self.loss.weighted_value(Y, self.scores[rows, :k], weight) @ self.sample_weight[rows])
        return total / float(self.sample_weight.sum())


def make_truth(Y: NDArray[Any], label_weight: Array | None, update: int, width: int) -> Truth:
    """Labels and weights as the statistics want them; weights of 0 and 1 go without saying."""
    n, k = Y.shape
    weight = np.zeros((0, width))
    known = np.ones((n, k), dtype=bool) if label_weight is None else label_weight > 0
    regression = Y.dtype != np.int8 and update == USER_DEFINED
    if label_weight is not None and (regression or ((label_weight != 0) & (label_weight != 1)).any()):
        weight = np.zeros((n, width))
        weight[:, :k] = label_weight
    if regression:
        return Truth(Y, weight)
    signs = np.zeros((n, width), dtype=np.int8)
    signs[:, :k] = known if update == SQUARED else np.where(known, Y, 0)
    return Truth(signs, weight)


def _collect_rules(chunks: Sequence[Chunk], schema: Schema, label_names: tuple[str, ...]) -> RuleEnsemble:
    def join(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(chunk, name) for chunk in chunks])

    features, operators, values = join("conditions").T
    return RuleEnsemble(
        condition_offsets=np.append(0, np.cumsum(join("n_conditions"))),
        condition_features=features.astype(np.int32),
        condition_operators=operators.astype(np.int8),
        condition_values=values,
        head_offsets=np.append(0, np.cumsum(join("n_scores"))),
        head_labels=join("labels"),
        head_scores=join("scores"),
        coverage=join("coverage"),
        gain=join("gain"),
        schema=schema,
        label_names=label_names,
    )
