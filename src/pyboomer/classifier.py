"""A classifier is a rule ensemble that learns labels from data and predicts them, in the way of scikit-learn."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from pyboomer.estimator import Progress, RuleEstimator
from pyboomer.examples import Examples
from pyboomer.labels import LabelForm, Labels, read_labels
from pyboomer.losses import Loss, find_loss
from pyboomer.parameters import PARAMETERS, describe_parameters
from pyboomer.prediction import (
    class_probabilities,
    decode_by_loss,
    decode_by_probability,
    decode_by_sign,
    find_label_vectors,
    label_probabilities,
    marginal_probabilities,
)
from pyboomer.stratification import hold_out

Array = NDArray[np.float64]


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
        The rules learned; print it, index it, slice it, or see `RuleEnsemble.to_frame`.
    label_names_ : tuple of str
        Names of the labels: the columns of a DataFrame, else y0, y1, ...
    label_vectors_ : array of shape (V, K)
        The known label vectors: the distinct complete rows of the training labels, the most frequent first.
    classes_ : array of shape (K,), or (C,)
        The numbers of the labels, 0 to K - 1; if y was one column, its C classes.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a DataFrame whose columns are all named by strings.
    validation_curve_ : list of (n_rules, score)
        How held-out examples were judged in the course of training; only if there were any.
    training_facts_ : dict
        Sizes of the training data, training loss, seconds, seed.

    Notes
    -----
    A missing value (NaN) in X meets no condition, whichever its operator. A category that was not seen in training
    meets every ``!=`` and no ``==``. A missing value in y is a label that is not known: its term leaves the loss. An
    interrupted `fit` (Ctrl-C) leaves the estimator fitted with the rules learned so far and then raises
    `KeyboardInterrupt`.

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

    table = PARAMETERS

    def __init__(
        self,
        loss: str | Loss = "example-wise-logistic",
        *,
        head: str = "multi",
        n_rules: int = 1000,
        learning_rate: float = 0.1,
        l2: float = 1.0,
        bootstrap: bool = True,
        max_features: str | int | float | None = "log2",
        max_conditions: int | None = None,
        min_coverage: float = 1,
        search: str = "bound",
        max_bins: str | int | None = "auto",
        decode: str = "loss",
        categorical_features: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 100,
        scoring: Any = "loss",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Callable[[Progress], Any] | Sequence[Callable[[Progress], Any]] | None = None,
    ) -> None:
        self.loss = loss
        self.head = head
        self.n_rules = n_rules
        self.learning_rate = learning_rate
        self.l2 = l2
        self.bootstrap = bootstrap
        self.max_features = max_features
        self.max_conditions = max_conditions
        self.min_coverage = min_coverage
        self.search = search
        self.max_bins = max_bins
        self.decode = decode
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    # --- Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None) -> Self:
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
            Examples that are not learned from: they are evaluated during training (`validation_curve_`), and with
            ``early_stopping=True`` they decide when it ends.
        """
        return self._fit(X, y, sample_weight, eval_set)

    def _read_labels(self, y: Any, form: LabelForm | None) -> Labels:
        return read_labels(y, form)

    def _hold_out(self, Y: NDArray[Any], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return hold_out(Y, self.validation_fraction, seed)

    def _sign(self, Y: NDArray[Any]) -> NDArray[Any]:
        return np.where(Y == 1, 1, -1).astype(np.int8)

    def _search(self) -> str:
        return self.search

    def _learn_form(self, form: LabelForm, examples: Examples) -> None:
        complete = examples.are_complete()
        if not complete.any() and not find_loss(self.loss).decomposable:
            warnings.warn(
                "no example has all its labels known, so there are no known label vectors: labels will be predicted by "
                "the signs of their scores",
                UserWarning,
                stacklevel=4,
            )
        self._set_form(form, find_label_vectors(examples.Y[complete], examples.weight[complete]))

    def _set_form(self, form: LabelForm, vectors: NDArray[np.uint8]) -> None:
        self.label_vectors_ = vectors
        self.classes_ = form.list_classes()
        self._form = form

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """The scores of the labels (Eq. 2), shape (N, K); (N,) for one column of two classes."""
        return self._shape_scores(self._last_scores(X))

    def predict(self, X: Any) -> Any:
        """The labels of the examples, in the form of the training labels. See the parameter `decode`."""
        return self._labels(self._last_scores(X))

    def predict_proba(self, X: Any) -> Array:
        """The probability that each label is relevant, logistic(f_k), shape (N, K); of each class, for one column."""
        return self._probabilities(self._last_scores(X))

    def staged_decision_function(self, X: Any, at: Iterable[int] | None = None) -> Iterator[Array]:
        """The scores after 1, 2, ... rules, or after the numbers of rules given in `at`, ascending."""
        return (self._shape_scores(scores.copy()) for scores in self._staged_scores(X, at))

    def staged_predict(self, X: Any, at: Iterable[int] | None = None) -> Iterator[Any]:
        """The labels after 1, 2, ... rules, or after the numbers of rules given in `at`, ascending."""
        return (self._labels(scores) for scores in self._staged_scores(X, at))

    def staged_predict_proba(self, X: Any, at: Iterable[int] | None = None) -> Iterator[Array]:
        """The probabilities after 1, 2, ... rules, or after the numbers of rules given in `at`, ascending."""
        return (self._probabilities(scores) for scores in self._staged_scores(X, at))

    def _labels(self, scores: Array) -> Any:
        loss, vectors = find_loss(self.loss), self.label_vectors_
        if self._form.classes is not None:  # one of them is relevant, so all decodings agree
            return self._form.classes[scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)]
        if len(vectors) == 0 or (loss.decomposable and self.decode != "subset"):
            labels = decode_by_sign(scores)
        elif self.decode == "subset":
            labels = decode_by_probability(scores, vectors, loss)
        elif self.decode == "hamming":
            labels = (marginal_probabilities(scores, vectors, loss) > 0.5).astype(np.uint8)
        else:
            labels = decode_by_loss(scores, vectors, loss)
        return self._form.restore(labels)

    def _probabilities(self, scores: Array) -> Array:
        loss = find_loss(self.loss)
        if self._form.classes is not None:
            return class_probabilities(scores, loss) if len(self.classes_) > 1 else np.ones((len(scores), 1))
        return label_probabilities(scores, loss)

    def _shape_scores(self, scores: Array) -> Array:
        return scores[:, 0] if self._form.classes is not None and scores.shape[1] == 1 else scores

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_form"):
            self.classes_ = self._form.list_classes()  # in version 0.1.0 they had another shape

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
