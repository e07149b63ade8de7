"""A budget says how much of the paper's evaluation is computed: everything, or what fits into some time.

`FULL` is the paper's grid. What the others leave out is found by comparison with it (`list_cuts`), so that it cannot be
left unsaid. Tasks come in the order of their use: every data set and every approach with one setting first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from pyboomer.datasets.synthetic import KINDS
from pyboomer.experiments.tasks import APPROACHES, FIXED, RULES, STOPPED, Setting, Task

DATA = ("birds", "emotions", "enron", "llog", "medical", "scene", "slashdot", "yeast")  # in the order of Table 1
SYNTHETIC = tuple(f"synthetic-{kind}" for kind in KINDS)
RATES = (0.1, 0.3, 0.5)
L2 = (0.0, 0.25, 1.0, 4.0, 16.0, 64.0)
PAPER_GRID = tuple(product(RATES, L2))
STEP = 50  # rules between two predictions, for Table 1
MARKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)  # numbers of rules that Figure 1 marks
TRAJECTORY = tuple(sorted({*range(1, 17), *MARKS}))  # numbers of rules after which Figure 1 predicts

Pair = tuple[float, float]  # a learning rate and an L2 weight


@dataclass(frozen=True)
class Budget:
    """How much is computed; pairs are (learning rate, L2 weight), the most useful first.

    Attributes
    ----------
    n_folds : int
        Folds of the cross validation.
    rule_pairs, n_rules :
        Table 1, the four variants: settings, and rules at most.
    boosting_pairs, n_rounds, max_rounds :
        Table 1, XGBoost: settings; rounds without early stopping, and at most with it.
    max_rounds_powerset : int
        The same for label powersets, each round of which learns a tree per label vector.
    n_orders : int
        Random orders of the labels that a classifier chain is tried with, for each setting.
    n_trees : int
        Of the random forest.
    figure_pairs :
        Figure 1: settings.
    figure_folds : int
        Figure 1: how many of the ten folds are tested on.
    """

    name: str
    n_folds: int
    rule_pairs: tuple[Pair, ...]
    n_rules: int
    boosting_pairs: tuple[Pair, ...]
    n_rounds: int
    max_rounds: int
    max_rounds_powerset: int
    n_orders: int
    n_trees: int
    figure_pairs: tuple[Pair, ...]


QUICK = Budget(
    name="quick",
    n_folds=10,
    rule_pairs=((0.3, 1.0),),
    n_rules=500,
    boosting_pairs=((0.3, 1.0),),
    n_rounds=100,
    max_rounds=100,
    max_rounds_powerset=20,
    n_orders=1,
    n_trees=30,
    figure_pairs=((0.5, 1.0),),
)
STANDARD = Budget(
    name="standard",
    n_folds=10,
    rule_pairs=((0.3, 4.0), (0.3, 1.0), (0.5, 4.0), (0.1, 1.0), (0.3, 16.0), (0.1, 4.0)),
    n_rules=2000,
    boosting_pairs=((0.3, 1.0), (0.1, 1.0)),
    n_rounds=100,
    max_rounds=300,
    max_rounds_powerset=100,
    n_orders=2,
    n_trees=100,
    figure_pairs=((0.5, 1.0), (0.3, 1.0), (0.1, 1.0)),
)
FULL = Budget(
    name="full",
    n_folds=10,
    rule_pairs=PAPER_GRID,
    n_rules=10_000,
    boosting_pairs=PAPER_GRID,
    n_rounds=100,
    max_rounds=1000,
    max_rounds_powerset=1000,
    n_orders=10,
    n_trees=100,
    figure_pairs=PAPER_GRID,
)
BUDGETS = {budget.name: budget for budget in (QUICK, STANDARD, FULL)}

# CPU seconds of one of ten folds, measured once on a core of an AMD EPYC: 1000 rules of each variant; 100 rounds, or
# early stopping, of XGBoost BR, LP and CC; 100 trees. They decide nothing but the time that is said to be left.
SECONDS = {
    "birds": (0.13, 0.55, 0.17, 0.53, 1.3, 3.5, 1.6, 0.81, 2.2, 1.1, 0.98),
    "emotions": (0.12, 0.16, 0.12, 0.17, 0.46, 0.86, 0.48, 0.25, 0.45, 0.29, 0.46),
    "enron": (0.11, 0.2, 0.21, 0.34, 1.8, 11.0, 2.3, 1.0, 8.2, 1.6, 4.1),
    "llog": (0.14, 0.29, 0.26, 0.39, 2.7, 6.6, 3.8, 1.4, 2.5, 2.5, 3.8),
    "medical": (0.072, 0.23, 0.14, 0.36, 0.7, 1.3, 0.95, 0.81, 1.2, 1.1, 2.2),
    "scene": (0.69, 1.7, 0.72, 1.9, 3.5, 5.1, 4.2, 2.1, 3.3, 2.7, 2.8),
    "slashdot": (0.11, 0.55, 0.26, 0.6, 0.83, 3.6, 1.1, 1.2, 3.2, 1.4, 3.5),
    "yeast": (0.49, 0.9, 0.56, 0.93, 3.5, 9.0, 3.6, 1.2, 3.9, 2.1, 2.7),
    "synthetic-marginal-independence": (2.9, 2.6, 3.1, 2.9),
    "synthetic-marginal-dependence": (0.49, 0.34, 0.53, 0.39),
    "synthetic-conditional-dependence": (0.49, 0.34, 0.56, 0.38),
}


def guess_seconds(task: Task) -> float:
    """The CPU seconds that a task takes, roughly: a guess for the time that is left."""
    known = SECONDS.get(task.data, (1.0,) * len(APPROACHES))
    seconds = known[list(APPROACHES).index(task.approach)]
    if task.approach in STOPPED:
        return seconds  # whatever the limit
    return seconds * task.setting.size / (1000 if task.approach in RULES else 100)


def list_settings(budget: Budget, approach: str) -> list[Setting]:
    """The settings that an approach is tuned over for Table 1, the most useful first."""
    kind, parameters = APPROACHES[approach].kind, APPROACHES[approach].parameters
    if kind == "rules":
        return [Setting(budget.n_rules, rate, l2) for rate, l2 in budget.rule_pairs]
    if kind == "forest":
        return [Setting(budget.n_trees)]
    limit = budget.max_rounds_powerset if kind == "LP" else budget.max_rounds
    size = limit if parameters["early_stopping"] else min(budget.n_rounds, limit)
    orders: Sequence[int | None] = range(budget.n_orders) if kind == "CC" else [None]
    return [Setting(size, rate, l2, order) for order in orders for rate, l2 in budget.boosting_pairs]


def plan_table(budget: Budget, data: Sequence[str] = DATA, approaches: Iterable[str] = tuple(APPROACHES)) -> list[Task]:
    """The tasks of Table 1, in waves: every data set and every approach of the paper with one setting comes first."""
    stages = tuple(range(STEP, budget.n_rules + 1, STEP))
    planned = [
        (
            _find_wave(approach, number),
            Task(name, approach, setting, fold, budget.n_folds, stages * (approach in RULES)),
        )
        for name in data
        for approach in approaches
        for number, setting in enumerate(list_settings(budget, approach))
        for fold in range(budget.n_folds)
    ]
    planned.sort(key=lambda each: (each[0], guess_seconds(each[1])))  # within a wave, what takes least time
    return [task for _, task in planned]


def _find_wave(approach: str, number: int) -> int:
    """When a setting of that number is due: a setting of XGBoost takes as long as three of the rules."""
    if approach in RULES:
        return number
    return 3 * number if approach in FIXED else 3 * number + 2


def plan_figure(budget: Budget, data: Sequence[str] = SYNTHETIC) -> list[Task]:
    """The tasks of Figure 1: rules learned without drawing features, as the published figure was made."""
    wrong = sorted(set(data) - set(SYNTHETIC))
    if wrong:
        raise ValueError(f"Figure 1 is about {', '.join(SYNTHETIC)}, not {', '.join(wrong)}")
    return [
        Task(name, approach, Setting(MARKS[-1], rate, l2), fold, budget.n_folds, TRAJECTORY, max_features=None)
        for rate, l2 in budget.figure_pairs
        for name in data
        for approach in RULES
        for fold in range(budget.n_folds)
    ]


def plan_unsampled(budget: Budget, data: Sequence[str] = SYNTHETIC) -> list[Task]:
    """Tasks beside Figure 1: the first rules under marginal dependence, learned from all examples instead of a sample.

    Both half-planes are equally good to begin with, and the examples drawn decide which comes first; without a draw,
    the number of rules needed shows without that chance.
    """
    first = TRAJECTORY[: TRAJECTORY.index(32) + 1]
    return [
        Task(name, approach, Setting(first[-1], rate, l2), fold, budget.n_folds, first, None, bootstrap=False)
        for name in data
        if name == SYNTHETIC[1]
        for rate, l2 in budget.figure_pairs
        for approach in RULES
        for fold in range(budget.n_folds)
    ]


def list_cuts(budget: Budget) -> list[str]:
    """What the budget leaves out of the paper's evaluation, in words; nothing for the whole of it."""

    def count(pairs: Sequence[Pair]) -> str:
        shown = ", ".join(f"{rate:g}/{l2:g}" for rate, l2 in pairs)
        return f"{len(set(pairs))} of {len(PAPER_GRID)} pairs of learning rate and L2 weight ({shown})"

    cuts = []
    if set(budget.rule_pairs) != set(PAPER_GRID):
        cuts.append(f"Table 1, rules: {count(budget.rule_pairs)}")
    if budget.n_rules < FULL.n_rules:
        cuts.append(f"Table 1, rules: up to {budget.n_rules:,} of them instead of {FULL.n_rules:,}")
    if set(budget.boosting_pairs) != set(PAPER_GRID):
        cuts.append(f"Table 1, XGBoost: {count(budget.boosting_pairs)}")
    if budget.n_orders < FULL.n_orders:
        cuts.append(f"Table 1, classifier chains: {budget.n_orders} of {FULL.n_orders} random orders of the labels")
    if budget.max_rounds < FULL.max_rounds:
        cuts.append(f"Table 1, early stopping: {budget.max_rounds} rounds at most instead of {FULL.max_rounds:,}")
    if budget.max_rounds_powerset < FULL.n_rounds:
        cuts.append(f"Table 1, label powerset: {budget.max_rounds_powerset} rounds at most instead of {FULL.n_rounds}")
    elif budget.max_rounds_powerset < FULL.max_rounds_powerset:
        cuts.append(
            f"Table 1, label powerset with early stopping: {budget.max_rounds_powerset} rounds at most instead of "
            f"{FULL.max_rounds_powerset:,}"
        )
    if set(budget.figure_pairs) != set(PAPER_GRID):
        cuts.append(f"Figure 1: {count(budget.figure_pairs)}")
    if budget.n_folds < FULL.n_folds:
        cuts.append(f"{budget.n_folds} folds instead of {FULL.n_folds}")
    return cuts
