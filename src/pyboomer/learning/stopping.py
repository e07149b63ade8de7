"""Early stopping ends training when examples that are held out stop gaining; the best number of rules is kept.

The held-out examples are scored after every `EVERY` rules, whatever the size of chunks, so that nothing depends on
time. Scores of a model are larger-is-better: minus the mean loss, or what a scorer of scikit-learn says.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pyboomer.arrays import Array
from pyboomer.data.alerts import alert
from pyboomer.data.examples import Examples
from pyboomer.learning.fitted import FittedModel, ScoredModel
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
    patience : int or None
        The rules without improvement that are enough.
    """

    def __init__(self, judge: Callable[[RuleEnsemble], float], patience: int | None) -> None:
        self.judge, self.patience = judge, patience
        self.losses: dict[int, float] = {}  # of training, after the numbers of rules for which they are known
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


def make_validation(model: FittedModel, held_out: Examples, estimator: Any) -> Validation:
    """Judge by `scoring`: a scorer of scikit-learn sees the estimator with scores of its own."""
    scores = np.zeros(held_out.Y.shape)
    scoring = model.params["scoring"]
    rate = _rate_by_loss(model, held_out) if scoring == "loss" else _rate_by_scorer(model, held_out, scoring, estimator)

    def judge(rules: RuleEnsemble) -> float:
        add_scores(rules, held_out.matrix, scores)
        return rate(scores)

    return begin_validation(model, judge)


def begin_validation(model: FittedModel, judge: Callable[[RuleEnsemble], float]) -> Validation:
    """Judge the rules that there are already; `early_stopping` asks for patience."""
    patience = int(model.params["n_iter_no_change"]) if model.params["early_stopping"] else None
    validation = Validation(judge, patience)
    if len(model.rules):
        validation.add(model.rules)
    return validation


def _rate_by_loss(model: FittedModel, examples: Examples) -> Callable[[Array], float]:
    """Minus the mean loss."""

    def rate(scores: Array) -> float:
        mean = model.mean_loss(examples, scores)
        if np.isnan(mean):
            raise ValueError(f"value of loss {model.loss.name!r} is not a number for the held-out examples")
        return -mean

    return rate


def _rate_by_scorer(model: FittedModel, examples: Examples, scoring: Any, estimator: Any) -> Callable[[Array], float]:
    """What a scorer of scikit-learn, or one of this name, says of the examples of which all labels are known."""
    complete = np.flatnonzero(examples.are_complete())
    n, held_out = len(complete), len(examples.Y)
    if n == 0:
        raise ValueError('scoring must be "loss": no held-out example has all its labels known')
    if 2 * n < held_out:
        alert(
            f"scoring judges {n} of {held_out} held-out examples only: those with all labels known; "
            'scoring="loss" judges all'
        )
    from sklearn.metrics import get_scorer  # takes its time, and is rarely needed

    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    examples = examples.take(complete)
    truth = model.label_format.restore(examples.Y)

    def rate(scores: Array) -> float:
        score = scorer(ScoredModel(estimator, model, scores[complete]), examples.matrix, truth)
        if not np.isfinite(score):
            raise ValueError(f"scoring gave {score} for the held-out examples: choose another, or other examples")
        return float(score)

    return rate
