"""Learning by bins: Algorithm 1 where examples are many, and sums over bins are all that is asked of them.

The loops are Python's: beside a sum over many examples that does not matter. Whoever holds the examples does the steps,
see `promise.Steps`. As soon as few examples are covered, they are swept one by one, as without bins.
"""

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.engine.heads import find_best_label
from pyboomer.engine.plan import Complete, Heads, Labels, Partial, Plan, Single
from pyboomer.engine.promise import Chunk, Steps
from pyboomer.engine.rating import Rating, choose_head, focus_rating
from pyboomer.engine.sampling import fill_with_draw, fill_with_labels
from pyboomer.engine.sweeping import sweep_bins
from pyboomer.rules.precision import NOISE

BINS_FROM = 512  # covered examples; fewer are swept one by one


def learn_rule(steps: Steps, labels: Labels, heads: Heads, plan: Plan, rule: int) -> Chunk:
    """Learn a rule (Alg. 1, lines 4 to 8); see `plan` for what all rules are learned with."""
    steps.begin(rule)  # line 5
    about = labels.draw.choices
    if labels.some:
        fill_with_labels(plan.search.seed, rule, labels.in_turn, labels.draw)
        about = labels.draw.drawn.copy()
        steps.focus(about)
    body = np.empty((plan.longest, 4))
    if isinstance(heads, Complete):
        size, _ = refine_rule(steps, heads.rating, plan, rule, body, 0, 0.0)  # line 6
        chosen = np.arange(len(about))
    elif isinstance(heads, Single):
        size, chosen = _learn_single(steps, heads, plan, rule, body)
    else:
        size, chosen = _learn_partial(steps, heads, plan, rule, body)
    steps.cover(body[:size])
    scores, gain, coverage = steps.fit_head(heads.penalty)  # line 7
    kept = (scores != 0) | (heads.penalty.l1 == 0)  # L1 regularisation leaves labels out
    kept[-1] |= not kept.any()  # if none is left: the last one, as in `cpu.boosting`
    about, scores = about[chosen[kept]], plan.learning_rate * scores[kept]  # line 8
    steps.apply(about, scores)  # line 4 of the next round
    return Chunk(
        n_conditions=np.array([size]),
        conditions=body[:size].copy(),
        n_scores=np.array([len(about)]),
        labels=about.astype(np.int32),
        scores=scores,
        coverage=np.array([coverage]),
        gain=np.array([gain]),
    )


def _learn_single(steps: Steps, heads: Single, plan: Plan, rule: int, body: Array) -> tuple[int, NDArray[np.int64]]:
    """The body of a rule about one label, which the first condition chooses; its number of conditions and the label."""
    choosing, settled = heads.choosing, heads.settled
    size, best = refine_rule(steps, choosing, plan, rule, body[:1], 0, 0.0)
    if size == 0:  # nothing to learn from the sample: the label that suits all examples best
        steps.cover(body[:0])
        steps.sum_covered(choosing.whole)
    else:
        steps.sum_sample(choosing.whole)
    label = find_best_label(heads.layout, choosing.whole, heads.penalty, heads.gains)
    steps.pair(label)
    if size > 0:
        settled.whole[:] = choosing.whole[label :: len(choosing.whole) // 2]
        size, _ = refine_rule(steps, settled, plan, rule, body, size, best, summed=True)
    return size, np.array([label])


def _learn_partial(steps: Steps, heads: Partial, plan: Plan, rule: int, body: Array) -> tuple[int, NDArray[np.int64]]:
    """The body of a rule about some labels, which the first condition chooses; its number of conditions, the labels."""
    choosing = heads.choosing
    size, best = refine_rule(steps, choosing, plan, rule, body[:1], 0, 0.0)
    if size == 0:  # nothing to learn from the sample: the labels that suit all examples best
        steps.cover(body[:0])
        weight = steps.sum_covered(choosing.whole)
    else:
        weight = steps.sum_sample(choosing.whole)
    chosen = choosing.labels[: choose_head(choosing, choosing.whole, weight)].copy()
    steps.focus(chosen)
    if size > 0:
        settled = focus_rating(heads.settled, len(chosen))
        size, _ = refine_rule(steps, settled, plan, rule, body, size, best)
    return size, chosen


def refine_rule(
    steps: Steps, rating: Rating, plan: Plan, rule: int, body: Array, size: int, best: float, summed: bool = False
) -> tuple[int, float]:
    """Algorithm 3 by bins: `refinement.refine_rule`, which takes over where few examples are covered.

    `summed` says that `rating.whole` has the sums of what is covered. Returns the number of conditions and the gain.
    """
    search = plan.search
    features = search.features
    while size < len(body):
        if steps.n_covered < BINS_FROM:
            if not summed:
                steps.sum_sample(rating.whole)
            return steps.refine(rating, rule, body, size, best)
        best = max(best, NOISE * steps.weight)
        fill_with_draw(search.seed, rule, size + 1, features)
        bins, nominal = steps.sum_bins(features.drawn)
        best, place, operator, value = sweep_bins(bins, nominal, rating, search.runs, search.min_coverage, best)
        if place < 0:
            break
        feature = int(features.drawn[place])
        steps.narrow(feature, operator, value)
        summed = False
        body[size] = feature, operator, value, best
        size += 1
    return size, best
