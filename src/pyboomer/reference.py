"""The reference is the paper in plain NumPy: Algorithms 1, 2 and 3 and the two prediction rules, nothing else.

It is read first and trusted most: the compiled engine must learn the same rules. To check it, hold "Learning Gradient
Boosted Multi-label Classification Rules" (ECML-PKDD 2020) beside it. It is slow, because it keeps a K x K Hessian per
example and solves every candidate; sums over sorted values and batched solves are its only liberties.

Here `Y` holds -1 and +1, a nominal feature holds category codes, and NaN is a missing value, which meets no condition.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.losses import Loss, dense_hessians
from pyboomer.losses.constant import minimise_constant
from pyboomer.rules.precision import FLOOR, NOISE, TIE, midpoint

Condition = tuple[int, str, float]  # feature, operator, value
GROWTH = 25  # a round that begins with rule t has t / 25 rules, if it may have as many


@dataclass(frozen=True)
class Setting:
    """What the learner may choose: the inputs of Algorithm 1, and the details that the paper leaves open.

    Examples
    --------
    >>> from pyboomer.losses import example_wise_logistic
    >>> from pyboomer.reference import Setting
    >>> Setting(example_wise_logistic, n_rules=10).learning_rate
    0.3
    """

    loss: Loss
    head: str | int | float = "multi"  # "single", a number of labels, or a share of the largest gain
    default_rule: str = "minimum"  # or "newton", the paper's
    n_rules: int = 100
    rules_per_round: int = 1  # at most; 1, as in the paper, unless many examples are learned from
    learning_rate: float = 0.3
    l1: float = 0.0
    l2: float = 1.0
    bootstrap: bool = True
    n_samples: int | None = None
    strata: tuple[Any, Any] = ((), ())  # to sample from: all examples, group by group, and where each group ends
    n_drawn_labels: int | None = None
    n_drawn_features: int | None = None
    fixed_features: tuple[int, ...] = ()
    nominal: tuple[int, ...] = ()
    max_conditions: int | None = None
    min_coverage: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class ReferenceRule:
    """A rule of a body and a head; the head has an entry for every label.

    It is f: b -> p of Section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.reference import ReferenceRule, covers
    >>> rule = ReferenceRule(body=((0, "<=", 3.0),), head=np.array([0.5, -0.4]))
    >>> covers(rule.body, np.array([[1.0], [5.0]]))
    array([ True, False])
    """

    body: tuple[Condition, ...]
    head: Array
    gain: float = 0.0
    shares: tuple[float, ...] = ()  # what part of the gain each condition brought, in the sample


def meets(x: Array, operator: str, value: float) -> NDArray[np.bool_]:
    """Which of the values of a feature meet a condition; a missing value meets none."""
    with np.errstate(invalid="ignore"):
        met = {"<=": x <= value, ">": x > value, "==": x == value, "!=": x != value}[operator]
    return met & ~np.isnan(x)


def covers(body: tuple[Condition, ...], X: Array) -> NDArray[np.bool_]:
    """b(x) for every row: whether it meets all conditions of the body."""
    covered = np.ones(len(X), dtype=bool)
    for feature, operator, value in body:
        covered &= meets(X[:, feature], operator, value)
    return covered


# --- Algorithm 1: learning an ensemble of boosted classification rules ------------------------------------------------


def learn_rules(
    X: Array, Y: Array, setting: Setting, sample_weight: Array | None = None, label_weight: Array | None = None
) -> list[ReferenceRule]:
    """Learn the ensemble F = {f_1, ..., f_T}; f_1 is the default rule. A label of weight 0 is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.losses import label_wise_logistic
    >>> from pyboomer.reference import Setting, learn_rules
    >>> X = np.arange(20.0)[:, None]
    >>> Y = np.where(np.hstack([X > 9, X > 14]), 1.0, -1.0)
    >>> rules = learn_rules(X, Y, Setting(label_wise_logistic, n_rules=3, bootstrap=False))
    >>> rules[1].body
    ((0, '<=', np.float64(9.5)),)
    """
    n, n_labels = Y.shape
    weight = np.ones(n) if sample_weight is None else sample_weight
    scores = np.zeros(Y.shape)

    find_default = find_minimum if setting.default_rule == "minimum" else take_newton_step
    head, gain = find_default(Y, setting, weight, label_weight)  # lines 1 and 2
    rules = [ReferenceRule((), head, gain)]
    scores += head
    t = 1
    while t < setting.n_rules:  # line 3
        # line 4; those of uncovered examples stay what they were
        g, *curvature = setting.loss.weighted_derivatives(Y, scores, label_weight)
        H = dense_hessians(setting.loss.shape, tuple(curvature))
        if setting.head in ("single", 1):
            H *= np.eye(n_labels)  # labels that never share a head
        bodies = [learn_body(X, weight, g, H, setting, t + i) for i in range(count_rules(t, setting))]
        for body, about, labels, shares in bodies[: setting.n_rules - t]:
            covered = covers(body, X)
            gh = sum_statistics(weight[covered], g[covered][:, about], H[covered][:, about[:, None], about])
            own_head, gain = find_head(*gh, setting.head, setting, labels)  # line 7
            head = np.zeros(n_labels)
            head[about] = setting.learning_rate * own_head  # line 8
            rules.append(ReferenceRule(body, head, gain, shares))
            scores[covered] += head
            g[covered] += H[covered] @ head  # to first order, for the next rules of the round
        t += len(bodies)
    return rules


def count_rules(t: int, setting: Setting) -> int:
    """How many rules there are in the round that begins with rule t: the first rules change much, and learn alone."""
    return max(min(t // GROWTH, setting.rules_per_round), 1)


def learn_body(
    X: Array, weight: Array, g: Array, H: Array, setting: Setting, t: int
) -> tuple[tuple[Condition, ...], NDArray[np.int64], NDArray[np.int64] | None, tuple[float, ...]]:
    """The body of rule t, the labels that it may be about, those of its head, and the shares of its conditions."""
    drawn = draw_examples(len(X), setting, t) if setting.bootstrap else np.ones(len(X))  # line 5
    about = np.arange(g.shape[1])
    if setting.n_drawn_labels is not None:
        about = draw_labels(g.shape[1], setting, t)
    body, labels, shares = refine_rule(X, drawn * weight, g[:, about], H[:, about[:, None], about], setting, t)
    return body, about, labels, shares  # line 6


def take_newton_step(Y: Array, setting: Setting, weight: Array, label_weight: Array | None) -> tuple[Array, float]:
    """The paper's default rule, one step from scores of 0: its head and gain."""
    return find_head(*sum_constant(np.zeros(Y.shape[1]), Y, setting, weight, label_weight), "multi", setting)


def find_minimum(Y: Array, setting: Setting, weight: Array, label_weight: Array | None) -> tuple[Array, float]:
    """Beyond the paper, as many steps as it takes: the scores of least loss that all examples can have."""
    about = np.arange(Y.shape[1])

    def rate(p: Array) -> float:
        return float(weight @ setting.loss.weighted_value(Y, np.tile(p, (len(Y), 1)), label_weight))

    def derive(p: Array) -> tuple[Array, Any]:
        g, H = sum_constant(p, Y, setting, weight, label_weight)
        regularised = replace(setting, l1=0.0)
        return g, lambda z, free: find_head(-z, H * np.outer(free, free), "multi", regularised, about)[0]

    return minimise_constant(Y.shape[1], rate, derive, (setting.l1, setting.l2), float(weight.sum()))


def sum_constant(
    p: Array, Y: Array, setting: Setting, weight: Array, label_weight: Array | None
) -> tuple[Array, Array]:
    """Sums of gradients and Hessians of all examples (line 1), which have the same scores."""
    g, *curvature = setting.loss.weighted_derivatives(Y, np.tile(p, (len(Y), 1)), label_weight)
    return sum_statistics(weight, g, dense_hessians(setting.loss.shape, tuple(curvature)))


# --- Draws: pure functions of (seed, rule, refinement step), by SplitMix64 (Steele, Lea and Flood, 2014) --------------

GOLDEN, MIX_1, MIX_2 = map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
LABELS_STEP = 2**40  # the stream that labels are drawn from; no rule has as many conditions
MOST_IN_A_ROW, EPOCH = 64, 256  # rules in a row about the same group of labels, at most, and in an epoch


def mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers; products overflow on purpose."""
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))


def draw_uniform(setting: Setting, rule: int, step: int, size: int) -> Array:
    """Numbers from 0 to 1 of the stream that belongs to a refinement step of a rule; step 0 is the sample."""
    z = mix(np.array([setting.seed], dtype=np.uint64) + GOLDEN)
    for part in (rule, step):
        z = mix(z + np.array([part], dtype=np.uint64) * GOLDEN)
    counter = z + np.arange(1, size + 1, dtype=np.uint64) * GOLDEN
    return np.asarray((mix(counter) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def draw_examples(n: int, setting: Setting, rule: int) -> Array:
    """How often each example is drawn for a rule: with replacement, or without it from strata, in their proportions."""
    size = setting.n_samples or n
    examples, ends = setting.strata
    if len(ends) == 0:
        drawn = (draw_uniform(setting, rule, 0, size) * n).astype(np.int64)
        return np.bincount(drawn, minlength=n).astype(np.float64)
    counts = np.zeros(n)
    shift, *uniform = draw_uniform(setting, rule, 0, n + 1)
    begin = taken = 0
    for end in ends:
        wanted = (size if end == n else int(size * (end / n) + shift)) - taken
        taken += wanted
        for i in range(begin, end):
            if int(uniform[i] * (end - i)) < wanted:
                counts[examples[i]] = 1.0
                wanted -= 1
        begin = end
    return counts


def draw_some(choices: NDArray[np.int64], size: int, setting: Setting, rule: int, step: int) -> NDArray[np.int64]:
    """Draw without replacement: the first places of a Fisher-Yates shuffle."""
    choices, size = choices.copy(), min(size, len(choices))
    for i, u in enumerate(draw_uniform(setting, rule, step, size)):
        j = i + int(u * (len(choices) - i))
        choices[[i, j]] = choices[[j, i]]
    return choices[:size]


def draw_features(n_features: int, setting: Setting, rule: int, step: int) -> NDArray[np.int64]:
    """The features of a refinement step, counted from 1: those drawn and those fixed, in ascending order."""
    choices = np.setdiff1d(np.arange(n_features), setting.fixed_features)
    drawn = draw_some(choices, setting.n_drawn_features or n_features, setting, rule, step)
    return np.sort(np.append(drawn, np.array(setting.fixed_features, dtype=np.int64)))


def draw_labels(n_labels: int, setting: Setting, rule: int) -> NDArray[np.int64]:
    """The labels that a rule may be about, in ascending order; one after the other, if none are to be drawn.

    In each epoch, they are shuffled and divided into groups. Some rules in a row are about a group: one in the first
    epoch, and four times as many in the next, up to 64, or 256 for all groups. If there is one group: always one.
    """
    if not setting.n_drawn_labels:
        return np.array([(rule - 1) % n_labels])
    size = setting.n_drawn_labels
    groups = n_labels // size
    epoch, place = 0, rule - 1  # place: how many rules of the epoch there are before
    while place >= groups * (turns := count_turns(epoch, groups)):
        epoch, place = epoch + 1, place - groups * turns
    group = place // turns
    drawn = draw_some(np.arange(n_labels), (group + 1) * size, setting, epoch, LABELS_STEP)
    return np.sort(drawn[group * size :])


def count_turns(epoch: int, groups: int) -> int:
    """How many rules in a row are about a group of an epoch."""
    return max(min(4 ** min(epoch, 3), MOST_IN_A_ROW, EPOCH // groups), 1) if groups > 1 else 1


# --- Algorithm 2: find_head -------------------------------------------------------------------------------------------


def sum_statistics(weight: Array, g: Array, H: Array) -> tuple[Array, Array]:
    """Sums of gradients and Hessians over the covered examples (line 1)."""
    return weight @ g, np.tensordot(weight, H, axes=1)


def find_head(
    g: Array, H: Array, head: str | int | float, setting: Setting, labels: NDArray[np.int64] | None = None
) -> tuple[Array, float]:
    """The scores that minimise the objective of a rule, Eq. 14 with Eq. 15, and the gain, minus that minimum.

    Only `labels` get a score; without them, those that suit the kind of head.
    """
    if labels is None:
        labels = choose_labels(g, np.diagonal(H), head, setting)
    scores = np.zeros(len(g))
    if setting.loss.shape == "diagonal":
        p, gains = solve_decomposable(g[labels], np.diagonal(H)[labels], setting)
    else:
        p, gains = solve_system(g[None, labels], H[None, labels[:, None], labels], setting)
    scores[labels] = p
    return scores, float(gains.sum())


def choose_labels(g: Array, h: Array, head: str | int | float, setting: Setting) -> NDArray[np.int64]:
    """The labels of a head: all, or those of the largest gains, each on its own; of equals, the first."""
    if head == "multi":
        return np.arange(len(g))
    left = solve_decomposable(g, h, setting)[1]
    if isinstance(head, float):
        return np.flatnonzero(left >= head * (1 - TIE) * left.max())
    chosen: list[int] = []
    while len(chosen) < min(1 if head == "single" else int(head), len(g)):
        chosen.append(first_largest(left))
        left[chosen[-1]] = -1.0
    return np.sort(chosen)


def first_largest(gains: Array) -> int:
    """The first of the largest gains, where equal means equal up to rounding."""
    best = 0
    for k, gain in enumerate(gains):
        if gain > gains[best] * (1 + TIE):
            best = k
    return best


def shrink(g: Array, l1: float) -> Array:
    """What L1 regularisation leaves of gradients."""
    return np.sign(g) * np.maximum(np.abs(g) - l1, 0.0)


def solve_decomposable(g: Array, h: Array, setting: Setting) -> tuple[Array, Array]:
    """Each label on its own: its score (Eq. 17) and its gain; both 0 where the denominator is degenerate."""
    g = shrink(g, setting.l1)
    denominator = h + setting.l2
    safe = denominator > FLOOR
    p = np.where(safe, -g / np.where(safe, denominator, 1.0), 0.0)
    return p, -0.5 * g * p


def solve_system(g: Array, H: Array, setting: Setting) -> tuple[Array, Array]:
    """Solve (H + l2 I) p = -g (Eq. 16) for a batch of systems: scores and gains.

    Elimination without exchanges, which a positive definite matrix does not need; a label whose pivot is degenerate
    leaves the system with score and gain 0.
    """
    k = g.shape[1]
    A = H + setting.l2 * np.eye(k)
    z = -shrink(g, setting.l1)
    L = np.zeros_like(A)
    gain = np.zeros(len(g))
    for j in range(k):
        pivot = A[:, j, j]
        safe = pivot > FLOOR
        pivot = np.where(safe, pivot, 1.0)
        L[:, :, j] = np.where(safe[:, None], A[:, :, j] / pivot[:, None], 0.0)
        L[:, : j + 1, j] = 0.0
        z[:, j] = np.where(safe, z[:, j], 0.0)
        gain += 0.5 * z[:, j] ** 2 / pivot
        A -= L[:, :, j, None] * A[:, None, j, :]
        z -= L[:, :, j] * z[:, j, None]
        z[:, j] /= pivot
    for j in reversed(range(k)):
        z[:, j] -= (L[:, :, j] * z).sum(axis=1)
    return z, gain


# --- Algorithm 3: refine_rule -----------------------------------------------------------------------------------------


def refine_rule(
    X: Array, weight: Array, g: Array, H: Array, setting: Setting, rule: int
) -> tuple[tuple[Condition, ...], NDArray[np.int64] | None, tuple[float, ...]]:
    """Add the best condition to the body as long as that improves the rule; the first one fixes the labels.

    Returns the body, the labels, and what part of the gain each condition has brought.
    """
    n_features = X.shape[1]
    body: tuple[Condition, ...] = ()
    reached: list[float] = []  # the gain with each condition
    labels: NDArray[np.int64] | None = None
    best = NOISE * weight.sum()  # the gain of no rule, 0, up to rounding
    sampled = weight > 0
    while setting.max_conditions is None or len(body) < setting.max_conditions:
        features = draw_features(n_features, setting, rule, len(body) + 1)  # line 2
        chosen: Condition | None = None
        for feature in features:  # line 3
            rows = sampled & ~np.isnan(X[:, feature])
            x, w = X[rows, feature], weight[rows]
            conditions, G, HH, W = sum_candidates(int(feature), x, w, g[rows], H[rows], feature in setting.nominal)
            if not conditions:
                continue
            gains = rate_candidates(G, HH, setting, labels)  # line 6
            gains[setting.min_coverage > W] = 0.0  # covers too few examples to be considered
            for c, gain in enumerate(gains):
                if gain > best * (1 + TIE):  # line 7
                    best, chosen = gain, conditions[c]
                    found = G[c], np.diagonal(HH[c])
        if chosen is None:
            break
        if labels is None:
            labels = choose_labels(*found, setting.head, setting)
        body, reached = (*body, chosen), [*reached, float(best)]
        sampled &= meets(X[:, chosen[0]], chosen[1], chosen[2])  # line 10
    return body, labels, tuple(np.diff(reached, prepend=0.0) / best)


def sum_candidates(
    feature: int, x: Array, w: Array, g: Array, H: Array, nominal: bool
) -> tuple[list[Condition], Array, Array, Array]:
    """All conditions on a feature, in the order of comparison, with the sums over the examples that meet them."""
    values, group = np.unique(x, return_inverse=True)
    if len(values) < 2:
        return [], g, H, w
    sums = [_sum_by_value(group, len(values), s) for s in (w[:, None] * g, w[:, None, None] * H, w)]
    totals = [s.sum(axis=0) for s in sums]
    conditions: list[Condition] = []
    if nominal:
        for value in values:
            conditions += [(feature, "==", float(value)), (feature, "!=", float(value))]
    else:
        for a, b in pairwise(values):
            threshold = midpoint(a, b)
            conditions += [(feature, "<=", threshold), (feature, ">", threshold)]
        sums = [np.cumsum(s, axis=0)[:-1] for s in sums]
    both = [np.stack([s, total - s], axis=1).reshape(-1, *s.shape[1:]) for s, total in zip(sums, totals, strict=True)]
    return conditions, both[0], both[1], both[2]


def _sum_by_value(group: NDArray[np.int64], n_values: int, s: Array) -> Array:
    sums = np.zeros((n_values, *s.shape[1:]))
    np.add.at(sums, group, s)
    return sums


def rate_candidates(G: Array, H: Array, setting: Setting, labels: NDArray[np.int64] | None) -> Array:
    """The gain of each candidate's best head."""
    if labels is None and setting.head == "single":
        return solve_decomposable(G, np.diagonal(H, axis1=1, axis2=2), setting)[1].max(axis=1)
    if labels is None and setting.head != "multi":  # each chooses its own
        return np.array([find_head(g, h, setting.head, setting)[1] for g, h in zip(G, H, strict=True)])
    if labels is not None:
        G, H = G[:, labels], H[:, labels[:, None], labels]
    if setting.loss.shape == "diagonal":
        return solve_decomposable(G, np.diagonal(H, axis1=1, axis2=2), setting)[1].sum(axis=1)
    return solve_system(G, H, setting)[1]


# --- Section 4.3: prediction ------------------------------------------------------------------------------------------


def predict_scores(rules: list[ReferenceRule], X: Array) -> Array:
    """Sum the heads of all rules that cover an example, for each example.

    This is equation 2.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.losses import label_wise_logistic
    >>> from pyboomer.reference import Setting, learn_rules, predict_scores
    >>> X = np.arange(20.0)[:, None]
    >>> Y = np.where(np.hstack([X > 9, X > 14]), 1.0, -1.0)
    >>> rules = learn_rules(X, Y, Setting(label_wise_logistic, n_rules=20, bootstrap=False))
    >>> np.sign(predict_scores(rules, X[[3, 12, 17]]))
    array([[-1., -1.],
           [ 1., -1.],
           [ 1.,  1.]])
    """
    scores = np.zeros((len(X), len(rules[0].head)))
    for rule in rules:
        scores[covers(rule.body, X)] += rule.head
    return scores


def predict_label_wise(scores: Array) -> Array:
    """sgn of each score, Eq. 18."""
    return np.where(scores > 0, 1.0, -1.0)


def predict_example_wise(scores: Array, Y: Array, loss: Loss) -> Array:
    """The label vector of the training data with the smallest loss, Eq. 19; equal losses: frequent, then early ones."""
    known, first, count = np.unique(Y, axis=0, return_index=True, return_counts=True)
    known = known[np.lexsort((first, -count))]
    losses = np.stack([loss.value(np.broadcast_to(y, scores.shape), scores) for y in known], axis=1)
    smallest = losses.min(axis=1, keepdims=True)
    return known[np.argmax(losses <= smallest + TIE * np.minimum(smallest, 1.0), axis=1)]  # a logarithm, if large
