"""A judge says how good or bad a model is on some examples, given their scores.

It goes by ``"loss"``, the mean of the loss that was minimised; one of `pyboomer.metrics.METRICS`; or a scorer of
scikit-learn, or its name. A scorer wants examples of which all labels are known, and looks at these alone; the others
look at all labels that are known.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.data.examples import Examples
from pyboomer.learning.fitted import ScoredModel
from pyboomer.metrics import METRICS

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator


class Judge(NamedTuple):
    """What rates the scores of certain examples, and by which name."""

    name: str
    larger_is_better: bool
    rate: Callable[[Array], float]


def is_classifier(model: "RuleEstimator") -> bool:
    """Whether a model predicts labels rather than numbers."""
    return model.get_fitted().decision.rule != "numbers"


def make_judge(model: Any, measure: Any, examples: Examples) -> Judge:
    """The judge that goes by a measure; or say which there are."""
    if isinstance(measure, str) and measure == "loss":
        fitted = model.get_fitted()
        return Judge("loss", False, lambda scores: fitted.mean_loss(examples, scores))
    if isinstance(measure, str) and measure in METRICS:
        if not is_classifier(model):
            raise ValueError(f'{measure!r} is about labels; for a regressor, try "loss" or "r2"')
        return _judge_by_metric(model, measure, examples)
    complete = np.flatnonzero(examples.are_complete())
    if len(complete) == 0:
        raise ValueError(f'{measure!r} needs examples with all labels known; "loss" does not')
    return _judge_by_scorer(model, measure, examples.take(complete), complete)


def _judge_by_metric(model: Any, name: str, examples: Examples) -> Judge:
    decision, metric = model.get_fitted().decision, METRICS[name]
    unknown = False if examples.label_weight is None else examples.label_weight == 0
    truth = np.ma.array(examples.Y, mask=unknown)

    def rate(scores: Array) -> float:
        return metric(truth, decision.decide(scores), sample_weight=examples.weight)

    return Judge(name, metric.larger_is_better, rate)


def _judge_by_scorer(model: Any, scoring: Any, examples: Examples, rows: NDArray[np.int64]) -> Judge:
    from sklearn.metrics import get_scorer, get_scorer_names  # take their time, and are rarely needed

    if isinstance(scoring, str):
        if scoring not in get_scorer_names():
            raise ValueError(
                f'there is no measure {scoring!r}; take "loss", one of {", ".join(METRICS)}, '
                "or the name of a scorer of scikit-learn"
            )
        name, scorer = scoring, get_scorer(scoring)
    elif callable(scoring):
        name, scorer = getattr(scoring, "__name__", "score"), scoring
    else:
        raise TypeError(f"a measure is a name or a scorer of scikit-learn, got {scoring!r}")
    fitted = model.get_fitted()
    truth = fitted.label_format.restore(examples.Y)

    def rate(scores: Array) -> float:
        return float(scorer(ScoredModel(model, fitted, scores[rows]), examples.matrix, truth))

    return Judge(name, True, rate)


def find_label_errors(model: Any, examples: Examples, scores: Array) -> Array:
    """The error of each label, shape (K,): the share of examples where it is wrong; of a target, the squared error."""
    if is_classifier(model):
        wrong = (model.get_fitted().decision.decide(scores) != examples.Y).astype(np.float64)
    else:
        wrong = (scores - examples.Y) ** 2
    weight = examples.weight[:, None] * (1.0 if examples.label_weight is None else examples.label_weight)
    weight = np.broadcast_to(weight, wrong.shape)
    total = weight.sum(axis=0)
    return np.where(total > 0, (wrong * weight).sum(axis=0) / np.where(total > 0, total, 1.0), 0.0)
