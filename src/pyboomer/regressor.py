"""A regressor is a rule ensemble that learns numbers, one or several per example: the scores are the predictions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from pyboomer.arrays import Array
from pyboomer.data.targets import read_targets
from pyboomer.estimator import RuleEstimator
from pyboomer.learning.training import Progress
from pyboomer.losses import Loss
from pyboomer.parameters import REGRESSOR_PARAMETERS, describe_parameters

if TYPE_CHECKING:
    from pyboomer.explore.explanation import Explanation


class BoomerRegressor(RegressorMixin, RuleEstimator):
    __doc__ = f"""Gradient boosted multi-output regression rules.

    Learns rules such as ``IF x1 <= 0.3 AND x7 > 1.2 THEN height +0.8, weight -0.4`` by the algorithms of
    `BoomerClassifier`. The loss is the squared error 1/2 sum_k (y_k - f_k)^2: its gradient is f - y, its Hessian the
    identity. A prediction is the sum of the heads of all rules that cover the example. The default rule covers all
    examples and predicts the mean; L2 regularisation is for the others. The robust losses aim at the median, or between
    median and mean.

    Parameters
    ----------
    {describe_parameters(REGRESSOR_PARAMETERS)}

    Attributes
    ----------
    rules_ : RuleEnsemble
        The rules learned: print them, index them, slice them, or see `RuleEnsemble.to_frame`.
    label_names_ : tuple of str
        Names of the targets: the columns of a DataFrame, else y0, y1, ...
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a DataFrame whose columns are all named by strings, or `fit` was given `feature_names`.
    validation_curve_ : list of (n_rules, score)
        The scores of held-out examples during training, if there were any.
    training_facts_ : dict
        Sizes of the training data, training loss, seconds, seed.

    Notes
    -----
    A missing value (NaN) in X meets no condition. In a matrix of targets, it is a target that is not known. Targets of
    large numbers dominate the choice of conditions: scale them first (`sklearn.compose.TransformedTargetRegressor`) if
    all matter alike.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer import BoomerRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> Y = np.hstack([X > 9, X > 14]) * 10.0
    >>> reg = BoomerRegressor(n_rules=200, random_state=1).fit(X, Y)
    >>> reg.predict([[3.0], [12.0], [17.0]]).round().tolist()
    [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]]
    """

    parameter_table = REGRESSOR_PARAMETERS

    def __init__(
        self,
        loss: str | Loss = "squared-error",
        *,
        head: str | int | float = "multi",
        n_rules: int = 500,
        rules_per_round: str | int = "auto",
        learning_rate: str | float = 0.1,
        l1: float = 0.0,
        l2: float = 1.0,
        bootstrap: bool = True,
        sampling: str = "with-replacement",
        max_samples: str | int | float | None = "auto",
        max_features: str | int | float | None = "log2",
        fixed_features: Any = None,
        max_labels: str | int | float | None = None,
        max_conditions: int | None = None,
        min_coverage: float = 1,
        max_bins: str | int | None = "auto",
        categorical_features: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 100,
        scoring: Any = "loss",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | str | None = "auto",
        device: str = "cpu",
        verbose: int = 0,
        callbacks: Callable[[Progress], Any] | Sequence[Callable[[Progress], Any]] | None = None,
    ) -> None:
        self.loss = loss
        self.head = head
        self.n_rules = n_rules
        self.rules_per_round = rules_per_round
        self.learning_rate = learning_rate
        self.l1 = l1
        self.l2 = l2
        self.bootstrap = bootstrap
        self.sampling = sampling
        self.max_samples = max_samples
        self.max_features = max_features
        self.fixed_features = fixed_features
        self.max_labels = max_labels
        self.max_conditions = max_conditions
        self.min_coverage = min_coverage
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None, feature_names: Any = None
    ) -> Self:
        """Learn rules from examples.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, L)
            Features. NaN is a missing value.
        y : array or DataFrame of shape (N, K), or one column
            Targets; in a matrix NaN for an unknown one.
        sample_weight : array of shape (N,) or (N, K), optional
            Weights of the examples, or of each target of each example. An example of weight 0 counts as absent, a
            target of weight 0 as unknown.
        eval_set : pair (X, y), optional
            Held-out examples. They are judged during training (`validation_curve_`); with ``early_stopping=True`` they
            decide when it ends.
        feature_names : list of str, or a function that returns one, optional
            Names of the features, if X is an array or a sparse matrix. A function is called when X is read: in a
            pipeline, pass `get_feature_names_out` of the step before.

        Returns
        -------
        self
        """
        return self._fit(read_targets, X, y, sample_weight, eval_set, feature_names)

    def predict(self, X: Any) -> Array:
        """Predict the targets of the examples, shape (N, K), or (N,) if y was one column."""
        model = self.get_fitted()
        return model.predict(model.read_scores(X))

    def explain(self, X: Any) -> tuple["Explanation", ...]:
        """Explain predictions: the rules that cover each example, and what they add to its targets."""
        from pyboomer.explore.explanation import explain_examples

        return explain_examples(self, X)

    def staged_predict(self, X: Any, at: Iterable[int] | None = None) -> Iterator[Array]:
        """Yield the targets after 1, 2, ... rules, or after the numbers of rules in `at`, ascending."""
        model, stages = self._stage(X, at)
        return (model.predict(scores.copy()) for scores in stages)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the R^2 of the predictions, the mean over the targets; only known targets count."""
        check_is_fitted(self, "rules_")
        known = self._label_format.read(y).known
        if known is None:
            return float(super().score(X, y, sample_weight))
        y, predicted = np.asarray(y, dtype=np.float64), self.predict(X)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        scores = [
            r2_score(y[rows, k], predicted[rows, k], sample_weight=None if weight is None else weight[rows])
            for k, rows in enumerate(known.T)
            if rows.sum() > 1
        ]
        return float(np.mean(scores))
