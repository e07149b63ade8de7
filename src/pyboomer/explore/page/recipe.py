"""A recipe tells a page how scores become predictions: one of a few kinds, and the numbers it needs.

=============  ===================================================================================================
kind           prediction
=============  ===================================================================================================
``"numbers"``  the scores themselves
``"classes"``  the class of the largest score; of two classes, which have one score, its sign decides
``"sign"``     the labels of positive scores (Eq. 18)
``"loss"``     the known label vector of least loss (Eq. 19)
``"sum"``      the most probable known label vector: that of the largest sum of scores, and of `bias` if there is any
``"f1"``       the label vector of largest expected F-measure, by the probabilities of the known ones
``"mean"``     the labels more probable than not, by themselves and by the known label vectors
``"rank"``     the `count` labels of the largest log-odds
``"cuts"``     the labels whose log-odds are above their `cuts`
=============  ===================================================================================================

The log-odds of labels are their scores; if there is a `bias`, they follow from the probabilities of the known label
vectors, which then are in the recipe.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from pyboomer.explore.page.packing import pack
from pyboomer.predicting.decision import WELL_KNOWN, Decision
from pyboomer.predicting.decoding import find_cuts

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator

# the rules of `Decision`, and what a page calls them
KINDS = {
    "numbers": "numbers",
    "class": "classes",
    "sign": "sign",
    "loss": "loss",
    "subset": "sum",
    "f1": "f1",
    "hamming": "mean",
    "rank": "rank",
    "thresholds": "cuts",
    "odds": "cuts",  # of 0, or "sign" if scores are log-odds
}
MOST_BITS = 2**22  # of known label vectors: 0.7 MB


def describe_decoding(model: "RuleEstimator") -> dict[str, Any]:
    """Tell how scores become predictions, by one of the kinds above.

    What is not among them (calibrated probabilities, F1 without known label vectors, a user's own loss) is replaced by
    what the loss does, and a `note` says so.
    """
    decision, note = model.get_fitted().decision, None
    if not _can_be_followed(decision):
        asked = f"decode={decision.decode!r}" if decision.thresholds is None else "decode=thresholds"
        note = f"This model predicts with {asked}; here, labels are predicted as the loss does, which may differ."
        decision = model.get_fitted("loss").decision
    if not _can_be_followed(decision):
        note = f"The loss {decision.loss.name!r} is code of its own: here, labels are predicted by sign instead."
        return {"kind": "sign", "note": note}
    rule = "sign" if decision.rule == "odds" and decision.plain_odds else decision.rule
    recipe: dict[str, Any] = {"kind": KINDS[rule], "note": note}
    if decision.classes is not None:
        return recipe | {"classes": [str(value) for value in decision.classes.tolist()]}
    if rule == "rank":
        recipe["count"] = decision.count
    elif recipe["kind"] == "cuts":
        cuts = 0.0 if decision.thresholds is None else find_cuts(decision.thresholds)
        recipe["cuts"] = pack(np.broadcast_to(cuts, len(model.rules_.label_names)))
    by_vectors = rule in ("loss", "subset", "f1", "hamming") or decision.odds == "vectors"
    return recipe | _pack_vectors(decision) if by_vectors else recipe


def _can_be_followed(decision: Decision) -> bool:
    """Whether a page can decide so: it takes scores for log-odds of labels, or adds them up to those of vectors."""
    if decision.rule in ("numbers", "class", "sign"):
        return True
    if decision.rule == "loss":
        return decision.loss in WELL_KNOWN
    if decision.odds == "vectors":
        return decision.calibration is None or decision.rule == "subset"  # which is the most probable is not calibrated
    return decision.plain_odds and (decision.rule != "f1" or len(decision.vectors) > 0)


def _pack_vectors(decision: Decision) -> dict[str, Any]:
    """The known label vectors as bits, the most frequent ones if they are too many, and their bias if they have any."""
    vectors = decision.vectors
    most = max(1, MOST_BITS // vectors.shape[1])
    packed: dict[str, Any] = {"vectors": pack(np.packbits(vectors[:most], axis=1))}
    if decision.loss.known is not None:
        packed["bias"] = pack(decision.loss.known.bias[:most])
    if len(vectors) > most:
        packed["note"] = (
            f"Only the {most:,} most frequent of {len(vectors):,} known label vectors are considered here; "
            "predictions may differ from those of the model."
        )
    return packed
