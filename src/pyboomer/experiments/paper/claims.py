"""A claim is a sentence of the paper's Section 5 that figures can confirm or refute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import wilcoxon

from pyboomer.experiments.paper.budgets import SYNTHETIC
from pyboomer.experiments.paper.figure1 import Figure
from pyboomer.experiments.paper.table1 import Table
from pyboomer.experiments.significance import Comparison
from pyboomer.experiments.tasks import FIXED, RULES

LW_SINGLE, LW_MULTI, EX_SINGLE, EX_MULTI = RULES
BR, LP, CC = FIXED
PAPER = (*RULES, *FIXED)
INDEPENDENT, MARGINAL, CONDITIONAL = SYNTHETIC
MARGIN = 0.5  # points of subset 0/1 loss that count as the same


class Claim(NamedTuple):
    """What the paper says, what was measured, and whether the one bears out the other."""

    text: str
    measured: str
    holds: bool


def check_figure(figure: Figure, unsampled: Figure) -> list[Claim]:
    """The claims of Section 5.1, about the synthetic data.

    `unsampled` has the first rules under marginal dependence, learned without bootstrap.
    """
    final = {key: each.at(1000) for key, each in figure.trajectories.items()}

    def show(data: str, *names: str, loss: int = 1) -> str:
        return ", ".join(f"{name} {final[data, name][loss]:.2f}" for name in names)

    def is_below(data: str, lower: str, upper: str, loss: int = 1) -> bool:
        return final[data, lower][loss] < final[data, upper][loss]

    pairs = ((LW_SINGLE, LW_MULTI), (EX_SINGLE, EX_MULTI))
    needed = {name: figure.trajectories[MARGINAL, name].count_rules_needed(MARGIN) for name in RULES}
    spread = [float(np.ptp([final[MARGINAL, name][loss] for name in RULES])) for loss in (0, 1)]
    return [
        Claim(
            "Marginal independence: single-label variants achieve slightly better losses in the limit.",
            f"Hamming after 1000 rules: {show(INDEPENDENT, *RULES, loss=0)}; subset 0/1: {show(INDEPENDENT, *RULES)}",
            all(is_below(INDEPENDENT, single, multi, loss) for single, multi in pairs for loss in (0, 1)),
        ),
        Claim(
            "Marginal dependence: all variants converge to the same performances.",
            f"after 1000 rules they differ by {spread[0]:.2f} points of Hamming, {spread[1]:.2f} of subset 0/1 loss",
            max(spread) <= MARGIN,
        ),
        Claim(
            "Marginal dependence: with multi-label rules, the final subset 0/1 loss is approached faster.",
            f"rules until the pooled loss is within {MARGIN} points of its last value: "
            + ", ".join(f"{name} {count}" for name, count in needed.items()),
            all(needed[multi] < needed[single] for single, multi in pairs),
        ),
        *_check_first_rules(figure, unsampled),
        Claim(
            "Marginal dependence: optimising the label-wise loss takes much longer than two rules and six.",
            f"rules until within {MARGIN} points: {LW_MULTI} {needed[LW_MULTI]}, {LW_SINGLE} {needed[LW_SINGLE]}",
            needed[LW_MULTI] > needed[EX_MULTI] and needed[LW_SINGLE] > needed[EX_SINGLE],
        ),
        Claim(
            "Conditional dependence: the variants that optimise the non-decomposable loss are better in the limit.",
            f"subset 0/1 loss after 1000 rules: {show(CONDITIONAL, *RULES)}",
            is_below(CONDITIONAL, EX_SINGLE, LW_SINGLE) and is_below(CONDITIONAL, EX_MULTI, LW_MULTI),
        ),
    ]


def _check_first_rules(figure: Figure, unsampled: Figure) -> list[Claim]:
    """Two rules against six: pooled, by fold, and without the chance of which examples are drawn."""
    claims = []
    for name, text, wanted in (
        (EX_MULTI, "example-wise multi-label rules converge after two rules, the default rule and one more", 2),
        (EX_SINGLE, "example-wise single-label rules need the default rule and one for each of the six labels", 7),
    ):
        drawn, whole = figure.trajectories[MARGINAL, name], unsampled.trajectories[MARGINAL, name]
        folds, whole_folds = drawn.count_rules_by_fold(MARGIN), whole.count_rules_by_fold(MARGIN)
        reached = float(drawn.at(wanted)[1] - drawn.subset[-1])
        claims.append(
            Claim(
                f"Marginal dependence: {text}.",
                f"after {wanted} rules, pooled: {drawn.at(wanted)[1]:.1f}, {reached:+.1f} points from the last value; "
                f"rules needed, by fold: {_tally(folds)}; learned from all examples instead of bootstraps: "
                f"{_tally(whole_folds)}",
                reached <= MARGIN,
            )
        )
    return claims


def _tally(counts: Sequence[int]) -> str:
    return ", ".join(f"{count} rules in {folds}" for count, folds in sorted(Counter(counts).items()))


def check_table(table: Table) -> list[Claim]:
    """The claims of Section 5.2, about the benchmark data, and those that its Table 1 makes."""
    by = {measure: table.compare(measure, PAPER) for measure in ("subset", "hamming", "f1")}
    subset, hamming, f1 = (dict(zip(PAPER, each.average_ranks.tolist(), strict=True)) for each in by.values())
    order = sorted(subset, key=subset.__getitem__)
    single, multi = table.list_values("subset", (EX_SINGLE, EX_MULTI)).T
    wins = int((multi < single).sum())
    p_value = float(wilcoxon(multi, single).pvalue) if len(single) > 1 else float("nan")
    four = table.compare("subset", tuple(RULES))
    distance = by["hamming"].critical_distance(0.1)
    like_br = [hamming[name] for name in (LW_SINGLE, LW_MULTI, BR)]
    whole_vectors = (EX_MULTI, LP, EX_SINGLE, CC)
    return [
        Claim(
            "The Friedman test indicates significant differences for all but the Hamming loss.",
            ", ".join(f"{measure}: p = {each.p_value:.2g}" for measure, each in by.items()),
            by["subset"].p_value < 0.05 and by["f1"].p_value < 0.05 <= by["hamming"].p_value,
        ),
        Claim(
            "ex.w.-log. multi ranks best in terms of subset 0/1 loss, followed by LP, ex.w.-log. single and CC.",
            "average ranks: " + ", ".join(f"{name} {subset[name]:.2f}" for name in order),
            order[:4] == list(whole_vectors),
        ),
        Claim(
            "Of the four variants, ex.w.-log. multi ranks best in terms of subset 0/1 loss.",
            f"average ranks among the seven: {_list_ranks(by['subset'], RULES)}; among the four alone: "
            f"{_list_ranks(four, RULES)}",
            subset[EX_MULTI] == min(subset[name] for name in RULES),
        ),
        Claim(
            "The approaches that aim at subset 0/1 loss rank better on it than those that aim at Hamming loss.",
            f"the worst of the former has {max(subset[name] for name in whole_vectors):.2f}, the best of the latter "
            f"{min(subset[name] for name in (LW_SINGLE, LW_MULTI, BR)):.2f}",
            max(subset[name] for name in whole_vectors) < min(subset[name] for name in (LW_SINGLE, LW_MULTI, BR)),
        ),
        Claim(
            "Example-wise optimised multi-label rules achieve a better subset 0/1 loss than single-label rules on all "
            "data sets, significantly so with α = 0.1.",
            f"on {wins} of {len(single)}; Wilcoxon signed-rank test: p = {p_value:.2g}; difference of average ranks "
            f"{subset[EX_SINGLE] - subset[EX_MULTI]:.2f}, critical distance {by['subset'].critical_distance(0.1):.2f}",
            wins == len(single) and p_value < 0.1,
        ),
        Claim(
            "In terms of Hamming loss, label-wise rules are competitive to BR, without a clear preference for single- "
            "or multi-label rules.",
            f"average ranks: {_list_ranks(by['hamming'], (LW_SINGLE, LW_MULTI, BR))}; critical distance {distance:.2f}",
            max(like_br) - min(like_br) < distance,
        ),
        Claim(
            "ex.w.-log. multi even ranks best in terms of Hamming loss on average.",
            f"average ranks: {_list_ranks(by['hamming'], sorted(hamming, key=hamming.__getitem__))}",
            hamming[EX_MULTI] == min(hamming.values()),
        ),
        Claim(
            "ex.w.-log. multi ranks best in terms of the example-based F1 (Table 1).",
            f"average ranks: {_list_ranks(by['f1'], PAPER)}",
            f1[EX_MULTI] == min(f1.values()),
        ),
    ]


def _list_ranks(comparison: Comparison, names: Iterable[str]) -> str:
    average = dict(zip(comparison.names, comparison.average_ranks, strict=True))
    return ", ".join(f"{name} {average[name]:.2f}" for name in names)


def format_claims(claims: Sequence[Claim]) -> str:
    """The claims as a table of Markdown."""
    rows = [f"| {each.text} | {each.measured} | {'yes' if each.holds else '**no**'} |" for each in claims]
    return "\n".join(["| the paper says | measured | holds |", "|---|---|---|", *rows])
