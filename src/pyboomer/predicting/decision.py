"""A decision says how the scores of a model become its predictions: one of a few rules, and what it needs.

================  =================================================================================================
rule              prediction
================  =================================================================================================
``"numbers"``     the scores themselves: those of a regressor
``"class"``       the class of the largest score; of two classes, which have one score, its sign decides
``"sign"``        the labels of positive scores (Eq. 18)
``"loss"``        the known label vector of least loss (Eq. 19)
``"odds"``        the labels of positive log-odds, those more probable than not
``"hamming"``     the labels more probable than not, by themselves and by the known label vectors
``"subset"``      the most probable known label vector
``"f1"``          the label vector of largest expected F-measure
``"rank"``        the `count` most probable labels
``"thresholds"``  the labels more probable than their `thresholds`
================  =================================================================================================

Whoever predicts, explains or exports asks the decision, and nobody else, how that is done.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pyboomer.arrays import Array, Vectors
from pyboomer.losses import Loss, example_wise_logistic
from pyboomer.losses.squared import (
    example_wise_squared_error,
    example_wise_squared_hinge,
    label_wise_squared_error,
)
from pyboomer.predicting.calibration import Calibration
from pyboomer.predicting.decoding import (
    NO_CURVE,
    class_probabilities,
    decode_by_f1,
    decode_by_loss,
    decode_by_marginals,
    decode_by_probability,
    decode_by_rank,
    decode_by_sign,
    joint_probabilities,
)

# whose least loss exporters and the page can find themselves; a loss that is new there has to be taught to each
WELL_KNOWN = (example_wise_logistic, example_wise_squared_error, example_wise_squared_hinge)


@dataclass(frozen=True, eq=False)
class Decision:
    """How scores become predictions; `decode` is what was asked for, as the parameter of that name says it."""

    rule: str
    loss: Loss
    decode: Any = "loss"
    # those known; there are none if any label vector may be right
    vectors: Vectors = field(default_factory=lambda: np.empty((0, 0), dtype=np.uint8))
    calibration: Calibration | None = None
    classes: NDArray[Any] | None = None  # of a single column; a single class is listed twice
    thresholds: Array | None = None  # one for all labels, or one for each
    count: int = 0

    @property
    def odds(self) -> str:
        """How scores become log-odds, before calibration.

        "scores" are log-odds as they are; "means" are expectations of labels, -1 and +1, as for the squared losses;
        "vectors" have probabilities, from which those of labels follow; "own" is a function of the user's.
        """
        if self.loss.known is not None:
            return "vectors"
        if self.loss.log_odds is Loss.log_odds:
            return "scores"
        return "means" if self.loss.log_odds is label_wise_squared_error.log_odds else "own"

    @property
    def plain_odds(self) -> bool:
        """Whether the scores are log-odds as they are, rather than by a function of the loss or by calibration."""
        return self.odds == "scores" and self.calibration is None

    @property
    def have_sign_of_scores(self) -> bool:
        """Whether log-odds are above 0 where scores are, if they are none of the user's own."""
        return self.odds != "vectors" and self.calibration is None

    @property
    def out_of_reach(self) -> tuple[str, ...]:
        """What nobody can compute who has not got the code of the loss: "labels", "probabilities", or nothing."""
        if self.rule in ("numbers", "class", "sign"):
            labels = False
        else:
            labels = self.loss not in WELL_KNOWN if self.rule == "loss" else self.odds == "own"
        probabilities = self.odds == "own" and self.rule != "numbers" and not self.is_settled
        return ("labels",) * labels + ("probabilities",) * probabilities

    @property
    def is_settled(self) -> bool:
        """Whether there is but one class."""
        return self.classes is not None and bool(self.classes[0] == self.classes[-1])

    def decide(self, scores: Array) -> NDArray[Any]:
        """The (N, K) labels that (N, K) scores stand for; of several classes, exactly one is relevant."""
        if self.rule == "numbers":
            return scores
        if self.rule == "class" and scores.shape[1] > 1:
            return np.eye(scores.shape[1], dtype=np.uint8)[scores.argmax(axis=1)]
        if self.rule in ("class", "sign"):
            return decode_by_sign(scores)
        if self.rule == "loss":
            return decode_by_loss(scores, self.vectors, self.loss)
        if self.rule == "subset":
            return decode_by_probability(self.terms(scores), self.vectors, self.bias)
        if self.rule == "f1":
            return decode_by_f1(self.terms(scores), self.vectors if len(self.vectors) else None, self.bias, self.curve)
        log_odds = self.log_odds(scores)
        if self.rule == "hamming":
            return decode_by_marginals(log_odds, self.vectors)
        if self.rule == "rank":
            return decode_by_rank(log_odds, self.count)
        if self.rule == "thresholds":
            return (expit(log_odds) > self.thresholds).astype(np.uint8)
        return decode_by_sign(log_odds)

    def log_odds(self, scores: Array) -> Array:
        """What scores mean as probabilities of labels."""
        log_odds = self.loss.log_odds(scores)
        return log_odds if self.calibration is None else self.calibration.log_odds(log_odds)

    @property
    def bias(self) -> Array | float:
        """What each known label vector scores besides its labels: nothing, unless the loss is about them.

        Classes are all alike.
        """
        return 0.0 if self.loss.known is None or self.classes is not None else self.loss.known.bias

    @property
    def curve(self) -> Array:
        """The points of the curve that calibrates probabilities of label vectors, if there is one."""
        joint = None if self.calibration is None else self.calibration.joint
        return NO_CURVE if joint is None else np.array([joint.x, joint.y])

    def terms(self, scores: Array) -> Array:
        """What each label adds to the scores of the label vectors that have it.

        That is its log-odds, as if labels were independent; or its score, if the loss is about label vectors.
        """
        return self.log_odds(scores) if self.loss.known is None else scores

    def joint(self, terms: Array, vectors: Vectors) -> Array:
        """The probability of each of some label vectors, one of which is right."""
        joint = joint_probabilities(terms, vectors, self.bias)
        return joint if self.calibration is None else self.calibration.scale_joint(joint)

    def probabilities(self, scores: Array) -> Array:
        """The probability that each label is relevant, shape (N, K); of each class, if there are classes."""
        if self.is_settled:
            return np.ones((len(scores), 1))
        if self.classes is None:
            return np.asarray(expit(self.log_odds(scores)))
        return class_probabilities(self.terms(scores) if self.calibration is None else self.log_odds(scores))


def find_decision(
    decode: Any, loss: Loss, classes: NDArray[Any] | None, vectors: Vectors, calibration: Calibration | None
) -> Decision:
    """The decision of a classifier: what its parameter `decode` comes to, given all that it has learned.

    `classes` are those of a single column, else None. `vectors`, of shape (V, K), are the known label vectors; V is 0
    if there are none, or if labels may occur together as they never did.
    """
    joint = len(vectors) > 0 and not loss.decomposable  # then it takes more than one label to decide on a label
    thresholds, count = None, 0
    if classes is not None:
        rule = "class"  # one of them is relevant, so all decodings agree
    elif not isinstance(decode, str):
        rule, thresholds = "thresholds", read_thresholds(decode, vectors.shape[1])
    elif decode.startswith("top-"):
        rule, count = "rank", int(decode.removeprefix("top-"))
    elif decode == "loss":
        rule = ("loss" if loss.known is None else "subset") if joint else "sign"  # the most probable has least loss
    elif decode == "f1" or (decode == "subset" and len(vectors) > 0):
        rule = decode
    elif decode == "hamming" and joint and loss.known is None and calibration is None:
        rule = "hamming"
    else:
        rule = "odds"
    return Decision(rule, loss, decode, vectors, calibration, classes, thresholds, count)


def read_thresholds(decode: Any, n_labels: int) -> Array | None:
    """The thresholds in the parameter `decode`, if there are any."""
    if isinstance(decode, str):
        return None
    thresholds = np.asarray(decode, dtype=np.float64)
    if thresholds.size not in (1, n_labels):
        raise ValueError(f"decode has {thresholds.size} thresholds, but there are {n_labels} labels")
    return thresholds
