"""What parameters come to, given the data: the loss, the known label vectors, and settings that "auto" stands for.

They were measured (docs/results/defaults.md). Few examples are learned slowly, in small steps: what rules have in
common is kept, and what each has by chance averages out. Many examples leave less to chance: steps may be longer, and
a part of the examples is enough to choose conditions by.

| examples | learning rate | examples that conditions are chosen by |
|---|---|---|
| up to 2,500 | 0.067 | as many as there are |
| 10,000 | 0.133 | as many as there are |
| 90,000 | 0.4 | 20,000 |
| 400,000 and more | 0.4 | a twentieth |

A dense feature has something to say about all labels, and they are learned together. A sparse one, a word for
instance, is about few labels, and a rule about many suits none of them well. So where X is sparse, rules are about
some, dealt at random: at most 16 of more than 32 labels, or a tenth if that is more; and at most 8 of 16 to 32, with
the joint loss. Each label has fewer rules then, a share of m / K, for m of K labels. Few examples do without the
others, but of many there is more to learn: of more than 32 labels, there are N K / m / 10,000 times as many rules, but
at least as many, and at most five times. Where a label still has q times fewer rules than all, the rate is larger:
sqrt(q) times.

Few features are drawn for each condition: rules that differ from each other make up for more than they lose. But of
many features most say little, and of many examples each rule is to learn much.

The joint loss is about label vectors that repeat. Its heads are learned label by label, as if each label moved on its
own; where many move together, the sum of their steps is too long. So the rate is at most 1 / s for label vectors of s
labels, and the loss is label-wise if they are long.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyboomer.arrays import Array, Vectors
from pyboomer.data.alerts import alert
from pyboomer.data.examples import Examples
from pyboomer.data.labels import LabelFormat
from pyboomer.engine.protocol import Settings
from pyboomer.engine.sampling import count_labels
from pyboomer.learning.fitted import FittedModel
from pyboomer.learning.parallel import count_threads
from pyboomer.learning.reading import TrainingData
from pyboomer.losses import Loss, find_loss
from pyboomer.predicting.decision import read_thresholds
from pyboomer.predicting.decoding import add_incomplete, find_label_vectors
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.schema import Categories

SLOWEST, FASTEST = 1 / 15, 0.4
SMALL = 2_500  # examples that are learned as slowly as possible
ENOUGH, SHARE = 20_000, 20  # examples to choose conditions by: so many, or one of so many if that is more
RULES, MOST_TIMES = 3000, 5  # how many are learned, and how many times as many at most, if labels are many
LARGEST_ROUND = 32  # rules; measured
FOR_EACH = 10_000  # examples that each label has all these rules for
MANY_LABELS, SOME_LABELS = 33, 16  # of so many, rules are about a part if X is sparse: by any loss, by the joint one
FEATURES = 30  # one of so many is drawn, if that is between the logarithm and the root of how many there are
MOST_CELLS = 2 * 10**7  # of examples x known label vectors, each of which has a score for each
LONGEST = 20  # labels of a label vector, on average, that the joint loss is for: of more, steps would be too short
SECONDS = 2e-10  # what the joint logistic loss takes for each example that a rule covers and each label of a vector
COSTLY = 10**8  # pairs of an example and a known label vector: so many that users had better know what they cost


def begin_model(params: Mapping[str, Any], data: TrainingData, past: FittedModel | None) -> FittedModel:
    """The model before rules are learned: without any, or with those of `past`."""
    examples, label_format = data.examples, data.label_format
    loss = _settle_loss(params, examples, label_format) if past is None else past.loss
    known: tuple[Any, Any] = (None, None)
    if isinstance(label_format, LabelFormat):
        known = find_known_vectors(params["known_vectors"], examples, loss, past)
        if label_format.classes is None:
            read_thresholds(params["decode"], len(label_format.names))  # a wrong number of them had better be told now
    rules = RuleEnsemble.from_rules((), data.schema, label_format.names) if past is None else past.rules
    return FittedModel(params, label_format, data.features, loss, rules, *known)


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
    if loss.prepare is not None and len(vectors) * examples.size > COSTLY:
        alert(
            f"there are {len(vectors):,} known label vectors: with loss {loss.name!r} a rule takes time in "
            f"proportion to their number, here up to {SECONDS * int(vectors.sum()) * examples.size:.1g} seconds; "
            'loss="example-wise-logistic" does not depend on it'
        )
    return vectors, counts


def make_settings(model: FittedModel, examples: Examples, seed: int) -> Settings:
    """How rules of a model are learned from examples."""
    params, schema = model.params, model.rules.schema
    n, n_labels = examples.size, examples.Y.shape[1]
    max_labels = find_max_labels(params["max_labels"], params["head"], examples, schema.categories, model.loss)
    drawn = count_drawn(max_labels, params["head"], n_labels)
    rules_per_round = find_rules_per_round(params["rules_per_round"], n, params.get("search", "bound"), drawn)
    own = {
        "loss": model.objective,
        "n_rules": find_n_rules(params["n_rules"], examples, drawn),
        "rules_per_round": rules_per_round,
        "learning_rate": find_learning_rate(params["learning_rate"], examples, model.loss, drawn),
        "max_features": find_max_features(params["max_features"], n, len(schema.names)),
        "max_samples": find_max_samples(params["max_samples"], n),
        "max_labels": max_labels,
        "n_threads": count_threads(params["n_jobs"], n > ENOUGH and rules_per_round > 1),
        # that of targets predicts the mean, however far from 0 that is
        "default_l2": params["l2"] if examples.hold_labels else 0.0,
        "min_coverage": params["min_coverage"] if params["min_coverage"] > 1 else 0.0,  # weights may add up to less
        "seed": seed,
    }
    return Settings(**{name: params[name] for name in Settings.__dataclass_fields__ if name in params} | own)


def find_max_labels(
    max_labels: str | int | float | None,
    head: str | int | float,
    examples: Examples,
    categories: Categories,
    loss: Loss,
) -> Any:
    """How many labels a rule may be about; None for all of them."""
    if max_labels != "auto":
        return max_labels
    n_labels = examples.Y.shape[1]
    few = n_labels < (SOME_LABELS if loss.prepare is not None else MANY_LABELS)
    if head != "multi" or few or not examples.are_sparse(categories):
        return None
    most = 8 if n_labels < MANY_LABELS else 16
    return max(n_labels // math.ceil(n_labels / most), n_labels // 10)  # groups that leave few labels over


def count_drawn(max_labels: str | int | float | None, head: str | int | float, n_labels: int) -> int | None:
    """The labels that a rule scores, if these are a part of all and chosen beforehand; or else None."""
    n_drawn = max(count_labels(max_labels, n_labels), 1)
    return n_drawn if head == "multi" and n_drawn < n_labels else None


def find_n_rules(n_rules: int | str, examples: Examples, drawn: int | None = None) -> int:
    """How many rules are learned; `drawn` are the labels of a rule, None for all of them."""
    if not isinstance(n_rules, str):
        return n_rules
    n_labels = examples.Y.shape[1]
    if drawn is None or n_labels < MANY_LABELS:
        return RULES
    times = min(max(examples.size * n_labels / drawn / FOR_EACH, 1), MOST_TIMES)
    return round(RULES * times / 100) * 100


def find_rules_per_round(rules_per_round: int | str, n: int, search: str, drawn: int | None) -> int:
    """The largest number of rules of a round, learned from n examples; `drawn` are the labels of a rule.

    If rules are about some labels, these are learned by themselves, rule after rule.
    """
    if not isinstance(rules_per_round, str):
        return int(rules_per_round)
    return LARGEST_ROUND if n > ENOUGH and search != "exact" and drawn is None else 1


def find_learning_rate(learning_rate: str | float, examples: Examples, loss: Loss, drawn: int | None = None) -> float:
    """The rate: in between, it grows with the square root of the number of examples; `drawn` are the labels of a rule.

    Where a label has fewer rules than there would be for few labels, it grows with the square root of how many fewer.
    """
    if not isinstance(learning_rate, str):
        return float(learning_rate)
    rate = np.clip(SLOWEST * np.sqrt(examples.size / SMALL), SLOWEST, FASTEST)
    if drawn is not None:
        own = find_n_rules("auto", examples, drawn) * drawn / examples.Y.shape[1]  # rules about each label
        rate = min(rate * np.sqrt(RULES / own), FASTEST)
    return float(rate if loss.prepare is None else min(rate, 1 / max(_measure_length(examples), 1)))


def _measure_length(examples: Examples) -> float:
    """How many labels of an example are other than most examples have them, on average."""
    share = np.average(examples.Y, axis=0, weights=examples.weight)
    return float(np.minimum(share, 1 - share).sum())


def find_max_features(max_features: str | int | float | None, n: int, n_features: int) -> str | int | float | None:
    """How many of the features are drawn for a condition, learned from n examples."""
    if max_features != "auto":
        return max_features
    root = math.ceil(math.sqrt(n_features))
    if n > ENOUGH:
        return min(2 * root, n_features)
    return min(root, max(n_features.bit_length(), n_features // FEATURES))


def find_max_samples(max_samples: str | int | float | None, n: int) -> int | float | None:
    """How many of n examples conditions are chosen by."""
    return (max(ENOUGH, n // SHARE) if n > ENOUGH else None) if isinstance(max_samples, str) else max_samples


def do_repeat(n_vectors: int, examples: Examples) -> bool:
    """Whether label vectors occur several times; or else, whether they are classes, each of one label at most."""
    return n_vectors <= examples.size / 2 or bool(examples.Y.sum(axis=1).max() <= 1)


def choose_loss(examples: Examples, n_vectors: int) -> Loss:
    """The joint loss, if label vectors repeat, are not long, not too many, and labels have no weights of their own."""
    weight, n = examples.label_weight, examples.size
    weighted = weight is not None and not np.isin(weight, (0, 1)).all()
    if (
        weighted
        or not do_repeat(n_vectors, examples)
        or n * n_vectors > MOST_CELLS
        or _measure_length(examples) > LONGEST
    ):
        return find_loss("label-wise-logistic")
    return find_loss("joint-logistic")
