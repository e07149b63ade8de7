"""The dependence of labels: which ones a model predicts together, and which one instead of the other.

Given examples, it is the correlation of what is predicted for them: the probabilities of two labels, or two numbers.
Above 0, where one is more probable than elsewhere, so is the other. It has the sign of the correlation in the data,
unless that is weak or the model is wrong.

Without examples, it is read from the heads of rules alone: the correlation, about zero, of the scores that rules give
to labels j and k, each rule weighted by the number c of the training examples that it covers:

    dependence(j, k) = sum c score_j score_k / sqrt(sum c score_j^2 * sum c score_k^2)

Above 0, rules tend to speak for both or against both; below 0, for one and against the other. What a rule says of all
labels alike, that there are few or many of them, is taken off first: scores are divided by the size
sqrt(sum c score_k^2) of those of their label, and lose all but 2 / K of the mean of the rule (of two labels, nothing).
A model of labels that exclude each other would seem to join them else. The default rule tells frequencies, not
dependencies; it is left out. Rules correct each other, and heads do not tell where they overlap: weak dependencies
may have the wrong sign. If labels are drawn for each rule (`max_labels`), few rules score both, and all dependencies
are weaker than they were otherwise; their order is about the same.
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
    """How labels depend on each other: a symmetric (K, K) matrix with 1 on its diagonal, 0 for a label without rules.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.dependence import label_dependence
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> dependence = label_dependence(clf, X)
    >>> dependence
    <LabelDependence of 7 labels>
    >>> dependence.matrix.shape
    (7, 7)
    >>> [dependence.label_names[k] for k in dependence.cluster()]
    ['b', 'c', 'f', 'e', 'd', 'a', 'g']
    """

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

    def find_friends(self, k: int, n: int, least: float = 0.05) -> list[tuple[int, float]]:
        """Return the labels that label k depends on, at most n above and n below 0, the strongest first."""
        values = np.where(np.arange(len(self.matrix)) == k, 0.0, self.matrix[k])
        order = [j for j in np.argsort(-np.abs(values), kind="stable").tolist() if abs(values[j]) >= least]
        sides = ([j for j in order if values[j] > 0], [j for j in order if values[j] < 0])
        return [(j, float(values[j])) for side in sides for j in side[:n]]

    def find_strongest(self, n: int) -> NDArray[np.int64]:
        """Return the n labels that depend most on others, by their strongest dependence; in their order."""
        others = np.abs(self.matrix - np.diag(np.diag(self.matrix)))
        return np.sort(np.argsort(-others.max(axis=1, initial=0.0), kind="stable")[:n])

    def cluster(self) -> NDArray[np.int64]:
        """Return an order that puts labels that go together side by side, by hierarchical clustering."""
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


def label_dependence(model: "RuleEstimator | RuleEnsemble", X: Any = None) -> LabelDependence:
    """Return how labels depend on each other: in the predictions for X or, without X, in the heads of the rules.

    Parameters
    ----------
    model : BoomerClassifier, BoomerRegressor or RuleEnsemble
    X : array, sparse matrix or DataFrame of shape (N, L), optional
        Examples, as `predict` takes them. Training examples show what the model has learned.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.dependence import label_dependence
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> dependence = label_dependence(clf, X)
    >>> dependence.list_pairs().iloc[0, :2].tolist()
    ['a', 'd']
    """
    if not isinstance(model, RuleEnsemble):
        check_is_fitted(model, "rules_")
    rules = model if isinstance(model, RuleEnsemble) else model.rules_
    if X is None:
        return LabelDependence(_correlate_heads(rules), rules.label_names)
    if isinstance(model, RuleEnsemble):
        raise TypeError("rules alone predict no probabilities: pass the fitted model, or leave out X")
    fitted = model.get_fitted()
    scores, decision = fitted.read_scores(X), fitted.decision
    predicted = scores if decision.rule == "numbers" else decision.probabilities(scores)[:, -len(rules.label_names) :]
    return LabelDependence(_correlate(predicted), rules.label_names)


def _correlate(predicted: Array) -> Array:
    """The correlations of columns; 0 with one that is constant."""
    centred = predicted - predicted.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=0))
    constant = size <= 1e-12 * np.sqrt((predicted**2).sum(axis=0))  # up to rounding
    centred = np.divide(centred, size, out=np.zeros_like(centred), where=~constant)
    matrix = centred.T @ centred
    np.fill_diagonal(matrix, 1.0)
    return np.clip(matrix, -1.0, 1.0)


def _correlate_heads(rules: RuleEnsemble) -> Array:
    learned = rules[np.diff(rules.condition_offsets) > 0]
    heads = learned.head_matrix()
    if len(learned) and (np.count_nonzero(heads, axis=1) <= 1).all() and heads.shape[1] > 1:
        raise ValueError(
            "each rule is about one label, which says nothing about how labels depend on each other: pass X, or fit "
            'with head="multi" and max_labels=None'
        )
    heads = _divide_by_size(heads, learned.coverage)
    heads -= max(1 - 2 / heads.shape[1], 0) * heads.mean(axis=1, keepdims=True)
    heads = _divide_by_size(heads, learned.coverage)
    matrix = (heads * learned.coverage[:, None]).T @ heads
    np.fill_diagonal(matrix, 1.0)
    return np.clip(matrix, -1.0, 1.0)


def _divide_by_size(heads: Array, coverage: Array) -> Array:
    size = np.sqrt(coverage @ heads**2)
    return np.divide(heads, size, out=np.zeros_like(heads), where=size > 0)
