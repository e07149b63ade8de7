"""Reading makes training data of what users pass to `fit`: one value, with all that is known of the data."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyboomer.columns.device import copy_to_host
from pyboomer.data.class_weight import weigh_classes
from pyboomer.data.examples import Examples, read_examples, warn_of_unknown
from pyboomer.data.labels import LabelFormat, Labels
from pyboomer.data.stratification import hold_out
from pyboomer.data.tables import (
    Features,
    Table,
    check_feature_names,
    find_features,
    read_table,
    read_training_table,
    refuse_lazy,
    refuse_new_categories,
    warn_of_identifiers,
)
from pyboomer.data.targets import TargetFormat, Targets
from pyboomer.engine.sampling import NOTHING
from pyboomer.learning.fitted import FittedModel
from pyboomer.predicting.calibration import FOLDS
from pyboomer.rules.schema import Schema

LARGEST_SEED = np.iinfo(np.int32).max


class TrainingData(NamedTuple):
    """What rules are learned from."""

    examples: Examples
    schema: Schema
    features: Features
    label_format: LabelFormat | TargetFormat
    fixed_features: NDArray[np.int64] = NOTHING  # those that need not be drawn
    seed: int = 0  # of all draws
    held_out: Examples | None = None  # the examples that tell when to stop


class FitArguments(NamedTuple):
    """What users pass to `fit`, and how y is read if there is no model to go on with."""

    owner: str  # the class of the estimator
    read_y: Callable[[Any], Labels | Targets]
    X: Any
    y: Any
    sample_weight: Any
    eval_set: Any
    feature_names: Any


def read(params: Mapping[str, Any], past: FittedModel | None, passed: FitArguments) -> TrainingData:
    """Read what was passed to `fit`; `past` is the model to go on with, if there is one."""
    owner, read_y, X, y, sample_weight, eval_set, feature_names = passed
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None")
    refuse_lazy("y", y)
    table = read_features(owner, params, past, feature_names, X)
    if past is None:
        warn_of_identifiers(table.schema, table.matrix.shape[0])
    labels = (read_y if past is None else past.label_format.read)(copy_to_host(y))
    examples = read_examples(table.matrix, labels, copy_to_host(sample_weight))
    examples = weigh_classes(examples, params.get("class_weight"), labels.label_format)
    data = describe(params, past, examples, table, labels.label_format)
    if eval_set is not None:
        return data._replace(held_out=_read_eval_set(data, eval_set))
    if params["early_stopping"]:
        if len(examples.Y) < 2:
            raise ValueError("early_stopping holds out some of the examples, which n_samples = 1 does not allow")
        strata = examples.Y if examples.hold_labels else np.empty((len(examples.Y), 0), dtype=np.uint8)
        rows, held_out = hold_out(strata, params["validation_fraction"], data.seed)
        return data._replace(examples=examples.take(rows), held_out=examples.take(held_out))
    if params.get("calibration") is not None and len(examples.Y) < FOLDS:
        raise ValueError(f"calibration needs at least {FOLDS} examples, got {len(examples.Y)}")
    return data


def read_features(owner: str, params: Mapping[str, Any], past: FittedModel | None, feature_names: Any, X: Any) -> Table:
    """Read X; if there is a model to go on with, its features must be those."""
    if past is None:
        return read_training_table(owner, X, params["categorical_features"], feature_names)
    check_feature_names(feature_names, past.rules.schema.names)
    matrix = past.read_matrix(X)
    refuse_new_categories(matrix, past.rules.schema)
    return Table(matrix, past.rules.schema, past.features)


def describe(
    params: Mapping[str, Any], past: FittedModel | None, examples: Examples, table: Table, label_format: Any
) -> TrainingData:
    """Training data, with what parameters say of them."""
    schema, features = table.schema, table.features
    warn_of_unknown(examples, label_format.names)
    fixed = np.flatnonzero(find_features("fixed_features", params["fixed_features"], schema.names))
    return TrainingData(examples, schema, features, label_format, fixed, _draw_seed(params["random_state"], past))


def _draw_seed(random_state: Any, past: FittedModel | None) -> int:
    """The seed of all draws; further rules of a model are drawn as if they had been learned at once."""
    known = None if past is None else past.training_facts.get("seed")
    if isinstance(known, int) and 0 <= known < LARGEST_SEED:  # a file may say anything
        return known
    return int(check_random_state(random_state).randint(LARGEST_SEED))


def split_eval_set(eval_set: Any) -> tuple[Any, Any]:
    """The X and y of an evaluation set."""
    try:
        X, y = eval_set[0] if isinstance(eval_set, list) and len(eval_set) == 1 else eval_set
        if X is None or y is None or isinstance(X, tuple):
            raise ValueError
    except (ValueError, TypeError):
        raise ValueError("eval_set must be a pair (X, y), or a list of one such pair") from None
    return X, y


def _read_eval_set(data: TrainingData, eval_set: Any) -> Examples:
    X, y = split_eval_set(eval_set)
    try:
        refuse_lazy("y", y)
        matrix = read_table(X, data.schema, data.features)
        return read_examples(matrix, data.label_format.read(copy_to_host(y)), None)
    except (ValueError, TypeError) as error:
        raise type(error)(f"eval_set: {error}") from None
