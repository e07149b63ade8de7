"""A fitted model as a plain value: what was learned, with the parameters that predictions depend on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from pyboomer.arrays import Array, Matrix
from pyboomer.data.examples import Examples, read_examples
from pyboomer.data.labels import LabelFormat
from pyboomer.data.tables import Features, read_table
from pyboomer.data.targets import TargetFormat
from pyboomer.learning.parallel import count_threads
from pyboomer.losses import Loss
from pyboomer.predicting.calibration import Calibration
from pyboomer.predicting.decision import Decision, find_decision
from pyboomer.predicting.scores import WORTHWHILE, add_scores
from pyboomer.rules.ensemble import RuleEnsemble


@dataclass(frozen=True, eq=False)
class FittedModel:
    """What `fit` has learned; parameters are as they were when the value was made."""

    params: Mapping[str, Any]
    label_format: LabelFormat | TargetFormat
    features: Features
    loss: Loss
    rules: RuleEnsemble
    label_vectors: Any = None  # (V, K): those known; None of targets
    label_vector_counts: Any = None  # (V,)
    calibration: Calibration | None = None
    training_facts: Mapping[str, Any] = field(default_factory=dict)
    validation_curve: Sequence[tuple[int, float]] | None = None

    @cached_property
    def objective(self) -> Loss:
        """What is minimised: the loss, given the label vectors that it is about, if it is about any."""
        loss = self.loss
        if loss.prepare is None or not isinstance(self.label_format, LabelFormat):
            return loss
        if self.label_format.classes is not None:  # all classes are known, and alike: each has a score of its own
            n_labels = len(self.label_format.names)
            vectors = np.eye(n_labels, dtype=np.uint8) if n_labels > 1 else np.array([[0], [1]], dtype=np.uint8)
            return loss.prepare(vectors, np.ones(len(vectors)))
        if not self.params["known_vectors"]:
            raise ValueError(
                f"loss {loss.name!r} is about the known label vectors, so known_vectors must not be False: over all "
                'label vectors, it would be loss="label-wise-logistic"'
            )
        return loss.prepare(self.label_vectors, self.label_vector_counts)

    @cached_property
    def decision(self) -> Decision:
        """How scores become predictions."""
        if isinstance(self.label_format, TargetFormat):
            return Decision("numbers", self.loss)
        vectors = self.label_vectors if self.params["known_vectors"] else self.label_vectors[:0]
        classes = self.label_format.classes
        return find_decision(self.params["decode"], self.objective, classes, vectors, self.calibration)

    def read_matrix(self, X: Any) -> Matrix:
        """Read X for predictions."""
        return read_table(X, self.rules.schema, self.features)

    def read_examples(self, X: Any, y: Any, sample_weight: Any = None) -> Examples:
        """Read further examples."""
        return read_examples(self.read_matrix(X), self.label_format.read(y), sample_weight)

    def score(self, matrix: Matrix, rules: RuleEnsemble | None = None) -> Array:
        """The (N, K) scores of examples that were read, by all rules or by others."""
        scores = np.zeros((matrix.shape[0], len(self.rules.label_names)))
        self._add_scores(self.rules if rules is None else rules, matrix, scores)
        return scores

    def read_scores(self, X: Any) -> Array:
        """Read X, and return its scores."""
        return self.score(self.read_matrix(X))

    def stage_scores(self, matrix: Matrix, counts: Sequence[int]) -> Iterator[Array]:
        """The (N, K) scores after each number of rules; the same array every time."""
        scores = np.zeros((matrix.shape[0], len(self.rules.label_names)))
        for first, last in pairwise([0, *counts]):
            self._add_scores(self.rules[first:last], matrix, scores)
            yield scores

    def _add_scores(self, rules: RuleEnsemble, matrix: Matrix, scores: Array) -> None:
        n_threads = count_threads(self.params["n_jobs"], len(scores) * len(rules) >= WORTHWHILE)
        add_scores(rules, matrix, scores, n_threads, self.params["device"])

    def predict(self, scores: Array) -> Any:
        """The predictions for (N, K) scores, in the format of the training labels."""
        return self.label_format.restore(self.decision.decide(scores))

    def mean_loss(self, examples: Examples, scores: Array) -> float:
        """The mean of what is minimised, given the scores of examples."""
        Y = examples.signed.astype(np.float64)
        return self.objective.mean_value(Y, scores, examples.label_weight, examples.weight)

    def measure(self, examples: Examples, rules: RuleEnsemble | None = None) -> float:
        """The mean of what is minimised, by all rules or by others."""
        return self.mean_loss(examples, self.score(examples.matrix, rules))


class ScoredModel:
    """An estimator as a scorer of scikit-learn sees it: it predicts for examples whose scores are known.

    In all other respects, it is the estimator.
    """

    def __init__(self, estimator: Any, model: FittedModel, scores: Array) -> None:
        self._estimator, self._model, self._scores = estimator, model, scores

    def __getattr__(self, name: str) -> Any:
        return getattr(self._estimator, name)

    def predict(self, X: Any) -> Any:  # noqa: ARG002
        """The labels, or targets, of the examples."""
        return self._model.predict(self._scores)

    def predict_proba(self, X: Any) -> Array:  # noqa: ARG002
        """The probabilities of the labels of the examples."""
        return self._model.decision.probabilities(self._scores)

    def decision_function(self, X: Any) -> Array:  # noqa: ARG002
        """The scores of the examples."""
        label_format = self._model.label_format
        return label_format.shape_scores(self._scores) if isinstance(label_format, LabelFormat) else self._scores
