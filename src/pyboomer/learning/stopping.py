"""Early stopping ends training when examples that are held out stop gaining; the best number of rules is kept.

The held-out examples are scored after every `EVERY` rules, whatever the size of chunks, so that nothing depends on
time. Scores of a model are larger-is-better: minus the mean loss, or what a scorer of scikit-learn says.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.data.examples import Examples
from pyboomer.losses import Loss
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.ensemble import RuleEnsemble

EVERY = 10  # rules between two evaluations: a share of the time that is not felt


class Evaluation(NamedTuple):
    """A point of the validation curve."""

    n_rules: int
    score: float


class Validation:
    """How the model has done so far on examples held out.

    Parameters
    ----------
    judge : callable
        ``judge(rules)``, told of further rules, says how good the model is with them: larger is better.
    """

    def __init__(self, judge: Callable[[RuleEnsemble], float]) -> None:
        self.judge = judge
        self.patience: int | None = None  # rules without improvement that are enough
        self.curve: list[Evaluation] = []
        self.n_rules = 0

    def add(self, rules: RuleEnsemble) -> None:
        """Tell of further rules, and evaluate the model with them."""
        score = float(self.judge(rules))
        self.n_rules += len(rules)
        self.curve.append(Evaluation(self.n_rules, score))

    @property
    def best(self) -> Evaluation:
        """The first of the best evaluations."""
        return max(self.curve, key=lambda evaluation: evaluation.score)

    def is_due(self, n_rules: int, last: int) -> bool:
        """Whether the model is to be evaluated after so many rules, of which there will be `last` at most."""
        return n_rules > self.n_rules and (n_rules % EVERY == 0 or n_rules >= last or not self.curve)

    def is_enough(self, n_rules: int) -> bool:
        """Whether there has been no improvement for too long."""
        return self.patience is not None and n_rules - self.best.n_rules >= self.patience

    def count_until_due(self, n_rules: int) -> int:
        """How many rules there are to the next evaluation."""
        return EVERY - n_rules % EVERY


def _validate(examples: Examples, rate: Callable[[Array], float]) -> Validation:
    """Judge by the (N, K) scores of examples."""
    scores = np.zeros(examples.Y.shape)

    def judge(rules: RuleEnsemble) -> float:
        add_scores(rules, examples.matrix, scores)
        return rate(scores)

    return Validation(judge)


def validate_by_loss(examples: Examples, loss: Loss, Y: NDArray[Any]) -> Validation:
    """Judge by minus the mean loss; `Y` are the labels as the loss takes them."""
    Y = Y.astype(np.float64)

    def rate(scores: Array) -> float:
        mean = loss.mean_value(Y, scores, examples.label_weight, examples.weight)
        if np.isnan(mean):
            raise ValueError(f"value of loss {loss.name!r} is not a number for the held-out examples")
        return -mean

    return _validate(examples, rate)


def validate_by_scorer(examples: Examples, scoring: Any, model: Any) -> Validation:
    """Judge by a scorer of scikit-learn, or its name, on the examples of which all labels are known."""
    held_out = len(examples.Y)
    examples = examples.take(np.flatnonzero(examples.are_complete()))
    if len(examples.Y) == 0:
        raise ValueError('scoring must be "loss": no held-out example has all its labels known')
    if 2 * len(examples.Y) < held_out:
        warnings.warn(
            f"scoring judges {len(examples.Y)} of {held_out} held-out examples only: those with all labels known; "
            'scoring="loss" judges all',
            UserWarning,
            stacklevel=5,
        )
    from sklearn.metrics import get_scorer  # takes its time, and is rarely needed

    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    truth = model._form.restore(examples.Y)

    def rate(scores: Array) -> float:
        score = scorer(Stage(model, scores), examples.matrix, truth)
        if not np.isfinite(score):
            raise ValueError(f"scoring gave {score} for the held-out examples: choose another, or other examples")
        return float(score)

    return _validate(examples, rate)


class Stage:
    """A model as it stands between two rules: what a scorer of scikit-learn sees of it.

    It predicts for the held-out examples alone, whose scores are known, and is the model in all other respects.
    """

    def __init__(self, model: Any, scores: Array) -> None:
        self._model = model
        self._scores = scores

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def predict(self, X: Any) -> Any:  # noqa: ARG002
        """The labels, or targets, of the held-out examples."""
        return self._model._labels(self._scores)

    def predict_proba(self, X: Any) -> Array:  # noqa: ARG002
        """The probabilities of the labels of the held-out examples."""
        return self._model._probabilities(self._scores)

    def decision_function(self, X: Any) -> Array:  # noqa: ARG002
        """The scores of the held-out examples."""
        return self._model._shape_scores(self._scores)
