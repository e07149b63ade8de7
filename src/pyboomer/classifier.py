"""A classifier is a rule ensemble that learns labels from data and predicts them, in the way of scikit-learn."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from pyboomer.arrays import Array, Vectors
from pyboomer.data.class_weight import weigh_classes
from pyboomer.data.examples import Examples
from pyboomer.data.labels import LabelForm, Labels, read_labels
from pyboomer.data.stratification import group_examples, hold_out
from pyboomer.data.tables import Table
from pyboomer.engine.sampling import Strata
from pyboomer.estimator import RuleEstimator
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.learning.sizing import choose_loss, do_repeat
from pyboomer.learning.training import Progress, Watch, train
from pyboomer.losses import Loss, find_loss
from pyboomer.parameters import PAPER, PARAMETERS, describe_parameters
from pyboomer.predicting.calibration import FOLDS, Calibration, calibrate
from pyboomer.predicting.decision import Decision, find_decision, read_thresholds
from pyboomer.predicting.decoding import add_incomplete, find_label_vectors, joint_probabilities
from pyboomer.rules.schema import Schema

if TYPE_CHECKING:
    from pyboomer.explore.explanation import Explanation

SECONDS = 2e-10  # what the joint logistic loss takes for each example that a rule covers and each label of a vector
MANY = 10**8  # pairs of an example and a known label vector: so many that users had better know what they cost


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
        return self._fit(X, y, sample_weight, eval_set, feature_names)

    def _read_labels(self, y: Any, form: LabelForm | None) -> Labels:
        return read_labels(y, form)

    def _weigh(self, examples: Examples, form: LabelForm) -> Examples:
        return examples if self.class_weight is None else weigh_classes(examples, self.class_weight, form)

    def _split(
        self, examples: Examples, eval_set: Any, form: Any, table: Table, seed: int
    ) -> tuple[Examples, Examples | None]:
        examples, held_out = super()._split(examples, eval_set, form, table, seed)
        if self.calibration is not None and held_out is None and len(examples.Y) < FOLDS:
            raise ValueError(f"calibration needs at least {FOLDS} examples, got {len(examples.Y)}")
        return examples, held_out

    def _hold_out(self, Y: NDArray[Any], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return hold_out(Y, self.validation_fraction, seed)

    def _find_strata(self, Y: NDArray[Any]) -> Strata:
        return group_examples(Y, self.sampling.removeprefix("stratified-"))

    def _sign(self, Y: NDArray[Any]) -> NDArray[Any]:
        return np.where(Y == 1, np.int8(1), np.int8(-1))

    def _choose_loss(self, examples: Examples, form: LabelForm) -> Loss:
        if self.loss != "auto":
            return find_loss(self.loss)
        if form.classes is None and not (self.known_vectors and examples.are_complete().any()):
            return find_loss("label-wise-logistic")  # what the joint loss would be over all label vectors
        return choose_loss(examples, len(find_label_vectors(examples.Y, examples.weight)[0]))

    def _find_loss(self) -> Loss:
        loss = self.loss_
        if loss.prepare is None:
            return loss
        if self._form.classes is not None:  # all classes are known, and alike: each has a score of its own
            n_labels = len(self._form.names)
            vectors = np.eye(n_labels, dtype=np.uint8) if n_labels > 1 else np.array([[0], [1]], dtype=np.uint8)
            return loss.prepare(vectors, np.ones(len(vectors)))
        if not self.known_vectors:
            raise ValueError(
                f"loss {loss.name!r} is about the known label vectors, so known_vectors must not be False: over all "
                'label vectors, it would be loss="label-wise-logistic"'
            )
        return loss.prepare(self.label_vectors_, self.label_vector_counts_)

    def _learn_form(self, form: LabelForm, examples: Examples, go_on: bool = False) -> None:
        complete, loss = examples.are_complete(), self.loss_
        if not complete.any() and not loss.decomposable:
            warnings.warn(
                "no example has all its labels known, so there are no known label vectors: labels will be predicted by "
                "the signs of their scores",
                UserWarning,
                stacklevel=5,
            )
        vectors, counts = find_label_vectors(examples.Y[complete], examples.weight[complete])
        if self.known_vectors == "auto" and loss.decomposable:
            seen = vectors if complete.all() else find_label_vectors(examples.Y, examples.weight)[0]
            if not do_repeat(len(seen), examples):  # one that was seen before is hardly ever right
                vectors, counts = vectors[:0], counts[:0]
        if loss.prepare is not None and not complete.all():
            assert examples.label_weight is not None
            known = examples.label_weight[~complete] > 0
            vectors, counts = add_incomplete(vectors, counts, examples.Y[~complete], known, examples.weight[~complete])
        if go_on and loss.prepare is not None:  # rules that minimise a loss cannot go on with another
            vectors, counts = self.label_vectors_, self.label_vector_counts_
        elif go_on:  # those of the examples before stay known
            vectors = np.vstack([self.label_vectors_, vectors])
            kept = np.sort(np.unique(vectors, axis=0, return_index=True)[1])
            vectors, counts = vectors[kept], np.append(self.label_vector_counts_, counts)[kept]
        if loss.prepare is not None and len(vectors) * examples.size > MANY:
            warnings.warn(
                f"there are {len(vectors):,} known label vectors: with loss {loss.name!r} a rule takes time in "
                f"proportion to their number, here up to {SECONDS * int(vectors.sum()) * examples.size:.1g} seconds; "
                'loss="example-wise-logistic" does not depend on it',
                UserWarning,
                stacklevel=5,
            )
        self._set_form(form, vectors, counts)

    def _set_form(
        self, form: LabelForm, vectors: Vectors, counts: Array, calibration: Calibration | None = None
    ) -> None:
        if form.classes is None:
            read_thresholds(self.decode, len(form.names))  # a wrong number of them had better be told now
        self.label_vectors_ = vectors
        self.label_vector_counts_ = counts
        self.calibration_ = calibration
        self.classes_ = form.list_classes()
        self._form = form

    def _finish(
        self, schema: Schema, examples: Examples, held_out: Examples | None, seed: int, interrupt: DeferredInterrupt
    ) -> None:
        if self.calibration is None:
            return
        scores = self._score_unseen(schema, examples, seed, interrupt) if held_out is None else self._score(held_out)
        if interrupt.pending:
            warnings.warn(
                "interrupted before the calibration: probabilities are not calibrated", UserWarning, stacklevel=5
            )
            return
        judged = examples if held_out is None else held_out
        Y = judged.Y.astype(np.float64)
        if judged.label_weight is not None:
            Y[judged.label_weight == 0] = np.nan
        loss, vectors, bias = self._find_loss(), self.label_vectors_, self._find_decision().bias
        joint = None if loss.known is None else joint_probabilities(scores, vectors, bias)
        self.calibration_ = calibrate(loss.log_odds(scores), Y, vectors, joint)

    def _score_unseen(self, schema: Schema, examples: Examples, seed: int, interrupt: DeferredInterrupt) -> Array:
        """The score of each example by rules that were learned from others (cross-fitting)."""
        scores = np.zeros(examples.Y.shape)
        names, settings = (
            self.rules_.label_names,
            replace(self._make_settings(seed, examples, schema), n_rules=len(self.rules_)),
        )
        fold = np.random.default_rng(seed).permutation(len(scores)) % FOLDS
        for i in range(FOLDS):
            if interrupt.pending:
                break
            others, own = np.flatnonzero(fold != i), np.flatnonzero(fold == i)
            lesson = self._make_lesson(examples.take(others), schema, names)
            rules = train(lesson, settings, Watch(interrupt)).rules
            scores[own] = self._score(examples.take(own), rules)
        return scores

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the labels (Eq. 2), shape (N, K); (N,) for one column of two classes."""
        return self._shape_scores(self._last_scores(X))

    def predict(self, X: Any, *, decode: Any = None) -> Any:
        """Predict the labels of the examples, in the form of the training labels.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, L)
        decode : optional
            How to turn scores into labels this time, see the parameter of the same name.
        """
        return self._labels(self._last_scores(X), decode)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each label, shape (N, K); of each class, if y was one column.

        It is logistic(f_k), unless the estimator is calibrated. With ``loss="joint-logistic"``, it is the sum of the
        probabilities of the label vectors that have the label.
        """
        return self._probabilities(self._last_scores(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of examples with all labels right; only known labels count."""
        check_is_fitted(self, "rules_")
        labels = read_labels(y, self._form) if self._form.classes is None else None
        if labels is None or labels.known is None:
            return float(super().score(X, y, sample_weight))
        right = (self._find_decision().decide(self._last_scores(X)) == labels.values) | ~labels.known
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
        scores, decision = self._last_scores(X), self._find_decision()
        return decision.joint(decision.terms(scores), self.label_vectors_)

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
        return (self._shape_scores(scores.copy()) for scores in self._staged_scores(X, at))

    def staged_predict(self, X: Any, at: Iterable[int] | None = None) -> Iterator[Any]:
        """Yield the labels after 1, 2, ... rules, or after the numbers of rules in `at`, ascending."""
        stages, decision = self._staged_scores(X, at), self._find_decision()
        return (self._form.restore(decision.decide(scores)) for scores in stages)

    def staged_predict_proba(self, X: Any, at: Iterable[int] | None = None) -> Iterator[Array]:
        """Yield the probabilities after 1, 2, ... rules, or after the numbers of rules in `at`, ascending."""
        stages, decision = self._staged_scores(X, at), self._find_decision()
        return (decision.probabilities(scores) for scores in stages)

    def _find_decision(self, decode: Any = None) -> Decision:
        decode = self.decode if decode is None else decode
        next(parameter for parameter in self.parameter_table if parameter.name == "decode").validate(decode)
        vectors = self.label_vectors_ if self.known_vectors else self.label_vectors_[:0]
        return find_decision(decode, self._find_loss(), self._form.classes, vectors, self.calibration_)

    def _probabilities(self, scores: Array) -> Array:
        return self._find_decision().probabilities(scores)

    def _shape_scores(self, scores: Array) -> Array:
        return scores[:, 0] if self._form.classes is not None and scores.shape[1] == 1 else scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
