"""The importance of a feature says how much the predictions of a model owe to it, overall and for each label.

By gain, a rule of gain G gives each feature f in its body the share of its conditions on f, and to each label k its
share of the head:

    importance(f, k) = sum over rules of  G * (share of the conditions on f) * (|score_k| / sum_j |score_j|)

divided by the sum of all, so that all features and labels together make 1; overall is the sum over the labels. Half of
a rule is shared equally, as it needs all of its conditions, and half by what each added to the gain when it was learned
(`RuleEnsemble.condition_shares`): of thirty words that must be absent, a few make the difference. The
default rule has no conditions and counts for nothing. By coverage it is the same, with the (weighted) number of the
training examples that a rule covers in the place of G. Both know the rules alone.

By permutation, it is how much worse the model gets on some examples if the values of the feature are shuffled among
them, the mean of several times: overall by a measure of your choice, for each label by its error.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pyboomer.arrays import Array, Matrix
from pyboomer.explore.judging import find_label_errors, make_judge, read_judged
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.frames import import_pandas
from pyboomer.rules.text import show_line

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator


OVERALL = "(overall)"  # the name of a column: in brackets, so that it is not taken for a label
SPREAD = "(spread)"


@dataclass(frozen=True, eq=False, repr=False)
class FeatureImportance:
    """The importance of each feature.

    Attributes
    ----------
    by : str
        "gain", "coverage", or "permutation" with its measure in brackets.
    feature_names, label_names : tuple of str
    overall : array of shape (L,)
    per_label : array of shape (L, K)
        By gain or coverage, its rows add up to `overall`.
    spread : array of shape (L,), or None
        By permutation, the standard deviation of the overall importance over the repetitions.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.importance import feature_importance
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> importance = feature_importance(clf)
    >>> [importance.feature_names[feature] for feature in importance.rank(label=1)[:3]]
    ['pixel_2_5', 'pixel_3_2', 'pixel_2_4']
    >>> importance.to_frame().iloc[:3, :2].round(3)
               (overall)      a
    feature
    pixel_2_5      0.076  0.007
    pixel_1_2      0.075  0.018
    pixel_3_2      0.056  0.007
    """

    by: str
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    overall: Array
    per_label: Array
    spread: Array | None = None

    def __repr__(self) -> str:
        best = ", ".join(self.feature_names[f] for f in self.rank()[:3])
        return show_line(f"<FeatureImportance by {self.by}: {best}, ...>")

    def rank(self, label: int | None = None) -> NDArray[np.int64]:
        """Return the features, the most important first, overall or for one label."""
        return np.argsort(-(self.overall if label is None else self.per_label[:, label]), kind="stable")

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per feature, the most important first; "(overall)" and a column per label."""
        pd = import_pandas("to_frame")
        columns = [self.overall, *([] if self.spread is None else [self.spread]), *self.per_label.T]
        names = [OVERALL, *([] if self.spread is None else [SPREAD]), *self.label_names]
        index = pd.Index(self.feature_names, name="feature")
        return pd.DataFrame(np.column_stack(columns), index=index, columns=names).iloc[self.rank()]


def feature_importance(model: "RuleEstimator | RuleEnsemble", by: str = "gain") -> FeatureImportance:
    """Return the importance of features by gain or by coverage, from the rules alone.

    Parameters
    ----------
    model : fitted estimator or RuleEnsemble
    by : {"gain", "coverage"}

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.importance import feature_importance
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> importance = feature_importance(clf)
    >>> importance
    <FeatureImportance by gain: pixel_2_5, pixel_1_2, pixel_3_2, ...>
    >>> importance.per_label.shape
    (64, 7)
    """
    rules = model if isinstance(model, RuleEnsemble) else _get_rules(model)
    if by not in ("gain", "coverage"):
        raise ValueError(f'by must be "gain" or "coverage" (see also permutation_importance), got {by!r}')
    of_rule = _split_worth(rules, by)
    heads = np.abs(rules.head_matrix())
    total = heads.sum(axis=1, keepdims=True)
    overall = np.asarray(of_rule.sum(axis=1)).ravel()
    per_label = of_rule @ np.divide(heads, total, out=np.zeros_like(heads), where=total > 0)
    scale = overall.sum() or 1.0
    return FeatureImportance(by, rules.feature_names, rules.label_names, overall / scale, per_label / scale)


def overall_importance(rules: RuleEnsemble) -> Array:
    """The overall importance by gain alone, without that for each label, which may be a large matrix."""
    overall = np.asarray(_split_worth(rules, "gain").sum(axis=1)).ravel()
    return overall / (overall.sum() or 1.0)


def _split_worth(rules: RuleEnsemble, by: str) -> Any:
    """What each feature (row) gets of each rule (column), a sparse matrix."""
    worth = np.maximum(rules.gain if by == "gain" else rules.coverage, 0.0)
    lengths = np.diff(rules.condition_offsets)
    tested = np.repeat(np.arange(len(rules)), lengths)
    shares = rules.condition_shares
    total = np.bincount(tested, weights=shares, minlength=len(rules))
    equal = 1 / lengths[tested]
    added = np.divide(shares, total[tested], out=equal.copy(), where=total[tested] > 0)
    share = worth[tested] * (equal + added) / 2
    # several conditions of a rule on the same feature are added up
    return sp.csr_array((share, (rules.condition_features, tested)), shape=(len(rules.feature_names), len(rules)))


def _get_rules(model: "RuleEstimator") -> RuleEnsemble:
    check_is_fitted(model, "rules_")
    return model.rules_


def permutation_importance(
    model: "RuleEstimator",
    X: Any,
    y: Any,
    *,
    measure: Any = "loss",
    n_repeats: int = 5,
    sample_weight: Any = None,
    random_state: Any = None,
) -> FeatureImportance:
    """Return the importance of features by permutation: how much worse the model gets if a feature is shuffled.

    Parameters
    ----------
    model : fitted estimator
    X, y : examples
        Held-out examples show what generalises, training examples what was learned.
    measure : str or scorer, default="loss"
        "loss", one of `pyboomer.metrics.METRICS`, or a scorer of scikit-learn or its name. Importances are positive
        where the measure gets worse, whether or not larger is better.
    n_repeats : int, default=5
        How often each feature is shuffled.
    sample_weight : array of shape (N,), optional
    random_state : int, RandomState or None
        Each feature is shuffled by a seed of its own, so its importance does not depend on the other features.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.importance import permutation_importance
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> permutation_importance(clf, X[:200], Y[:200], n_repeats=1, random_state=1)
    <FeatureImportance by permutation (loss): pixel_2_5, pixel_3_2, pixel_1_2, ...>
    """
    check_is_fitted(model, "rules_")
    if not isinstance(n_repeats, int | np.integer) or n_repeats < 1:
        raise ValueError(f"n_repeats must be a whole number of at least 1, got {n_repeats!r}")
    examples = read_judged(model, X, y, sample_weight)
    judge = make_judge(model, measure, examples)
    sign = -1.0 if judge.larger_is_better else 1.0
    rules, seed = model.rules_, int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    scores = _score(rules, examples.matrix)
    before, errors_before = judge.rate(scores), find_label_errors(model, examples, scores)
    rises = np.zeros((len(rules.feature_names), n_repeats))
    per_label = np.zeros((len(rules.feature_names), len(rules.label_names)))
    for f in np.unique(rules.condition_features).tolist():  # the others make no difference
        concerned = rules.mentioning(feature=f)
        rest = scores - _score(concerned, examples.matrix)
        shuffle = np.random.default_rng([seed, f])
        for r in range(n_repeats):
            new = rest + _score(concerned, _permute(examples.matrix, f, shuffle.permutation(len(scores))))
            rises[f, r] = sign * (judge.rate(new) - before)
            per_label[f] += (find_label_errors(model, examples, new) - errors_before) / n_repeats
    by = f"permutation ({judge.name.replace('_', ' ')})"
    names = rules.feature_names, rules.label_names
    return FeatureImportance(by, *names, rises.mean(axis=1), per_label, rises.std(axis=1))


def _score(rules: RuleEnsemble, X: Matrix) -> Array:
    scores = np.zeros((X.shape[0], len(rules.label_names)))
    add_scores(rules, X, scores)
    return scores


def _permute(X: Matrix, feature: int, order: NDArray[np.int64]) -> Matrix:
    """X with the values of a feature moved: that of row n goes to row `order[n]`."""
    if not sp.issparse(X):
        permuted = X.copy()
        permuted[order, feature] = X[:, feature]
        return permuted
    columns = sp.csc_array(X, copy=True)
    own = slice(columns.indptr[feature], columns.indptr[feature + 1])
    columns.indices[own] = order[columns.indices[own]]
    columns.has_sorted_indices = False
    return columns.tocsr()
