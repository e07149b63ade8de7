"""A classifier is a rule ensemble that learns from data and predicts, in the way of scikit-learn."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from tqdm.auto import tqdm

from pyboomer.binning import LARGEST, bin_columns, separate_bins
from pyboomer.boosting import Booster
from pyboomer.features import Matrix, sort_columns
from pyboomer.interrupt import DeferredInterrupt
from pyboomer.labels import LabelForm, read_labels
from pyboomer.losses import Loss, find_loss
from pyboomer.modelfile import save_model
from pyboomer.parameters import PARAMETERS, describe_parameters
from pyboomer.prediction import (
    add_scores,
    class_probabilities,
    decode_by_loss,
    decode_by_probability,
    decode_by_sign,
    find_label_vectors,
    marginal_probabilities,
)
from pyboomer.rules import RuleEnsemble
from pyboomer.sampling import count_features
from pyboomer.tables import read_table, read_training_table
from pyboomer.threads import spread_learning

Array = NDArray[np.float64]

BINS_FROM = 50_000  # examples; with fewer, max_bins="auto" considers all values
CHUNK_SECONDS = 0.1  # how long compiled code may run before Python looks for Ctrl-C and moves the progress bar


@dataclass(frozen=True)
class Progress:
    """What a callback is told: the rules learned so far, their training loss (computed when asked), the seconds."""

    n_rules: int
    seconds: float
    compute_loss: Callable[[], float]

    @property
    def loss(self) -> float:
        """The mean training loss."""
        return self.compute_loss()


class BoomerClassifier(ClassifierMixin, BaseEstimator):
    __doc__ = f"""Gradient boosted multi-label classification rules (BOOMER).

    Learns an ensemble of rules such as ``IF x1 <= 0.3 AND x7 > 1.2 THEN beach +0.8, urban -0.4``: Algorithms 1 to 3 of
    "Learning Gradient Boosted Multi-label Classification Rules" (Rapp et al., ECML-PKDD 2020).

    Parameters
    ----------
    {describe_parameters()}

    Attributes
    ----------
    rules_ : RuleEnsemble
        The rules learned; print it, index it, slice it, or see `RuleEnsemble.to_frame`.
    label_names_ : tuple of str
        Names of the labels: the columns of a DataFrame, else y0, y1, ...
    label_vectors_ : array of shape (V, K)
        The known label vectors: the distinct rows of the training labels, the most frequent first.
    classes_ : array of shape (K, 2), or (C,)
        For each label its two values; if y was one column, its C classes.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a DataFrame whose columns are all named by strings.

    Notes
    -----
    A missing value (NaN) in X meets no condition, whichever its operator. A category that was not seen in training
    meets every ``!=`` and no ``==``. An interrupted `fit` (Ctrl-C) leaves the estimator fitted with the rules learned
    so far and then raises `KeyboardInterrupt`.

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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    # --- Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn rules from examples.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, L)
            Features. NaN is a missing value.
        y : array, sparse matrix or DataFrame of shape (N, K), or one column
            Labels, 0 and 1, or one column of classes.
        sample_weight : array of shape (N,), optional
            Weights of the examples; an example of weight 0 counts as absent.
        """
        self._validate_parameters()
        self.__dict__.pop("rules_", None)  # whatever goes wrong from here on must not leave half of an old model
        table = read_training_table(self, X, self.categorical_features)
        if y is None:
            raise ValueError("BoomerClassifier requires y to be passed, but the target y is None")
        labels, form = read_labels(y)
        if table.matrix.shape[0] != len(labels):
            raise ValueError(f"X has {table.matrix.shape[0]} examples, but Y has {len(labels)}")
        weight = _read_weight(sample_weight, table.matrix)
        matrix, labels, weight = _drop_absent(table.matrix, labels, weight)
        with DeferredInterrupt() as interrupt:  # from here on: Numba would swallow it when it loads compiled code
            n_bins = _count_bins(self.max_bins, self.search, matrix)
            n_threads = 1 if n_bins is None else effective_n_jobs(self.n_jobs)
            bins = None if n_bins is None else bin_columns(matrix, table.categories, table.names, n_bins, n_threads)
            booster = Booster(
                sort_columns(matrix, table.categories) if bins is None else bins.columns,
                np.where(labels == 1, 1, -1).astype(np.int8),
                weight,
                loss=find_loss(self.loss),
                head=self.head,
                search=self.search,
                learning_rate=self.learning_rate,
                l2=self.l2,
                bootstrap=self.bootstrap,
                n_drawn_features=count_features(self.max_features, self.n_features_in_),
                max_conditions=self.max_conditions,
                min_coverage=self.min_coverage if self.min_coverage > 1 else 0.0,  # weights may add up to less than 1
                seed=check_random_state(self.random_state).randint(np.iinfo(np.int32).max),
            )
            vectors = find_label_vectors(labels, weight)
            try:
                with ThreadPoolExecutor(n_threads) as pool:
                    if n_threads > 1:
                        booster.learn_rules = spread_learning(pool, n_threads)
                    self._boost(booster, interrupt)
            except KeyboardInterrupt:
                interrupt.pending = True
            rules = booster.collect_rules(table.names, form.names, table.categories)
            self._store(rules if bins is None else separate_bins(rules, bins), form, vectors)
        return self  # or KeyboardInterrupt, when the context ends

    def _validate_parameters(self) -> None:
        for parameter in PARAMETERS:
            parameter.validate(getattr(self, parameter.name))

    def _boost(self, booster: Booster, interrupt: DeferredInterrupt) -> None:
        """Learn rules chunk by chunk; between chunks show progress, call callbacks and look for Ctrl-C."""
        callbacks = self.callbacks or ()
        callbacks = (callbacks,) if callable(callbacks) else tuple(callbacks)
        n_rules = int(self.n_rules)  # of NumPy's kinds of integers, compiled code would want a version each
        begin = time.perf_counter()
        size = 1
        with tqdm(total=n_rules, initial=1, unit=" rules", desc="Learning", disable=not self.verbose) as bar:
            while not interrupt.pending:
                if callbacks:
                    progress = Progress(booster.n_rules, time.perf_counter() - begin, booster.training_loss)
                    answers = [callback(progress) for callback in callbacks]
                    if any(answers):
                        break
                if booster.n_rules >= n_rules:
                    break
                start = time.perf_counter()
                count = min(size, n_rules - booster.n_rules)
                booster.learn(count)
                bar.update(count)
                if not callbacks:
                    # the number of rules that would take CHUNK_SECONDS, but at most twice the last one
                    seconds = max(time.perf_counter() - start, 1e-6)
                    size = max(1, min(2 * count, int(count * CHUNK_SECONDS / seconds)))

    def _store(self, rules: RuleEnsemble, form: LabelForm, vectors: NDArray[np.uint8]) -> Self:
        """Set what makes the estimator a fitted one."""
        self.rules_ = rules
        self.label_names_ = form.names
        self.label_vectors_ = vectors
        self.classes_ = form.list_classes()
        self._form = form
        return self

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """The scores of the labels (Eq. 2), shape (N, K); (N,) for one column of two classes."""
        return self._shape_scores(self._last_scores(X))

    def predict(self, X: Any) -> Any:
        """The labels of the examples, in the form of the training labels. See the parameter `decode`."""
        return self._labels(self._last_scores(X))

    def predict_proba(self, X: Any) -> Array:
        """The probability that each label is relevant, shape (N, K); of each class, if y was one column.

        For a decomposable loss, logistic(f_k). Otherwise a distribution over the known label vectors, P(y)
        proportional to prod_k logistic(y_k f_k), is summed over those in which the label is relevant; measured on
        benchmark data, this is much better calibrated than P(y) proportional to exp(-loss), which is far too flat.
        """
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

    def _last_scores(self, X: Any) -> Array:
        check_is_fitted(self, "rules_")
        return next(self._staged_scores(X, [len(self.rules_)]))

    def _staged_scores(self, X: Any, at: Iterable[int] | None) -> Iterator[Array]:
        """The (N, K) scores after each number of rules; the same array every time."""
        check_is_fitted(self, "rules_")
        self._validate_parameters()
        rules = self.rules_
        try:
            counts = [index(n) for n in (range(1, len(rules) + 1) if at is None else at)]
        except TypeError:
            raise ValueError(f"at must be a list of whole numbers, got {at!r}") from None
        if any(a > b for a, b in pairwise([0, *counts, len(rules)])):
            raise ValueError(f"at must ascend from 0 to at most {len(rules)}, the number of rules; got {counts}")
        matrix = read_table(self, X, rules.feature_names, rules.categories)
        return self._accumulate(rules, matrix, counts)

    def _accumulate(self, rules: RuleEnsemble, matrix: Matrix, counts: Sequence[int]) -> Iterator[Array]:
        scores = np.zeros((matrix.shape[0], len(self.label_names_)))
        for first, last in pairwise([0, *counts]):
            part = rules if last - first == len(rules) else rules[first:last]
            add_scores(part, matrix, scores, effective_n_jobs(self.n_jobs))
            yield scores

    def _labels(self, scores: Array) -> Any:
        loss = find_loss(self.loss)
        if self._form.classes is not None:  # one of them is relevant, so all decodings agree
            return self._form.classes[scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)]
        if self.decode == "subset":
            labels = decode_by_probability(scores, self.label_vectors_, loss)
        elif self.decode == "hamming":
            labels = (self._probabilities(scores) > 0.5).astype(np.uint8)
        elif loss.decomposable:
            labels = decode_by_sign(scores)
        else:
            labels = decode_by_loss(scores, self.label_vectors_, loss)
        return self._form.restore(labels)

    def _probabilities(self, scores: Array) -> Array:
        loss = find_loss(self.loss)
        if self._form.classes is not None:
            return class_probabilities(scores, loss) if len(self.classes_) > 1 else np.ones((len(scores), 1))
        return marginal_probabilities(scores, None if loss.decomposable else self.label_vectors_, loss)

    def _shape_scores(self, scores: Array) -> Array:
        return scores[:, 0] if self._form.classes is not None and scores.shape[1] == 1 else scores

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file; `pyboomer.load_model` reads it back with exactly the same scores."""
        check_is_fitted(self, "rules_")
        save_model(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def _count_bins(max_bins: str | int | None, search: str, matrix: Matrix) -> int | None:
    """How many bins a feature may have; None for exact values."""
    if max_bins == "auto":
        return LARGEST if not sp.issparse(matrix) and matrix.shape[0] > BINS_FROM and search != "exact" else None
    if max_bins is not None and sp.issparse(matrix):
        raise ValueError(f'max_bins must be None or "auto" for a sparse X, got {max_bins!r}')
    return None if max_bins is None else int(max_bins)


def _read_weight(sample_weight: Any, matrix: Matrix) -> Array:
    weight = _check_sample_weight(sample_weight, matrix, dtype=np.float64, copy=True)
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weight.min()} for example {weight.argmin()}")
    if not weight.any():
        raise ValueError("sample_weight must be positive for at least one example")
    if weight.max() > np.finfo(np.float64).max / len(weight):
        raise ValueError(f"sample_weight is too large to be added up, got {weight.max()} for example {weight.argmax()}")
    return weight


def _drop_absent(matrix: Matrix, labels: NDArray[np.uint8], weight: Array) -> tuple[Matrix, NDArray[np.uint8], Array]:
    """Leave out the examples of weight 0: they must not count for anything, not even in the bootstrap."""
    if (weight > 0).all():
        return matrix, labels, weight
    present = np.flatnonzero(weight)
    return matrix[present], labels[present], weight[present]
