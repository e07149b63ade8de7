"""A classifier is a rule ensemble that learns labels from data and predicts them, in the way of scikit-learn."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from pyboomer.arrays import Array
from pyboomer.data.labels import read_labels
from pyboomer.estimator import RuleEstimator
from pyboomer.learning.training import Progress
from pyboomer.losses import Loss
from pyboomer.parameters import PAPER, PARAMETERS, describe_parameters

if TYPE_CHECKING:
    from pyboomer.explore.explanation import Explanation


class BoomerClassifier(ClassifierMixin, RuleEstimator):
    __doc__ = f"""Gradient boosted multi-label classification rules (BOOMER).

    Learns an ensemble of rules such as ``IF x1 <= 0.3 AND x7 > 1.2 THEN beach +0.8, urban -0.4``: Algorithms 1 to 3 of
    "Learning Gradient Boosted Multi-label Classification Rules" (Rapp et al., ECML-PKDD 2020).

    Parameters
    ----------
    {describe_parameters(PARAMETERS)}

    Attributes
    ----------
    rules_ : RuleEnsemble
        The rules learned: print them, index them, slice them, or see `RuleEnsemble.to_frame`.
    loss_ : Loss
        The loss that was minimised.
    label_names_ : tuple of str
        Names of the labels: the columns of a DataFrame, else y0, y1, ...
    label_vectors_ : array of shape (V, K)
        The known label vectors: the distinct complete rows of the training labels, the most frequent first. With
        ``loss="joint-logistic"``, incomplete rows that agree with none of them are completed, and follow.
    label_vector_counts_ : array of shape (V,)
        How often each of them occurred in training, by weight.
    classes_ : array of shape (K,), or (C,)
        The numbers of the labels, 0 to K - 1; if y was one column, its C classes.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a DataFrame whose columns are all named by strings, or `fit` was given `feature_names`.
    calibration_ : Calibration
        Curves from scores to probabilities, if asked for.
    validation_curve_ : list of (n_rules, score)
        The scores of held-out examples during training, if there were any.
    training_facts_ : dict
        Sizes of the training data, training loss, seconds, seed.

    Notes
    -----
    A missing value (NaN) in X meets no condition. A category that was not seen in training meets every ``!=`` and no
    ``==``. A missing value in y is a label that is not known: it drops out of the loss. Ctrl-C leaves the estimator
    fitted with the rules learned so far, and raises `KeyboardInterrupt`.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=100, random_state=1).fit(digits.X, digits.Y)
    >>> clf.predict(digits.X[:2])
    array([[1, 1, 1, 1, 1, 1, 0],
           [0, 1, 1, 0, 0, 0, 0]], dtype=int8)
    """

    parameter_table = PARAMETERS

    def __init__(
        self,
        loss: str | Loss = "auto",
        *,
        head: str | int | float = "multi",
        n_rules: int | str = "auto",
        rules_per_round: str | int = "auto",
        default_rule: str = "minimum",
        learning_rate: str | float = "auto",
        l1: float = 0.0,
        l2: float = 1.0,
        bootstrap: bool = True,
        sampling: str = "with-replacement",
        max_samples: str | int | float | None = "auto",
        max_features: str | int | float | None = "auto",
        fixed_features: Any = None,
        max_labels: str | int | float | None = "auto",
        max_conditions: int | None = 4,
        min_coverage: float = 1,
        search: str = "bound",
        max_bins: str | int | None = "auto",
        decode: Any = "loss",
        known_vectors: str | bool = "auto",
        calibration: str | None = None,
        class_weight: Any = None,
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
        self.default_rule = default_rule
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
        self.search = search
        self.max_bins = max_bins
        self.decode = decode
        self.known_vectors = known_vectors
        self.calibration = calibration
        self.class_weight = class_weight
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

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """Make a classifier with the settings of the paper; `parameters` override them.

        The settings are: example-wise logistic loss, 1000 rules at a learning rate of 0.3, bodies of any length,
        log2(L) features drawn per condition, and a default rule of a single Newton step. The paper tunes the loss, the
        learning rate, l2 and the number of rules.

        >>> BoomerClassifier.paper(loss="label-wise-logistic").max_features
        'log2'
        """
        return cls(**{**PAPER, **parameters})

    # --- Learning -----------------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None, feature_names: Any = None
    ) -> Self:
        """Learn rules from examples.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, L)
            Features. NaN is a missing value.
        y : array, sparse matrix or DataFrame of shape (N, K), or one column
            Labels, 0 and 1, NaN for an unknown one; or one column of classes.
        sample_weight : array of shape (N,) or (N, K), optional
            Weights of the examples, or of each label of each example. An example of weight 0 counts as absent, a label
            of weight 0 as unknown. Weights w_k of labels turn the label-wise loss into sum_k w_k log(1 + exp(-y_k f_k))
            and the example-wise loss into log(1 + sum_k w_k exp(-y_k f_k)).
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
        return self._fit(read_labels, X, y, sample_weight, eval_set, feature_names)

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the labels (Eq. 2), shape (N, K); (N,) for one column of two classes."""
        model = self.get_fitted()
        return self._label_format.shape_scores(model.read_scores(X))

    def predict(self, X: Any, *, decode: Any = None) -> Any:
        """Predict the labels of the examples, in the form of the training labels.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, L)
        decode : optional
            How to turn scores into labels this time, see the parameter of the same name.
        """
        model = self.get_fitted(decode)
        return model.predict(model.read_scores(X))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each label, shape (N, K); of each class, if y was one column.

        It is logistic(f_k), unless the estimator is calibrated. With ``loss="joint-logistic"``, it is the sum of the
        probabilities of the label vectors that have the label.
        """
        model = self.get_fitted()
        return model.decision.probabilities(model.read_scores(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of examples with all labels right; only known labels count."""
        check_is_fitted(self, "rules_")
        labels = self._label_format.read(y) if self._label_format.classes is None else None
        if labels is None or labels.known is None:
            return float(super().score(X, y, sample_weight))
        model = self.get_fitted()
        right = (model.decision.decide(model.read_scores(X)) == labels.values) | ~labels.known
        some = labels.known.any(axis=1)
        weight = None if sample_weight is None else np.asarray(sample_weight)[some]
        return float(np.average(right[some].all(axis=1), weights=weight))

    def predict_joint(self, X: Any) -> Array:
        """Return the probability of each known label vector (the rows of `label_vectors_`), shape (N, V).

        With ``loss="joint-logistic"``, this is what the loss learns. With other losses, labels count as independent:
        prod_k P(y_k), normalised over the known vectors.
        """
        if hasattr(self, "rules_") and len(self.label_vectors_) == 0:
            raise ValueError(
                "there are no known label vectors: no training example had all its labels known, or vectors hardly "
                "repeat; known_vectors=True keeps those that there are"
            )
        model = self.get_fitted()
        return model.decision.joint(model.decision.terms(model.read_scores(X)), model.label_vectors)

    def explain(self, X: Any, *, decode: Any = None, change: bool = True) -> tuple["Explanation", ...]:
        """Explain predictions: the rules that cover each example, and what they add to its scores.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, L)
        decode : optional
            How to turn scores into labels this time, see the parameter of the same name.
        change : bool, default=True
            Whether to look for the smallest change of one feature that changes the prediction. It takes a while.

        Returns
        -------
        explanations : tuple of `pyboomer.explore.explanation.Explanation`
        """
        from pyboomer.explore.explanation import explain_examples

        return explain_examples(self, X, decode, change)

    def staged_decision_function(self, X: Any, at: Iterable[int] | None = None) -> Iterator[Array]:
        """Yield the scores after 1, 2, ... rules, or after the numbers of rules in `at`, ascending."""
        _, stages = self._stage(X, at)
        return (self._label_format.shape_scores(scores.copy()) for scores in stages)

    def staged_predict(self, X: Any, at: Iterable[int] | None = None) -> Iterator[Any]:
        """Yield the labels after 1, 2, ... rules, or after the numbers of rules in `at`, ascending."""
        model, stages = self._stage(X, at)
        return (model.predict(scores) for scores in stages)

    def staged_predict_proba(self, X: Any, at: Iterable[int] | None = None) -> Iterator[Array]:
        """Yield the probabilities after 1, 2, ... rules, or after the numbers of rules in `at`, ascending."""
        model, stages = self._stage(X, at)
        return (model.decision.probabilities(scores) for scores in stages)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
