"""The state has the scores and the statistics of all training examples, and keeps them up to date rule by rule."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.simd import make_zeros, pad
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.heads import Penalty, fit_head, make_solver_buffers
from pyboomer.engine.protocol import Settings, Task
from pyboomer.engine.statistics import (
    Dense,
    Diagonal,
    Layout,
    Outer,
    add_scores_to_rows,
    count_columns,
    resize,
    take_labels,
)
from pyboomer.losses import Loss
from pyboomer.losses.compiled import BEGIN, GRADIENT_IS_B, NOT_COMPILED, sum_values, tell_truth
from pyboomer.losses.truth import JointTruth, pad_signs, pad_weight

BLOCK_NUMBERS = 2**17  # numbers in a temporary array: 1 MB


def choose_layout(loss: Loss, n_labels: int, single: bool, in_rounds: bool = False) -> Layout:
    """The layout of the statistics for a loss, for single- or multi-label heads, and for rounds of several rules."""
    if single or loss.shape == "diagonal":
        return Diagonal(n_labels)
    if loss.shape == "dense":
        return Dense(n_labels)
    return Outer(n_labels, 0 if loss in GRADIENT_IS_B and not in_rounds else 2)


class ExampleState:
    """See the module's docstring.

    Parameters
    ----------
    task : Task
    loss : Loss
    single : bool
        Whether heads are about one label, so that the diagonal of the Hessian is all that matters.
    threads : Threads
        Who does what takes long.
    in_rounds : bool
        Whether rules are learned in rounds, while which Hessians stay as they are and gradients do not.
    """

    def __init__(self, task: Task, loss: Loss, single: bool, threads: Threads, in_rounds: bool = False) -> None:
        n, k = task.Y.shape
        self.task, self.loss, self.threads, self.n_labels = task, loss, threads, k
        label_weight = task.label_weight
        if label_weight is not None and (label_weight == 1).all():
            label_weight = None
        self.label_weight = label_weight
        self.signs = pad_signs(task.Y, None if label_weight is None else label_weight > 0)
        self.scores = make_zeros((n, pad(k)))
        if loss in BEGIN:
            self.scores[:, :k] = BEGIN[loss](task.Y)
        self.layout = choose_layout(loss, k, single, in_rounds)
        weight = pad_weight(task.Y.shape, label_weight)
        self.truth = tell_truth(loss, isinstance(self.layout, Diagonal), self.signs, weight)
        self.is_compiled = isinstance(self.truth, JointTruth) or self.truth.loss != NOT_COMPILED
        self.statistics = make_zeros((n, count_columns(self.layout)))
        self.everyone = np.arange(n, dtype=np.uint32)

    def write(self, rows: Rows | None = None) -> None:
        """Compute the statistics of some examples, or of all, anew (Alg. 1, lines 1 and 4)."""
        self.write_as(self.layout, self.statistics, self.everyone if rows is None else rows)

    def write_as(self, layout: Layout, statistics: Array, rows: Rows) -> None:
        """Compute the statistics of some examples in a layout of choice."""
        k = self.n_labels
        if self.is_compiled:
            truth = self.truth._replace(diagonal=isinstance(layout, Diagonal))
            self.threads.update(truth, self.scores, rows, statistics, 0, pad(k))
            return
        Y, weight = self._take(rows)
        g, *curvature = self.loss.weighted_derivatives(Y, self.scores[rows, :k], weight)
        width = pad(k)
        statistics[rows, :k] = g
        if isinstance(layout, Dense):
            i, j = np.tril_indices(k)
            statistics[rows, width : width + len(i)] = curvature[0][:, i, j]
        elif self.loss.shape == "dense":
            statistics[rows, width : width + k] = np.diagonal(curvature[0], axis1=1, axis2=2)
        elif isinstance(layout, Diagonal) and self.loss.shape == "diagonal-minus-outer":
            statistics[rows, width : width + k] = curvature[0] - curvature[1] ** 2
        else:
            statistics[rows, width : width + k] = curvature[0]
            if isinstance(layout, Outer):
                statistics[rows, 2 * width : 2 * width + k] = curvature[1]

    def _take(self, rows: Rows) -> tuple[Array, Array | None]:
        """Labels as the readable definition of the loss takes them, and their weights."""
        k = self.n_labels
        labels: NDArray[Any] = self.signs[rows, :k] if self.task.Y.dtype == np.int8 else self.task.Y[rows]
        weight = None if self.label_weight is None else self.label_weight[rows]
        return labels.astype(np.float64), weight

    def fit_head(self, rows: Rows, labels: NDArray[np.int64], penalty: Penalty) -> tuple[Array, float]:
        """The head for some of the labels, and its gain, from the examples covered (Alg. 2)."""
        layout, statistics = self.layout, self.statistics[rows]
        if len(labels) < self.n_labels:
            own = resize(layout, len(labels))
            taken = np.empty((len(rows), count_columns(own)))
            take_labels(layout, statistics, np.arange(len(rows), dtype=np.uint32), labels, taken)
            layout, statistics = own, taken
        head, everyone = np.empty(len(labels)), np.arange(len(rows), dtype=np.uint32)
        gain, _ = fit_head(
            layout, statistics, everyone, self.task.weight[rows], penalty, make_solver_buffers(layout), head
        )
        return head, gain

    def add_scores(self, rows: Rows, labels: NDArray[Any], scores: Array) -> None:
        """Add scores of some labels to those of some examples."""
        head = np.zeros(pad(self.n_labels))
        head[labels] = scores
        add_scores_to_rows(self.scores, rows, head, int(labels[0]), int(labels[-1]) + 1)

    def apply(self, rows: Rows, labels: NDArray[Any], scores: Array) -> None:
        """Add scores to some examples, and bring their statistics up to date (Alg. 1, line 4)."""
        self.add_scores(rows, labels, scores)
        if self.is_compiled:
            first, last = int(labels[0]), int(labels[-1]) + 1
            self.threads.update(self.truth, self.scores, rows, self.statistics, first, last)
        else:
            self.write(rows)

    def sums_bins(self, settings: Settings) -> bool:
        """Whether histograms rate candidates; there are none of Hessians, which exact search takes."""
        exact = settings.search == "exact" or isinstance(self.layout, Dense)
        return not exact or isinstance(self.layout, Diagonal)

    def mean_loss(self) -> float:
        """The mean loss of the training examples."""
        weight = self.task.weight
        if self.is_compiled and not len(self.truth.weight):
            return float(sum_values(self.truth, self.scores, weight)) / float(weight.sum())
        total = sum(float(self.list_losses(rows) @ weight[rows]) for rows in self.list_blocks())
        return total / float(weight.sum())

    def list_blocks(self) -> Iterator[Rows]:
        """All examples, some at a time: temporary arrays stay small."""
        size = max(1, BLOCK_NUMBERS // self.n_labels)
        return (self.everyone[start : start + size] for start in range(0, len(self.everyone), size))

    def list_losses(self, rows: Rows) -> Array:
        """The loss of each of some examples."""
        Y, label_weight = self._take(rows)
        if self.loss in BEGIN:
            Y = Y + BEGIN[self.loss](Y)  # what the scores began with is not theirs
        return self.loss.weighted_value(Y, self.scores[rows, : self.n_labels], label_weight)
