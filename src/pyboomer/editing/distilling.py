"""Distilling makes the best small model of a large one: few rules, or beginnings of rules, with heads learned jointly.

Every body that a model has learned, and every beginning of it, is a candidate. The one that promises the largest gain
for its conditions is chosen, then the next one, given those before (forward selection). Now and then, and at the end,
the heads of all that were chosen are fitted together (fully corrective boosting): the loss plus a penalty

    1/2 sum_k l_k |w_k|^2,   l_k = shrinkage * (curvature of label k, over all examples, before any rule)

on the scores w_k that rules have for a label. So a penalty means the same for frequent and for rare labels. Its size
matters more than which rules are chosen, and how large it should be depends on the data. It is the one that does best
on a third of the examples, if rules are chosen and fitted without them. Labels differ too: one that is hard to predict
needs a larger penalty. So each may have its own, but it must be worth it. The loss of the third is minus a logarithm of
probabilities, and a shrinkage that is twice or half as large as the common one is so much less probable beforehand as
one standard deviation is (a log-normal prior).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from pyboomer.arrays import Array
from pyboomer.data.examples import Examples
from pyboomer.editing.edits import Model, collect_rules, read_for, refit_heads, replace_rules, tighten
from pyboomer.engine.cpu.state import ExampleState
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.protocol import Settings, Task
from pyboomer.estimator import RuleEstimator
from pyboomer.explore.curves import SizeCurve
from pyboomer.learning.sizing import make_settings
from pyboomer.learning.training import find_scales, take_targets
from pyboomer.predicting.scores import find_covered
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.rule import Condition, Rule

Floats = NDArray[np.float32]  # coverage as numbers, for products of matrices

LONGEST = 5  # conditions of a candidate: longer ones were not chosen, or did not help
SHRINKAGES = tuple(8 * 0.5**i for i in range(10))  # from more than is best for emotions to less than for slashdot
PATIENCE = 3  # as many smaller ones that are worse are tried
SPREAD = np.log(2)  # how far the shrinkages of labels are from the common one, usually
USUAL = 0.1  # that of the selection, which hardly depends on it
HELD_OUT = 3  # one of so many examples tells which is best
FEWEST = 12  # examples that can be split
STEPS, TOLERANCE = 60, 1e-5  # of L-BFGS, when it is to end at a minimum ...
FEW_STEPS = 8  # ... and in between
RARE = 1e-3  # of the largest curvature: no label counts as rarer
SHORTLIST, ROUNDS = 400, 8  # the best candidates, and how many rules are chosen before all are looked at again
GROWTH = 1.1  # how many times as many rules there are when heads are next fitted jointly
MOST_CELLS = 2**26  # candidates times examples to choose by: 256 MB
LEAST = 1e-7  # a gain, as a share of the loss, that helps nobody
CURVE = (50, 100, 200, 500)  # conditions of a size curve


def distil(
    model: Model,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    n_rules: int | None = None,
    n_conditions: int | None = None,
) -> Model:
    """Make a small model of a fitted one: the few rules that matter most, with heads learned again.

    Parameters
    ----------
    model : fitted estimator
        It stays as it is. Its rules and their beginnings are the candidates: 1000 rules are better than 100.
    X, y, sample_weight : as in `fit`
        The examples that the model was learned from, or others like them.
    n_rules : int, optional
        The largest number of rules, default rule included.
    n_conditions : int, optional
        The largest number of conditions of all rules together. Give either this or `n_rules`.

    Returns
    -------
    model : estimator of the same kind
        It may have fewer rules than allowed, if no more help. Decoding and known label vectors are those of the model.
        A calibration of probabilities is dropped.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier, distil
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=30, random_state=1).fit(digits.X[:300], digits.Y[:300])
    >>> small = distil(clf, digits.X[:300], digits.Y[:300], n_conditions=20)
    >>> len(clf.rules_.condition_features), len(small.rules_.condition_features)
    (92, 20)
    """
    budgets = {"n_rules": n_rules, "n_conditions": n_conditions}
    given = {name: limit for name, limit in budgets.items() if limit is not None}
    if len(given) != 1:
        raise ValueError(f"give either n_rules or n_conditions, got {'both' if given else 'neither'}")
    [(name, limit)] = given.items()
    limit = _check_budget(name, limit)
    examples = read_for(model, X, y, sample_weight)
    return _distil(model, examples, [limit - 1 if name == "n_rules" else limit], by_rules=name == "n_rules")[0]


def size_curve(
    model: RuleEstimator,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    n_conditions: Sequence[int] = CURVE,
) -> SizeCurve:
    """Compare small models made of a fitted one: its first rules, the same rules refitted, and distilled rules.

    Parameters
    ----------
    model : fitted estimator
    X, y : as in `fit`
        The examples that the model was learned from; small models learn from them, too.
    X_test, y_test : optional
        Examples to judge them on, by the mean loss that the model minimises; by default X and y.
    n_conditions : list of int, default=(50, 100, 200, 500)
        The largest numbers of conditions of all rules together.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.editing import size_curve
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=30, random_state=1).fit(digits.X[:300], digits.Y[:300])
    >>> curve = size_curve(clf, digits.X[:300], digits.Y[:300], n_conditions=[10])
    >>> curve
    <SizeCurve of cut, refitted, distilled models: 10 to 10 conditions>
    >>> bool((curve.losses["distilled"] < curve.losses["cut"]).all())
    True
    """
    sizes = [_check_budget("n_conditions", size) for size in n_conditions]
    if not sizes or any(a >= b for a, b in pairwise(sizes)):
        raise ValueError(f"n_conditions must be ascending numbers, got {list(n_conditions)}")
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together: give both or neither")
    examples = read_for(model, X, y)
    judged = examples if X_test is None else read_for(model, X_test, y_test)
    rules = model.rules_
    cut = [replace_rules(model, rules[: max(1, int((rules.condition_offsets[1:] <= size).sum()))]) for size in sizes]
    models = {
        "cut": cut,
        "refitted": [refit_heads(small, X, y) for small in cut],
        "distilled": _distil(model, examples, sizes, by_rules=False),
    }
    # by the loss of the model: the known label vectors of others may differ, and that of a joint loss with them
    own = model.get_fitted()
    losses = {way: [own.measure(judged, m.rules_) for m in ms] for way, ms in models.items()}
    counts = {way: [len(m.rules_) for m in ms] for way, ms in models.items()}
    return SizeCurve(
        np.array(sizes),
        {way: np.array(values) for way, values in losses.items()},
        {way: np.array(values) for way, values in counts.items()},
    )


def _check_budget(name: str, limit: Any) -> int:
    try:
        limit = index(limit)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {limit!r}") from None
    if limit < 1:
        raise ValueError(f"{name} must be at least 1, got {limit}")
    return limit


def _distil(model: Model, examples: Examples, budgets: Sequence[int], by_rules: bool) -> list[Model]:
    """A small model for each budget, which ascend: those of a smaller one are the first of a larger one."""
    rng = np.random.default_rng(0)
    n = len(examples.Y)
    bodies = _list_bodies(model.rules_)
    sample = np.sort(rng.permutation(n)[: max(1, MOST_CELLS // max(1, len(bodies)))])
    pool = _make_pool(bodies, model, examples.take(sample), by_rules)
    settings = make_settings(model.get_fitted(), examples, seed=0)
    task = Task(None, *take_targets(examples, find_scales(examples.Y, settings.loss)[0]))
    shrinkages = [np.full(task.Y.shape[1], USUAL)] * len(budgets)
    if len(sample) >= FEWEST:
        is_held_out = rng.permutation(len(sample)) % HELD_OUT == 0
        learned, judged = (Objective(settings, task, sample[part]) for part in (~is_held_out, is_held_out))
        part = pool._replace(covered=np.ascontiguousarray(pool.covered[:, ~is_held_out]))
        firsts = _cut(_select(learned, part, budgets[-1]), pool, budgets)
        shrinkages = [
            _find_shrinkages(learned, judged, _cover(pool, first), is_held_out, _mask(pool, first)) for first in firsts
        ]
    choices = _select(Objective(settings, task, sample), pool, budgets[-1])
    whole = Objective(settings, task, np.arange(n))
    parts = zip(_cut(choices, pool, budgets), shrinkages, strict=True)
    return [_make_model(model, examples, whole, pool, first, each) for first, each in parts]


# --- Candidates -------------------------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """The P candidates, and what is known of them for n examples."""

    rules: RuleEnsemble
    covered: Floats  # (P, n): 1 where a candidate covers an example
    labels: NDArray[np.bool_]  # (P, K): those that its head is about
    costs: NDArray[np.int64]  # (P,): what it takes of the budget

    def take(self, some: NDArray[Any]) -> "Pool":
        """Some of the candidates: a mask, or their numbers; without the rules, of which nobody asks."""
        return self._replace(covered=self.covered[some], labels=self.labels[some], costs=self.costs[some])


def _list_bodies(rules: RuleEnsemble) -> list[Rule]:
    """Every beginning of a body, and what the head is about, once, short ones first; there are no default rules."""
    found: dict[tuple[frozenset[Condition], tuple[int, ...]], Rule] = {}
    for rule in rules:
        for length in range(1, min(len(rule.body), LONGEST) + 1):
            body = tighten(rule.body[:length])
            if body is not None:
                found.setdefault((frozenset(body), rule.labels), replace(rule, body=body))
    return sorted(found.values(), key=lambda rule: len(rule.body))


def _make_pool(bodies: Sequence[Rule], model: RuleEstimator, examples: Examples, by_rules: bool) -> Pool:
    """The candidates that cover some of the examples, not all; of several that cover the same ones, the shortest."""
    n, n_labels = examples.Y.shape
    candidates = collect_rules(bodies, model.rules_)
    covered = np.zeros((len(bodies), n), dtype=np.float32)
    kept: dict[tuple[bytes, tuple[int, ...]], int] = {}
    for t, rows in enumerate(find_covered(candidates, examples.matrix)):
        if 0 < len(rows) < n:
            covered[t, rows] = 1.0
            kept.setdefault((np.packbits(covered[t] > 0).tobytes(), bodies[t].labels), t)
    chosen = list(kept.values())
    labels = np.zeros((len(chosen), n_labels), dtype=bool)
    for row, t in zip(labels, chosen, strict=True):
        row[list(bodies[t].labels)] = True
    costs = np.array([1 if by_rules else len(bodies[t].body) for t in chosen], dtype=np.int64)
    return Pool(candidates[chosen], covered[chosen], labels, costs)


def _cover(pool: Pool, choices: Sequence["Choice"]) -> Floats:
    """What the default rule and those chosen cover, a row each."""
    everyone = np.ones((1, pool.covered.shape[1]), dtype=np.float32)
    return np.vstack([everyone, pool.covered[[choice.candidate for choice in choices]]])


def _mask(pool: Pool, choices: Sequence["Choice"]) -> NDArray[np.bool_]:
    """The labels that the default rule and those chosen are about, a row each."""
    everything = np.ones((1, pool.labels.shape[1]), dtype=bool)
    return np.vstack([everything, pool.labels[[choice.candidate for choice in choices]]])


# --- Heads ------------------------------------------------------------------------------------------------------------


class Objective:
    """The loss of some examples, as it depends on their scores."""

    def __init__(self, settings: Settings, task: Task, rows: NDArray[np.int64]) -> None:
        label_weight = None if task.label_weight is None else task.label_weight[rows]
        own = Task(None, task.Y[rows], task.weight[rows], label_weight)
        self.loss = settings.loss
        self.state = ExampleState(own, self.loss, single=True, threads=Threads())
        self.k = self.state.n_labels
        self.begin = self.state.scores[:, : self.k].copy()
        self.weight = own.weight
        self.default_l2 = settings.default_l2
        self.default, self.curvature = np.zeros((1, self.k)), np.ones(self.k)
        everyone = np.ones((1, len(rows)), dtype=np.float32)
        self.default = _fit_heads(self, everyone, np.ones((1, self.k), dtype=bool), USUAL, self.default, STEPS)
        curvature = self.derive(everyone.T @ self.default)[1].sum(axis=0)
        self.curvature = np.maximum(curvature, RARE * curvature.max()) + np.finfo(np.float64).tiny

    def rate(self, F: Array | Floats) -> float:
        """The sum of the losses."""
        self.state.scores[:, : self.k] = F + self.begin
        return self.state.mean_loss() * float(self.weight.sum())

    def derive(self, F: Array | Floats) -> tuple[Array, Array]:
        """Gradients and the diagonals of the Hessians, (n, K) each."""
        self.state.scores[:, : self.k] = F + self.begin
        self.state.write()
        statistics, weight = self.state.statistics, self.weight[:, None]
        width = statistics.shape[1] // 2  # a section for each of the two
        return weight * statistics[:, : self.k], weight * statistics[:, width : width + self.k]


def _fit_heads(
    objective: Objective, covered: Floats, labels: NDArray[np.bool_], shrinkage: float | Array, start: Array, steps: int
) -> Array:
    """The (m, K) scores of m rules, the default rule first, that minimise the loss and the penalty together."""
    unit = np.broadcast_to(1 / np.sqrt(objective.curvature), labels.shape)  # in which scores have about the same size
    penalty = np.full(labels.shape, shrinkage)
    penalty[0] = objective.default_l2 * unit[0] ** 2
    W = np.zeros(labels.shape)

    def rate(v: Array) -> tuple[float, Array]:
        W[labels] = v * unit[labels]
        F = covered.T @ W.astype(np.float32)
        value = objective.rate(F) + 0.5 * float(penalty[labels] @ v**2)
        G = covered @ objective.derive(F)[0].astype(np.float32)
        return value, G[labels] * unit[labels] + penalty[labels] * v

    options = {"maxiter": steps, "ftol": TOLERANCE}
    best = minimize(rate, start[labels] / unit[labels], jac=True, method="L-BFGS-B", options=options).x
    W[labels] = best * unit[labels]
    return W


def _fit_path(
    objective: Objective, covered: Floats, labels: NDArray[np.bool_], shrinkages: Iterable[float | Array]
) -> Iterator[Array]:
    """The heads for each shrinkage, which descend; each is where the next one begins."""
    W = np.zeros(labels.shape)
    W[0] = objective.default
    for shrinkage in shrinkages:
        W = _fit_heads(objective, covered, labels, shrinkage, W, STEPS)
        yield W


def _find_shrinkages(
    learned: Objective,
    judged: Objective,
    covered: Floats,
    is_held_out: NDArray[np.bool_],
    labels: NDArray[np.bool_],
) -> Array:
    """The shrinkage of each label: the one that is best for all together, or one that is better for the label alone."""
    scores: list[Array] = []
    losses: list[float] = []
    for W in _fit_path(learned, covered[:, ~is_held_out], labels, SHRINKAGES):
        scores.append(covered[:, is_held_out].T @ W)
        losses.append(judged.rate(scores[-1]))
        best = int(np.argmin(losses))
        if len(losses) > best + PATIENCE:
            break
    tried = np.array(SHRINKAGES[: len(losses)])
    slopes = [judged.derive(F)[0] for F in scores]
    # what each label adds to the difference of the losses: an integral of slopes, by the trapezoidal rule
    differences = [
        (0.5 * (slopes[best] + slope) * (F - scores[best])).sum(axis=0) for slope, F in zip(slopes, scores, strict=True)
    ]
    surprise = 0.5 * (np.log(tried / tried[best]) / SPREAD) ** 2
    return tried[np.argmin(np.array(differences) + surprise[:, None], axis=0)]


# --- Selection --------------------------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """A candidate that was chosen, and the gain that it promised."""

    candidate: int
    gain: float


def _select(objective: Objective, pool: Pool, limit: int) -> list[Choice]:
    """The candidates that are best for their costs, one after another, as long as there is room and any helps."""
    choices: list[Choice] = []
    W, fitted = objective.default, 1
    F = np.repeat(W, pool.covered.shape[1], axis=0)
    free, left = np.ones(len(pool.costs), dtype=bool), limit
    l2 = (USUAL * objective.curvature).astype(np.float32)
    shortlist, near, rounds = np.empty(0, dtype=np.intp), pool, 0
    least = LEAST * abs(objective.rate(F))
    while True:
        G, H = (part.astype(np.float32) for part in objective.derive(F))
        allowed = free & (pool.costs <= left)
        if rounds == 0:
            gains = np.where(allowed, _rate_candidates(pool, G, H, l2)[0], -np.inf)
            shortlist = np.argsort(-gains, kind="stable")[:SHORTLIST]
            near, rounds = pool.take(shortlist), ROUNDS
        if not allowed[shortlist].all():
            near, shortlist = near.take(allowed[shortlist]), shortlist[allowed[shortlist]]
        if len(shortlist) == 0 and rounds == ROUNDS:
            return choices
        gains, heads = _rate_candidates(near, G, H, l2)
        if len(gains) == 0 or gains.max() <= least:
            if rounds == ROUNDS:
                return choices
            rounds = 0
            continue
        best = int(gains.argmax())
        t = int(shortlist[best])
        choices.append(Choice(t, float(gains[best] * pool.costs[t])))
        free[t], left, rounds = False, left - int(pool.costs[t]), rounds - 1
        W = np.vstack([W, heads[best]])
        if len(W) >= GROWTH * fitted:
            covered = _cover(pool, choices)
            W, fitted = _fit_heads(objective, covered, _mask(pool, choices), USUAL, W, FEW_STEPS), len(W)
            F = covered.T @ W
        else:
            F = F + np.outer(pool.covered[t], heads[best])


def _rate_candidates(pool: Pool, G: Floats, H: Floats, l2: Floats) -> tuple[Floats, Floats]:
    """The gains of the candidates for their costs (Eq. 17), and their heads."""
    g, h = pool.covered @ G, pool.covered @ H
    heads = np.where(pool.labels, -g / (h + l2), np.float32(0))
    return -0.5 * (g * heads).sum(axis=1) / pool.costs, heads


def _cut(choices: Sequence[Choice], pool: Pool, budgets: Sequence[int]) -> list[list[Choice]]:
    """The first choices that each budget allows."""
    spent = np.cumsum([pool.costs[choice.candidate] for choice in choices])
    return [list(choices[: int((spent <= budget).sum())]) for budget in budgets]


def _make_model(
    model: Model, examples: Examples, objective: Objective, pool: Pool, choices: Sequence[Choice], shrinkages: Array
) -> Model:
    """A copy of the model with the rules chosen, and heads that are learned from all examples."""
    chosen = pool.rules[[choice.candidate for choice in choices]]
    covered, labels = np.ones((len(chosen) + 1, len(examples.Y)), dtype=np.float32), _mask(pool, choices)
    for row, rows in zip(covered[1:], find_covered(chosen, examples.matrix), strict=True):
        row[:] = 0.0
        row[rows] = 1.0
    *_, W = _fit_path(
        objective, covered, labels, (np.maximum(s, shrinkages) for s in SHRINKAGES if s >= shrinkages.min())
    )
    scale, loss_scale = find_scales(examples.Y, objective.loss)
    zero, constant = np.zeros(examples.Y.shape), np.repeat(objective.default, len(examples.Y), axis=0)
    first = objective.rate(zero) - objective.rate(constant)
    gains = [max(0.0, first), *(choice.gain for choice in choices)]
    names = model.rules_.label_names
    rules = []
    for t, rule in enumerate([Rule((), (), (), ()), *chosen]):
        own = np.flatnonzero(labels[t]).tolist()
        rules.append(
            replace(
                rule,
                labels=tuple(own),
                scores=tuple((scale * W[t, own]).tolist()),
                label_names=tuple(names[k] for k in own),
                coverage=float(covered[t] @ examples.weight),
                gain=loss_scale * gains[t],
            )
        )
    small = replace_rules(model, collect_rules(rules, model.rules_))
    small.training_facts_.update(examples=len(examples.Y), loss=small.get_fitted().measure(examples))
    return small
