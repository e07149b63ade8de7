"""A recipe tells a page how scores become predictions: one of a few kinds, and the numbers it needs.

=============  ===================================================================================================
kind           prediction
=============  ===================================================================================================
``"numbers"``  the scores themselves
``"classes"``  the class of the largest score; of two classes, which have one score, its sign decides
``"sign"``     the labels of positive scores (Eq. 18)
``"loss"``     the known label vector of least loss (Eq. 19)
``"sum"``      the most probable known label vector: that of the largest sum of scores, and of `bias` if there is any
``"rank"``     the `count` labels of the largest scores
``"cuts"``     the labels whose probabilities are above their `cuts`
=============  ===================================================================================================
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from pyboomer.explore.page.packing import pack
from pyboomer.predicting.decision import WELL_KNOWN, Decision

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator

# the rules of `Decision` that a page can follow, and what it calls them
KINDS = {
    "numbers": "numbers",
    "class": "classes",
    "sign": "sign",
    "loss": "loss",
    "subset": "sum",
    "rank": "rank",
    "thresholds": "cuts",
}
MOST_BITS = 2**22  # of known label vectors: 0.7 MB


def describe_decoding(model: "RuleEstimator") -> dict[str, Any]:
    """Tell how scores become predictions, by one of the kinds above.

    What is not among them (F1, calibrated probabilities, a user's own loss) is replaced by what the loss does, and a
    `note` says so.
    """
    decision, note = model._find_decision(), None
    rule = _find_rule(decision)
    if rule == "unknown":
        asked = f"decode={decision.decode!r}" if decision.thresholds is None else "decode=thresholds"
        note = f"This model predicts with {asked}; here, labels are predicted as the loss does, which may differ."
        decision = model._find_decision("loss")
        rule = _find_rule(decision)
    if rule == "unknown":
        note = f"The loss {decision.loss.name!r} is code of its own: here, labels are predicted by sign instead."
        rule = "sign"
    recipe: dict[str, Any] = {"kind": KINDS[rule]}
    if decision.classes is not None:
        recipe["classes"] = [str(value) for value in decision.classes.tolist()]
    elif decision.thresholds is not None:
        recipe["cuts"] = pack(np.broadcast_to(decision.thresholds, len(model.rules_.label_names)))
    elif rule == "rank":
        recipe["count"] = decision.count
    recipe["note"] = note
    return recipe | _pack_vectors(decision) if rule in ("loss", "subset") else recipe


def _find_rule(decision: Decision) -> str:
    """The rule that a page can follow, which takes scores for log-odds; "unknown" if there is none."""
    rule = "sign" if decision.rule == "odds" else decision.rule
    if rule == "loss":
        able = decision.loss in WELL_KNOWN
    else:
        able = decision.rule in ("numbers", "class", "sign") or decision.plain_odds
        able |= decision.rule == "subset" and decision.odds == "vectors"
    return rule if able and rule in KINDS else "unknown"


def _pack_vectors(decision: Decision) -> dict[str, Any]:
    """The known label vectors as bits, the most frequent ones if they are too many, and their bias if they have any."""
    vectors = decision.vectors
    most = max(1, MOST_BITS // vectors.shape[1])
    packed: dict[str, Any] = {"vectors": pack(np.packbits(vectors[:most], axis=1)), "count": min(len(vectors), most)}
    if decision.loss.known is not None:
        packed["bias"] = pack(decision.loss.known.bias[:most])
    if len(vectors) > most:
        packed["note"] = (
            f"Only the {most:,} most frequent of {len(vectors):,} known label vectors are considered here; "
            "predictions may differ from those of the model."
        )
    return packed
