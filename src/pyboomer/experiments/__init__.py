"""Experiments: the paper's evaluation, and its parts for evaluations of your own.

`bbc_cv` tunes any estimator and estimates without the bias of tuning how well it will do. `compare` ranks and tests
approaches over data sets. `boomer reproduce` computes Figure 1 and Table 1 of the paper.
"""

from pyboomer.experiments.bootstrap import Correction, TunedResult, bbc_cv, correct_bias, draw_bootstraps
from pyboomer.experiments.measures import MEASURES, Measure
from pyboomer.experiments.significance import Comparison, compare, find_critical_distance, rank_approaches

__all__ = [
    "MEASURES",
    "Comparison",
    "Correction",
    "Measure",
    "TunedResult",
    "bbc_cv",
    "compare",
    "correct_bias",
    "draw_bootstraps",
    "find_critical_distance",
    "rank_approaches",
]
