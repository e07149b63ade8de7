"""A budget says how much of the paper's evaluation is computed: everything, or what fits into some time.

`FULL` is the paper's grid. What the others leave out is found by comparison with it (`list_cuts`), so that it cannot be
left unsaid. Tasks come in the order of their use: every data set and every approach with one setting first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest

from pyboomer.datasets.synthetic import KINDS
from pyboomer.experiments.tasks import APPROACHES, RULES, STOPPED, Setting, Task

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
    n_trees=100,
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
# early stopping, of XGBoost BR, LP and CC; 100 trees. They order nothing and decide nothing but the time said to be left.
SECONDS = {
    "birds": (0.2, 0.6, 0.15, 0.6, 1.1, 3.0, 1.3, 0.8, 2.2, 1.0, 1.0),
    "emotions": (0.12, 0.18, 0.12, 0.18, 0.4, 0.8, 0.4, 0.2, 0.5, 0.3, 0.4),
    "enron": (0.1, 0.2, 0.8, 0.9, 1.8, 14.0, 2.6, 1.2, 6.0, 2.0, 4.4),
    "llog": (0.15, 0.3, 0.8, 1.0, 2.9, 6.8, 4.0, 1.7, 3.1, 3.1, 4.0),
    "medical": (0.3, 0.2, 0.25, 0.45, 0.7, 1.3, 0.9, 0.9, 1.2, 1.1, 2.4),
    "scene": (0.6, 0.9, 0.6, 1.0, 3.4, 5.4, 3.6, 2.4, 2.7, 3.7, 3.0),
    "slashdot": (0.1, 0.5, 0.35, 0.8, 0.8, 3.6, 1.0, 1.2, 3.2, 1.6, 3.5),
    "yeast": (0.4, 0.6, 0.8, 0.8, 2.9, 9.2, 2.9, 1.1, 2.8, 1.9, 2.9),
    "synthetic-marginal-independence": (3.0, 2.6, 2.9, 2.7),
    "synthetic-marginal-dependence": (0.5, 0.4, 0.6, 0.4),
    "synthetic-conditional-dependence": (0.5, 0.4, 0.7, 0.4),
}


def guess_seconds(task: Task) -> float:
    """The CPU seconds that a task takes, roughly: a guess for the time that is left."""
    seconds = SECONDS[task.data][list(APPROACHES).index(task.approach)]
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
    """The tasks of Table 1: all data sets and approaches with one setting, then with a second one, and so on."""
    stages = tuple(range(STEP, budget.n_rules + 1, STEP))
    columns = [[(approach, setting) for setting in list_settings(budget, approach)] for approach in approaches]
    return [
        Task(name, approach, setting, fold, budget.n_folds, stages if approach in RULES else ())
        for level in zip_longest(*columns)
        for name in data
        for approach, setting in filter(None, level)
        for fold in range(budget.n_folds)
    ]


def plan_figure(budget: Budget) -> list[Task]:
    """The tasks of Figure 1: rules learned without drawing features, as the published figure was made."""
    return [
        Task(name, approach, Setting(MARKS[-1], rate, l2), fold, budget.n_folds, TRAJECTORY, max_features=None)
        for rate, l2 in budget.figure_pairs
        for name in SYNTHETIC
        for approach in RULES
        for fold in range(budget.n_folds)
    ]
