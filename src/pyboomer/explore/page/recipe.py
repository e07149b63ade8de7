"""A recipe tells a page how scores become predictions: one of a few kinds, and the numbers it needs.

=============  ===================================================================================================
kind           prediction
=============  ===================================================================================================
``"numbers"``  the scores themselves
``"classes"``  the class of the largest score; of two classes, which have one score, its sign decides
``"sign"``     the labels of positive scores (Eq. 18)
``"loss"``     the known label vector of least loss (Eq. 19)
``"sum"``      the most probable known label vector: that of the largest sum of scores
``"rank"``     the `count` labels of the largest scores
``"cuts"``     the labels whose probabilities are above their `cuts`
=============  ===================================================================================================
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.estimator import RuleEstimator
from pyboomer.explore.page.packing import pack
from pyboomer.losses import BUILT_IN, find_loss

MOST_BITS = 2**22  # of known label vectors: 0.7 MB


def find_kind(model: RuleEstimator) -> str:
    """What a model predicts: "labels", "classes" (one of them per example) or "numbers"."""
    if not hasattr(model, "classes_"):
        return "numbers"
    return "labels" if model._form.classes is None else "classes"


def describe_decoding(model: Any) -> dict[str, Any]:
    """Tell how scores become predictions, by one of the kinds above.

    What is not among them (F1, calibrated probabilities, a user's own loss) is replaced by what the loss does, and a
    `note` says so.
    """
    kind = find_kind(model)
    if kind == "numbers":
        return {"kind": "numbers", "note": None}
    if kind == "classes":
        classes = [str(value) for value in model._form.classes.tolist()]
        return {"kind": "classes", "classes": classes, "note": None}
    loss, decode = find_loss(model.loss), model.decode
    vectors = model.label_vectors_ if model.known_vectors and len(model.label_vectors_) else None
    joint = vectors is not None and not loss.decomposable
    known = loss in BUILT_IN.values()
    identity = model.calibration_ is None and loss.name.endswith("-logistic") and known
    by_loss: dict[str, Any] = {"kind": "sign", "note": None}
    if vectors is not None and joint and known:
        by_loss = {"kind": "loss", "note": None, **_pack_vectors(vectors)}
    elif joint:
        by_loss["note"] = f"The loss {loss.name!r} is code of its own: here, labels are predicted by sign instead."
    if not isinstance(decode, str):
        if identity:
            thresholds = np.broadcast_to(np.asarray(decode, dtype=np.float64), len(model.label_names_))
            return {"kind": "cuts", "cuts": pack(thresholds), "note": None}
    elif decode == "loss":
        return by_loss
    elif identity and decode.startswith("top-"):
        return {"kind": "rank", "count": int(decode.removeprefix("top-")), "note": None}
    elif identity and decode == "subset" and vectors is not None:
        return {"kind": "sum", "note": None, **_pack_vectors(vectors)}
    elif identity and decode in ("hamming", "subset") and not joint:
        return {"kind": "sign", "note": None}
    shown = repr(decode) if isinstance(decode, str) else "thresholds"
    note = f"This model predicts with decode={shown}; here, labels are predicted as the loss does, which may differ."
    return {**by_loss, "note": by_loss["note"] or note}


def _pack_vectors(vectors: NDArray[np.uint8]) -> dict[str, Any]:
    """The known label vectors as bits, the most frequent ones if they are too many."""
    most = max(1, MOST_BITS // vectors.shape[1])
    packed: dict[str, Any] = {"vectors": pack(np.packbits(vectors[:most], axis=1)), "count": min(len(vectors), most)}
    if len(vectors) > most:
        packed["note"] = (
            f"Only the {most:,} most frequent of {len(vectors):,} known label vectors are considered here; "
            "predictions may differ from those of the model."
        )
    return packed
