"""The objective is settled before the first rule: which loss is minimised, and which label vectors are known."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyboomer.arrays import Array, Vectors
from pyboomer.data.alerts import alert
from pyboomer.data.examples import Examples
from pyboomer.data.labels import LabelFormat
from pyboomer.learning.fitted import NO_COUNTS, NO_VECTORS, FittedModel
from pyboomer.learning.reading import TrainingData
from pyboomer.learning.sizing import choose_loss, do_repeat
from pyboomer.losses import Loss, find_loss
from pyboomer.predicting.decision import read_thresholds
from pyboomer.predicting.decoding import add_incomplete, find_label_vectors
from pyboomer.rules.ensemble import RuleEnsemble

SECONDS = 2e-10  # what the joint logistic loss takes for each example that a rule covers and each label of a vector
MANY = 10**8  # pairs of an example and a known label vector: so many that users had better know what they cost


def begin_model(params: Mapping[str, Any], data: TrainingData, past: FittedModel | None) -> FittedModel:
    """The model before rules are learned: without any, or with those of `past`."""
    examples, label_format = data.examples, data.label_format
    loss = _settle_loss(params, examples, label_format) if past is None else past.loss
    vectors, counts = NO_VECTORS, NO_COUNTS
    if isinstance(label_format, LabelFormat):
        vectors, counts = find_known_vectors(params["known_vectors"], examples, loss, past)
        if label_format.classes is None:
            read_thresholds(params["decode"], len(label_format.names))  # a wrong number of them had better be told now
    rules = RuleEnsemble.from_rules((), data.schema, label_format.names) if past is None else past.rules
    return FittedModel(params, rules, loss, label_format, data.features, vectors, counts)


def _settle_loss(params: Mapping[str, Any], examples: Examples, label_format: Any) -> Loss:
    if params["loss"] != "auto":
        return find_loss(params["loss"])
    if label_format.classes is None and not (params["known_vectors"] and examples.are_complete().any()):
        return find_loss("label-wise-logistic")  # what the joint loss would be over all label vectors
    return choose_loss(examples, len(find_label_vectors(examples.Y, examples.weight)[0]))


def find_known_vectors(
    known_vectors: str | bool, examples: Examples, loss: Loss, past: FittedModel | None = None
) -> tuple[Vectors, Array]:
    """The label vectors that are known, and how often each occurs."""
    complete = examples.are_complete()
    if not complete.any() and not loss.decomposable:
        alert(
            "no example has all its labels known, so there are no known label vectors: labels will be predicted by "
            "the signs of their scores"
        )
    vectors, counts = find_label_vectors(examples.Y[complete], examples.weight[complete])
    if known_vectors == "auto" and loss.decomposable:
        seen = vectors if complete.all() else find_label_vectors(examples.Y, examples.weight)[0]
        if not do_repeat(len(seen), examples):  # one that was seen before is hardly ever right
            vectors, counts = vectors[:0], counts[:0]
    if loss.prepare is not None and not complete.all():
        assert examples.label_weight is not None
        known = examples.label_weight[~complete] > 0
        vectors, counts = add_incomplete(vectors, counts, examples.Y[~complete], known, examples.weight[~complete])
    if past is not None and loss.prepare is not None:  # rules that minimise a loss cannot go on with another
        vectors, counts = past.label_vectors, past.label_vector_counts
    elif past is not None:  # those of the examples before stay known
        vectors = np.vstack([past.label_vectors, vectors])
        kept = np.sort(np.unique(vectors, axis=0, return_index=True)[1])
        vectors, counts = vectors[kept], np.append(past.label_vector_counts, counts)[kept]
    if loss.prepare is not None and len(vectors) * examples.size > MANY:
        alert(
            f"there are {len(vectors):,} known label vectors: with loss {loss.name!r} a rule takes time in "
            f"proportion to their number, here up to {SECONDS * int(vectors.sum()) * examples.size:.1g} seconds; "
            'loss="example-wise-logistic" does not depend on it'
        )
    return vectors, counts
