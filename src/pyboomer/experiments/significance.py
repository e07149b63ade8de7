"""Significance: whether approaches differ over several data sets by more than chance.

Ranks on each data set, the Friedman test that all approaches are alike, and the Nemenyi test of which are not (Demšar,
"Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006).

The distributions are SciPy's: it is maintained, it is a dependency already, and it has what is difficult about both
tests, the Friedman statistic with ties and the studentised range. What is left of the Nemenyi test is one formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range


def rank_approaches(values: np.ndarray, *, larger_is_better: bool = False) -> np.ndarray:
    """Return the rank of each approach (column) on each data set (row): 1 is best, equal values share their mean rank.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.experiments import rank_approaches
    >>> rank_approaches(np.array([[0.2, 0.3, 0.3], [0.1, 0.5, 0.4]]))
    array([[1. , 2.5, 2.5],
           [1. , 3. , 2. ]])
    """
    return np.asarray(rankdata(-values if larger_is_better else values, axis=1))


def find_critical_distance(n_approaches: int, n_data: int, alpha: float = 0.05) -> float:
    """Return the least difference of average ranks at which two approaches differ, by the Nemenyi test.

    Examples
    --------
    >>> from pyboomer.experiments import find_critical_distance
    >>> round(find_critical_distance(n_approaches=5, n_data=8), 2)
    2.16
    """
    if n_approaches < 2 or n_data < 1:
        raise ValueError(f"a comparison needs two approaches and a data set, got {n_approaches} and {n_data}")
    quantile = _find_quantile(n_approaches, alpha) / np.sqrt(2)
    return float(quantile * np.sqrt(n_approaches * (n_approaches + 1) / (6 * n_data)))


@cache  # a comparison asks for it at each pair of approaches, and to find it takes milliseconds
def _find_quantile(n_approaches: int, alpha: float) -> float:
    """The quantile of the studentised range."""
    return float(studentized_range.ppf(1 - alpha, n_approaches, np.inf))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Approaches compared over data sets by one measure.

    Attributes
    ----------
    names : tuple of str
        The approaches.
    ranks : array of shape (data sets, approaches)
    p_value : float
        Of the Friedman test: how probable ranks as uneven as these are if all approaches are alike. NaN for fewer than
        three approaches or two data sets.

    Examples
    --------
    >>> from pyboomer.experiments import compare
    >>> losses = [[0.20, 0.25, 0.30], [0.11, 0.15, 0.12], [0.31, 0.35, 0.38], [0.22, 0.21, 0.29]]
    >>> comparison = compare(losses, ("ours", "theirs", "guess"))
    >>> comparison.differ("ours", "guess")
    False
    >>> round(comparison.critical_distance(), 2)
    1.66
    """

    names: tuple[str, ...]
    ranks: np.ndarray
    p_value: float

    @property
    def average_ranks(self) -> np.ndarray:
        """The mean over the data sets."""
        return np.asarray(self.ranks.mean(axis=0))

    def critical_distance(self, alpha: float = 0.05) -> float:
        """See `find_critical_distance`."""
        return find_critical_distance(len(self.names), len(self.ranks), alpha)

    def differ(self, first: str, second: str, alpha: float = 0.05) -> bool:
        """Whether two approaches differ by the Nemenyi test."""
        average = dict(zip(self.names, self.average_ranks, strict=True))
        return bool(abs(average[first] - average[second]) >= self.critical_distance(alpha))

    def list_cliques(self, alpha: float = 0.05) -> list[tuple[str, ...]]:
        """The largest groups, best first, within which no two approaches differ; groups of one are left out."""
        order = np.argsort(self.average_ranks, kind="stable")
        average, distance = self.average_ranks[order], self.critical_distance(alpha)
        ends = [int(np.searchsorted(average, start + distance)) for start in average]  # where the difference begins
        cliques = [
            order[start:end]
            for start, end in enumerate(ends)
            if end - start > 1 and (not start or ends[start - 1] < end)
        ]
        return [tuple(self.names[i] for i in clique) for clique in cliques]


def compare(values: np.ndarray, names: tuple[str, ...], *, larger_is_better: bool = False) -> Comparison:
    """Rank and test approaches (columns) over data sets (rows).

    Examples
    --------
    >>> from pyboomer.experiments import compare
    >>> losses = [[0.20, 0.25, 0.30], [0.11, 0.15, 0.12], [0.31, 0.35, 0.38], [0.22, 0.21, 0.29]]
    >>> comparison = compare(losses, ("ours", "theirs", "guess"))
    >>> comparison.average_ranks
    array([1.25, 2.  , 2.75])
    >>> round(comparison.p_value, 3)
    0.105
    """
    ranks = rank_approaches(np.asarray(values, dtype=np.float64), larger_is_better=larger_is_better)
    enough = ranks.shape[1] >= 3 and ranks.shape[0] >= 2 and bool((ranks != ranks[:, :1]).any())
    p_value = float(friedmanchisquare(*ranks.T).pvalue) if enough else np.nan
    return Comparison(tuple(names), ranks, p_value)
