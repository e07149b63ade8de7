"""The dependence of labels is what a model says of one when it says something of another, as read from its heads.

Of two labels j and k it is the correlation, about zero, of the scores that rules give them, each rule weighted by the
number c of the training examples that it covers:

    dependence(j, k) = sum c score_j score_k / sqrt(sum c score_j^2 * sum c score_k^2)

What a rule says of all labels alike, that there are few or many of them, is no dependence between two of them, and is
taken off first: scores are divided by the size sqrt(sum c score_k^2) of those of their label, and lose all but 2 / K of
the mean of the rule (of two labels, nothing). A model of labels that exclude each other would seem to join them else.

It lies between -1 and 1: above 0, rules tend to speak for both or against both; below 0, for one and against the other.
The default rule covers everything and tells frequencies, not dependencies; it is left out. This is what the model has
learned, by its loss: conditional dependence given the features, where the loss allows for it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pyboomer.arrays import Array
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.frames import import_pandas

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator


@dataclass(frozen=True, eq=False, repr=False)
class LabelDependence:
    """How labels depend on each other: a symmetric (K, K) matrix, 1 on its diagonal; 0 for a label without rules."""

    matrix: Array
    label_names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<LabelDependence of {len(self.label_names)} labels>"

    def to_frame(self) -> Any:
        """The matrix as a pandas DataFrame."""
        pd = import_pandas("to_frame")
        return pd.DataFrame(self.matrix.copy(), index=list(self.label_names), columns=list(self.label_names))

    def list_pairs(self) -> Any:
        """All pairs of labels as a pandas DataFrame, those that depend most on each other first."""
        pd = import_pandas("list_pairs")
        j, k = np.triu_indices(len(self.label_names), 1)
        values = self.matrix[j, k]
        order = np.argsort(-np.abs(values), kind="stable")
        names = np.array(self.label_names, dtype=object)
        return pd.DataFrame({"label": names[j[order]], "other": names[k[order]], "dependence": values[order]})

    def find_strongest(self, n: int) -> NDArray[np.int64]:
        """The n labels that depend most on others, by their strongest dependence; in their order."""
        others = np.abs(self.matrix - np.diag(np.diag(self.matrix)))
        return np.sort(np.argsort(-others.max(axis=1, initial=0.0), kind="stable")[:n])

    def cluster(self) -> NDArray[np.int64]:
        """An order of the labels that puts those next to each other that go together: hierarchical clustering."""
        n = len(self.label_names)
        if n < 3:
            return np.arange(n)
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        distance = 1 - (self.matrix + self.matrix.T) / 2
        np.fill_diagonal(distance, 0.0)
        links = linkage(squareform(np.clip(distance, 0, 2), checks=False), "average", optimal_ordering=n <= 300)
        return np.asarray(leaves_list(links), dtype=np.int64)

    def take(self, labels: NDArray[np.int64]) -> "LabelDependence":
        """Some of the labels, in the order given."""
        return LabelDependence(self.matrix[np.ix_(labels, labels)], tuple(self.label_names[k] for k in labels))


def label_dependence(model: "RuleEstimator | RuleEnsemble") -> LabelDependence:
    """How the labels depend on each other, as read from the heads of a fitted model's rules."""
    if not isinstance(model, RuleEnsemble):
        check_is_fitted(model, "rules_")
    rules = model if isinstance(model, RuleEnsemble) else model.rules_
    learned = rules[np.diff(rules.condition_offsets) > 0]
    heads = learned.head_matrix()
    if len(learned) and (np.count_nonzero(heads, axis=1) <= 1).all() and heads.shape[1] > 1:
        raise ValueError(
            "each rule is about one label, which says nothing about how labels depend on each other: fit with "
            'head="multi" and max_labels=None'
        )
    heads = _divide_by_size(heads, learned.coverage)
    heads -= max(1 - 2 / heads.shape[1], 0) * heads.mean(axis=1, keepdims=True)
    heads = _divide_by_size(heads, learned.coverage)
    matrix = (heads * learned.coverage[:, None]).T @ heads
    np.fill_diagonal(matrix, 1.0)
    return LabelDependence(np.clip(matrix, -1.0, 1.0), rules.label_names)


def _divide_by_size(heads: Array, coverage: Array) -> Array:
    size = np.sqrt(coverage @ heads**2)
    return np.divide(heads, size, out=np.zeros_like(heads), where=size > 0)
