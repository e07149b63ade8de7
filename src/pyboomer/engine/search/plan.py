"""The plan says how all rules of a model are learned, in the form that compiled code takes, with its memory.

Heads are about all labels, about one or about some; in the latter cases the first condition of a rule chooses the
labels, and from then on statistics and sums are about these alone. A head of one label has its own way to do so: packed
in pairs of numbers, for the covered examples only, it is rated several times faster than as a head of some labels that
happen to be one.
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.simd import make_zeros
from pyboomer.engine.heads import Penalty, SolverBuffers, make_solver_buffers
from pyboomer.engine.protocol import Settings, Task
from pyboomer.engine.sampling import Draw, Strata, count_examples, count_features, count_labels, make_draw
from pyboomer.engine.search.gains import HeadRating, OneLabel, Rating, make_rating, make_single_rating
from pyboomer.engine.search.histograms import BinBuffer, make_bin_buffer
from pyboomer.engine.search.sweeping import Runs, make_runs
from pyboomer.engine.statistics import Diagonal, Layout, Outer, count_columns, resize
from pyboomer.losses import Loss
from pyboomer.losses.compiled import GRADIENT_IS_B


class Sampling(NamedTuple):
    """How examples are sampled, and memory for what is drawn."""

    size: int  # of a sample; 0 for no sampling
    strata: Strata
    weights: Array  # of each example in the sample
    rows: Rows  # the examples: those sampled first


class Search(NamedTuple):
    """How conditions are searched for, and scratch for it."""

    seed: int
    min_coverage: float
    features: Draw
    runs: Runs
    bins: BinBuffer  # for histograms; empty if all examples are swept one by one


class AllLabels(NamedTuple):
    """Every rule may be about all labels."""

    draw: Draw
    layout: Layout  # of their statistics


class SomeLabels(NamedTuple):
    """A rule may be about some labels, drawn for each rule or taken in turn."""

    draw: Draw
    layout: Layout  # of the statistics of all labels
    in_turn: bool
    buffer: Array  # for the statistics of some


Labels = AllLabels | SomeLabels


class Complete(NamedTuple):
    """Heads about all labels."""

    penalty: Penalty
    layout: Layout
    rating: Rating
    buffers: SolverBuffers


class Single(NamedTuple):
    """Heads about one label."""

    penalty: Penalty
    layout: Diagonal
    choosing: Rating  # of the first condition
    settled: OneLabel  # of all others
    pairs: Array  # gradient and curvature of each example for the label
    gains: Array


class Partial(NamedTuple):
    """Heads about some labels."""

    penalty: Penalty
    layout: Layout
    choosing: HeadRating  # of the first condition
    settled: Rating  # of all others
    buffers: SolverBuffers
    statistics: Array  # memory for those of the labels chosen


Heads = Complete | Single | Partial


class Plan(NamedTuple):
    """How all rules are learned."""

    sampling: Sampling
    search: Search
    longest: int  # the most conditions that a body may have
    learning_rate: float


def is_single(head: str | int | float, n_labels: int) -> bool:
    """Whether heads are about one label, which is to be chosen."""
    return head == "single" or (isinstance(head, Integral) and int(head) == 1 < n_labels)


def make_plan(task: Task, settings: Settings, n_statistics: int) -> Plan:
    """Everything but the labels and the heads; with histograms of so many statistics, or none."""
    n, n_features, fixed = len(task.Y), len(task.columns.nominal), task.fixed_features
    n_samples = 0
    if settings.bootstrap:
        n_samples = count_examples(settings.max_samples, n, settings.sampling == "with-replacement")
    sampling = Sampling(n_samples, task.strata, np.empty(n), np.empty(n, dtype=np.uint32))
    features = make_draw(n_features, count_features(settings.max_features, n_features - len(fixed)), fixed)
    bins = make_bin_buffer(len(features.drawn) if n_statistics > 0 else 0, n_statistics)
    search = Search(int(settings.seed), float(settings.min_coverage), features, make_runs(n), bins)
    longest = n if settings.max_conditions is None else min(int(settings.max_conditions), n)
    return Plan(sampling, search, longest, float(settings.learning_rate))


def plan_labels(layout: Layout, n: int, settings: Settings) -> Labels:
    """Which labels a rule may be about."""
    n_drawn = count_labels(settings.max_labels, layout.n_labels)
    draw = make_draw(layout.n_labels, max(n_drawn, 1))
    if n_drawn == layout.n_labels:
        return AllLabels(draw, layout)
    size = count_columns(resize(layout, max(n_drawn, 1)))
    return SomeLabels(draw, layout, n_drawn == 0, make_zeros((n, size)).ravel())


def plan_heads(layout: Layout, n: int, settings: Settings, single: bool, loss: Loss) -> Heads:
    """How heads are learned, about labels of which there are as many as the layout says."""
    k, head = layout.n_labels, settings.head
    penalty = Penalty(float(settings.l1), float(settings.l2))
    if single:
        assert isinstance(layout, Diagonal)
        settled = OneLabel(penalty, *np.empty((3, 2)))
        choosing = make_single_rating(layout, penalty)
        return Single(penalty, layout, choosing, settled, np.empty((n, 2)), np.empty(k))
    size = min(int(head), k) if isinstance(head, Integral) else k
    share = 0.0 if isinstance(head, str | Integral) else float(head)
    exact = settings.search == "exact"
    of_body = Outer(k, 0) if loss in GRADIENT_IS_B and isinstance(layout, Outer) else layout  # at first, b is g
    rating, buffers = make_rating(of_body, penalty, k, 0.0, exact), make_solver_buffers(layout)
    if size == k and share == 0:
        return Complete(penalty, layout, rating, buffers)
    choosing = make_rating(of_body, penalty, size, share, exact)
    assert isinstance(choosing, HeadRating)
    return Partial(penalty, layout, choosing, rating, buffers, make_zeros((n, count_columns(layout))).ravel())
