"""The default rule predicts the same scores for all examples (Alg. 1, line 2).

Its head is the best constant there is (`losses.constant`), or the paper's first step towards it. All examples with the
same labels have the same loss, gradient and Hessian then, so that each label vector is looked at once. By the
label-wise loss, it is enough to know how many have a label. If the loss is about known label vectors, one of them is
enough: log Z - y . f - b differs between two examples by what is linear in f.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.compiling.simd import make_zeros, pad
from pyboomer.engine.cpu.state import ExampleState, choose_layout
from pyboomer.engine.heads import Penalty, fit_head, make_solver_buffers, shape_system, solve_system, unpack
from pyboomer.engine.odds_state import make_rule
from pyboomer.engine.protocol import Chunk, Settings, Task
from pyboomer.engine.statistics import Dense, Diagonal, count_columns
from pyboomer.losses.compiled import LABEL_WISE, QUADRATIC
from pyboomer.losses.constant import Solve, minimise_constant
from pyboomer.losses.truth import JointTruth, Truth
from pyboomer.predicting.decoding import group_equal, pack_bits
from pyboomer.rules.precision import FLOOR

TOLERANCE = 1e-6  # of the residual of conjugate gradients, relative to the right-hand side; later steps do the rest


def learn_default_rule(state: ExampleState, settings: Settings) -> Chunk:
    """Learn the default rule, which predicts for every label, whatever the other heads are."""
    head, gain = find_default_head(state, settings)
    return make_rule(np.empty((0, 4)), np.arange(state.n_labels), head, state.task.weight.sum(), gain)


def find_default_head(state: ExampleState, settings: Settings) -> tuple[Array, float]:
    """The head of the default rule, and its gain; no rule has been applied yet."""
    penalty = Penalty(float(settings.l1), float(settings.default_l2))
    if settings.default_rule == "newton" or state.loss in QUADRATIC:  # whose minimum is one step away
        return _take_newton_step(state, penalty)
    task, slope = state.task, np.zeros(state.n_labels)
    if isinstance(state.truth, JointTruth):
        task, slope = _merge_settled(task, state.truth.known.own >= 0)
    alone = isinstance(state.truth, Truth) and state.truth.loss == LABEL_WISE
    merged = _merge_labels(state) if alone else merge_equal(task)
    total = float(task.weight.sum())
    return _find_minimum(ExampleState(merged, state.loss, False, state.threads), slope, penalty, total)


def _take_newton_step(state: ExampleState, penalty: Penalty) -> tuple[Array, float]:
    k, everyone = state.n_labels, state.everyone
    layout = choose_layout(state.loss, k, single=False)
    own = type(layout) is type(state.layout)
    layout = state.layout if own else layout
    statistics = state.statistics if own else make_zeros((len(everyone), count_columns(layout)))
    state.write_as(layout, statistics, everyone)
    head, room = np.zeros(pad(k))[:k], make_solver_buffers(layout)
    gain, _ = fit_head(layout, statistics, everyone, state.task.weight, penalty, room, head)
    return head, gain


def merge_equal(task: Task) -> Task:
    """The task with one example for all that have the same labels, and the same weights of labels."""
    Y, weight, label_weight = task.Y, task.weight, task.label_weight
    if Y.dtype != np.int8:  # targets: hardly any are the same
        return task._replace(columns=None)
    words = pack_bits(Y > 0 if label_weight is None else (Y > 0) & (label_weight > 0))
    if label_weight is not None:
        simple = ((label_weight == 0) | (label_weight == 1)).all()
        weights = pack_bits(label_weight > 0) if simple else np.ascontiguousarray(label_weight).view(np.uint64).T
        words = np.vstack([words, weights])
    first, group = group_equal(words)
    some = None if label_weight is None else label_weight[first]
    return Task(None, Y[first], np.bincount(group, weights=weight).astype(np.float64), some)


def _merge_labels(state: ExampleState) -> Task:
    """The task with two examples, of all labels and of none: a label weighs as much as those that have it, or not."""
    task, label_weight = state.task, state.label_weight
    sums, signed = np.zeros((2, state.n_labels))
    for rows in state.list_blocks():
        weight = np.broadcast_to(task.weight[rows, None], (len(rows), state.n_labels))
        if label_weight is not None:
            weight = weight * label_weight[rows]
        sums += weight.sum(axis=0)
        signed += (weight * task.Y[rows]).sum(axis=0)
    both = np.repeat(np.array([[1], [-1]], dtype=np.int8), state.n_labels, axis=1)
    return Task(None, both, np.ones(2), np.maximum([sums + signed, sums - signed], 0.0) / 2)


def _merge_settled(task: Task, settled: NDArray[np.bool_]) -> tuple[Task, Array]:
    """The task with one example for all whose label vectors are known ones, and by how much their loss is steeper."""
    if not settled.any():
        return task, np.zeros(task.Y.shape[1])
    first, total = int(settled.argmax()), float(task.weight[settled].sum())
    slope = total * (task.Y[first] > 0) - task.weight[settled] @ (task.Y[settled] > 0)
    weight, kept = task.weight.copy(), ~settled
    weight[first], kept[first] = total, True
    some = None if task.label_weight is None else task.label_weight[kept]
    return Task(None, task.Y[kept], weight[kept], some), slope


def _find_minimum(state: ExampleState, slope: Array, penalty: Penalty, total: float) -> tuple[Array, float]:
    """The best constant and its gain; the loss is that of the examples, and what is linear in the scores.

    `total` is the weight of all examples before they were merged.
    """
    k, weight = state.n_labels, state.task.weight

    def rate(p: Array) -> float:
        state.scores[:, :k] = p
        return state.mean_loss() * float(weight.sum()) + float(slope @ p)

    def derive(p: Array) -> tuple[Array, Solve]:
        state.scores[:, :k] = p
        state.write()
        sums = weight @ state.statistics
        return sums[:k] + slope, _make_solver(state, sums, penalty.l2)

    return minimise_constant(k, rate, derive, (penalty.l1, penalty.l2), total)


def _make_solver(state: ExampleState, sums: Array, l2: float) -> Solve:
    """Solves (H + l2 I) x = z for some of the labels; the others, and those without curvature, stay 0."""
    layout, weight, k = state.layout, state.task.weight, state.n_labels
    width = pad(k)
    if isinstance(layout, Dense):
        room, head = make_solver_buffers(layout), np.empty(k)
        A, L = shape_system(k, room)

        def solve(z: Array, free: np.ndarray) -> Array:
            unpack(k, sums, 0.0, A, head)
            A[:, :k] *= np.outer(free, free)
            solve_system(-z, Penalty(0.0, l2), A, L, head)
            return head.copy()

        return solve

    d = sums[width : width + k] + l2

    def divide(z: Array, free: np.ndarray) -> Array:
        free = free & (d > FLOOR)
        return np.where(free, z, 0.0) / np.where(free, d, 1.0)

    if isinstance(layout, Diagonal):
        return divide
    b = state.statistics[:, layout.b * width : layout.b * width + k]

    def iterate(z: Array, free: np.ndarray) -> Array:
        free = free & (d > FLOOR)

        def multiply(v: Array) -> Array:
            return np.where(free, d * v - (weight * (b @ v)) @ b, v)

        with np.errstate(divide="ignore", invalid="ignore"):  # a huge l2 leaves nothing to be solved
            return _solve_by_steps(np.where(free, z, 0.0), multiply, np.where(free, d, 1.0))

    return iterate


def _solve_by_steps(z: Array, multiply: Callable[[Array], Array], diagonal: Array) -> Array:
    """Conjugate gradients, preconditioned by the diagonal; SciPy's would take longer to be called than to be run."""
    x, left, direction = np.zeros_like(z), z.copy(), np.zeros_like(z)
    enough, last = TOLERANCE * np.linalg.norm(z), 1.0
    for _ in range(len(z) + 10):
        if enough == 0 or np.linalg.norm(left) < enough:
            break
        step = left / diagonal
        size = np.dot(left, step)
        direction = step + (size / last) * direction
        image = multiply(direction)
        length = size / (direction @ image)
        x += length * direction
        left -= length * image
        last = size
    return x
