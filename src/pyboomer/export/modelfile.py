"""A model file is a fitted model as JSON text: versioned, readable, and nothing in it is ever executed.

Floating-point numbers are written in full, so the scores of a model that was saved and loaded are exactly the same.
A user's own loss is code and therefore not part of the file: it is passed to `load_model` again.

A file may come from anywhere. What `load_model` accepts has the properties of a model that was fitted; anything else is
a `ValueError` that names the file and the fault, and no size that a file merely claims costs memory.
"""

import json
import math
import re
import sys
from collections.abc import Mapping
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyboomer.data.class_weight import name_class
from pyboomer.data.labels import LabelFormat
from pyboomer.data.targets import TargetFormat
from pyboomer.files import write_file
from pyboomer.losses import BUILT_IN, Loss, find_loss
from pyboomer.parameters import Parameter, check_parameters
from pyboomer.predicting.calibration import Calibration
from pyboomer.predicting.decision import read_thresholds
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.names import plain_text

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator
    from pyboomer.learning.fitted import FittedModel

FORMAT = "pyboomer model"
VERSION = 3
KEYS = ("format", "version", "kind", "parameters", "loss", "training", "feature_names_in", "rules")
# what a file of version 1 stands for
NEW_IN_2: dict[str, Any] = {"kind": "classifier", "training": {}, "calibration": None}
NEW_IN_3: dict[str, Any] = {"label_vector_counts": None}
# what models were learned with before there was a parameter for it, where that is not its default
BEFORE = {"default_rule": "newton", "max_samples": None, "max_labels": None, "known_vectors": True}

# not part of a model: code, or how to run rather than what was learned
SKIPPED = (
    "loss",
    "scoring",
    "callbacks",
    "categorical_features",
    "random_state",
    "n_jobs",
    "device",
    "verbose",
)
DTYPES = re.compile(r"object|\|[biu]1|[<>]([iu][248]|f[248]|U[1-9][0-9]{0,2})")  # of labels
MAX_FACTS = 100
MOST_BYTES = 2**24  # of an array of classes: as text, each takes the room of the longest, which a file merely claims


# --- Saving -----------------------------------------------------------------------------------------------------------


def save_model(model: "RuleEstimator", path: str | Path) -> None:
    """Write a fitted model; the file appears only once it is complete."""
    fitted = model.get_fitted()  # checks parameters: they may have been set since, to what `load_model` would refuse
    label_format, features, loss = fitted.label_format, fitted.features, fitted.loss
    content = {
        "format": FORMAT,
        "version": VERSION,
        "kind": "regressor" if isinstance(label_format, TargetFormat) else "classifier",
        "parameters": {name: _plain(getattr(model, name)) for name in _list_parameters(model.parameter_table)}
        | ({"scoring": model.scoring} if isinstance(model.scoring, str) else {}),
        "loss": {"name": loss.name, "built_in": loss in BUILT_IN.values(), "auto": model.loss == "auto"},
        "training": _check_facts({name: _plain_fact(value) for name, value in fitted.training_facts.items()}),
        **_describe_outcome(fitted),
        "feature_names_in": None if features.names is None else list(map(str, features.names)),
        "names_given": features.given,
        "rules": fitted.rules.to_dict(),
    }
    write_file(path, json.dumps(content, allow_nan=False))


def _describe_outcome(fitted: "FittedModel") -> dict[str, Any]:
    label_format = fitted.label_format
    if isinstance(label_format, TargetFormat):
        return {"targets": {"flat": label_format.flat}}
    dtype, classes = label_format.dtype, label_format.classes
    if not DTYPES.fullmatch(dtype.str) or (classes is not None and _is_too_wide(dtype, len(classes))):
        # not every machine has long floats; in an array of long text, each entry takes the room of the longest
        dtype = np.dtype(np.float64 if dtype.kind == "f" else object)
    return {
        "labels": {
            "dtype": dtype.str if dtype.kind != "O" else "object",
            "sparse": label_format.sparse,
            "classes": None if classes is None else classes.astype(dtype).tolist(),
        },
        "label_vectors": ["".join(map(str, vector)) for vector in fitted.label_vectors.tolist()],
        "label_vector_counts": fitted.label_vector_counts.tolist(),
        "calibration": None if fitted.calibration is None else fitted.calibration.to_dict(),
    }


def _list_parameters(table: tuple[Parameter, ...]) -> list[str]:
    return [parameter.name for parameter in table if parameter.name not in SKIPPED]


def _plain_fact(value: Any) -> Any:
    value = _plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value  # JSON has no word for infinity


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: numbers may be NumPy's, or fractions."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {name_class(key): _plain(entry) for key, entry in value.items()}
    if hasattr(value, "__array__"):  # such as some columns of a DataFrame
        value = np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, str):
        return plain_text(value)
    return float(value) if isinstance(value, Real) and not isinstance(value, int) else value


# --- Loading ----------------------------------------------------------------------------------------------------------


def read_model(path: str | Path, estimators: Mapping[str, Any], loss: Loss | None) -> Any:
    """Read a model; `estimators` are the classes to make it of, by their kinds. See `pyboomer.load_model`."""
    if loss is not None and not isinstance(loss, Loss):
        raise TypeError(f"loss must be a pyboomer.Loss, got {loss!r}")
    try:
        content = _read_json(path)
    except RecursionError:
        raise ValueError(f"{path} is not a pyboomer model: nested too deeply") from None
    except ValueError as error:  # the errors of Unicode and JSON are some, too
        raise ValueError(f"{path} is not a pyboomer model, or is damaged: {error}") from None
    try:
        return _build_model(content, estimators, loss)
    except RecursionError:  # what could just be read may be too deep to be shown
        raise ValueError(f"{path}: damaged model: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error!s:.300}") from None  # it may quote a huge value


def _read_json(path: str | Path) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        start = file.read(1)
        if start != "{":  # of a large file of another kind, no more than the beginning is read
            raise ValueError(f"it starts with {start!r}" if start else "it is empty")
        return json.loads(start + file.read(), parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key appears twice")
    return content


def _build_model(content: dict[str, Any], estimators: Mapping[str, Any], loss: Loss | None) -> Any:
    from pyboomer.data.tables import Features  # these need compiled code, which files do without
    from pyboomer.learning.fitted import FittedModel

    if content.get("format") != FORMAT:
        raise ValueError("not a pyboomer model")
    version = content.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"version must be a whole number, got {version!r:.50}")
    if version > VERSION:
        raise ValueError(f"written by a newer version of pyboomer (file version {version}, this one reads {VERSION})")
    if version == 1:
        content = content | NEW_IN_2
    if version <= 2:
        content = content | NEW_IN_3
    _check_keys(content, KEYS)
    kind = content["kind"]
    if not isinstance(kind, str) or kind not in estimators:
        raise ValueError(f"unknown kind of model {kind!r:.50}: written by a newer version of pyboomer?")
    estimator = estimators[kind]

    parameters = content["parameters"]
    if not isinstance(parameters, dict):
        raise ValueError("damaged model: 'parameters' must be names with values")
    for name in parameters.keys() - {*_list_parameters(estimator.parameter_table), "scoring"}:
        raise ValueError(f"unknown parameter {name!r:.50}: written by a newer version of pyboomer?")
    for name, value in parameters.items():
        if isinstance(value, list) and any(isinstance(each, list) for each in value):  # however deep
            raise ValueError(f"damaged model: parameter {name!r:.50} must not be a list of lists")
    # a parameter that is new since the file was written has the value that the model was learned with
    known = {name: value for name, value in BEFORE.items() if name in _list_parameters(estimator.parameter_table)}
    model = estimator(loss=_read_loss(content["loss"], loss), **known | parameters)
    check_parameters(estimator.parameter_table, vars(model))
    learned = find_loss(model.loss)
    if content["loss"].get("auto") is True:
        model.set_params(loss="auto")

    rules = RuleEnsemble.from_dict(content["rules"])
    _check_rules(rules)
    features = Features(type(model).__name__, len(rules.feature_names))
    names = content["feature_names_in"]
    if names is not None:
        if names != list(rules.feature_names):
            raise ValueError("damaged model: 'feature_names_in' does not fit the rules")
        if len(set(names)) < len(names):
            raise ValueError("damaged model: 'feature_names_in' must be distinct")
        given = content.get("names_given", False)  # older files do not say
        if not isinstance(given, bool):
            raise ValueError("damaged model: 'names_given' must be true or false")
        features = features._replace(names=np.array(names, dtype=object), given=given)
    read_outcome = _read_targets if kind == "regressor" else _read_labels
    outcome = read_outcome(content, rules.label_names, learned)
    if getattr(outcome["label_format"], "classes", 0) is None:
        read_thresholds(model.decode, len(rules.label_names))
    facts = _check_facts(content["training"])
    return model.set_fitted(
        FittedModel({}, features=features, loss=learned, rules=rules, training_facts=facts, **outcome)
    )


def _check_keys(content: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if key not in content:
            raise ValueError(f"damaged model: {key!r} is missing")


def _read_loss(stored: Any, given: Loss | None) -> str | Loss:
    if not isinstance(stored, dict) or not isinstance(stored.get("name"), str):
        raise ValueError("damaged model: 'loss' has no name")
    if stored.get("built_in") is True:
        if stored["name"] not in BUILT_IN:
            raise ValueError(f"damaged model: unknown loss {stored['name']!r:.50}")
        return str(stored["name"])
    if given is None:
        raise ValueError(
            f"learned with the user's own loss {stored['name']!r:.50}: pass it as load_model(..., loss=...)"
        )
    if given.name != stored["name"]:
        raise ValueError(f"learned with loss {stored['name']!r:.50}, got {given.name!r}")
    return given


def _check_facts(facts: Any) -> dict[str, Any]:
    if not isinstance(facts, dict) or len(facts) > MAX_FACTS:
        raise ValueError(f"the facts of training must be at most {MAX_FACTS} names with values")
    for name, value in facts.items():
        known = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
        if not isinstance(name, str) or not (known or value is None):
            raise ValueError(f"the fact of training {name!r:.50} must be text, a finite number or None")
    return facts


def _check_rules(rules: RuleEnsemble) -> None:
    """Check what holds for the rules of every fitted model, though not for any rules."""
    if len(rules) == 0 or not rules.label_names or not rules.feature_names:
        raise ValueError("damaged model: it has no rules, no labels or no features")
    if len(set(rules.label_names)) < len(rules.label_names):
        raise ValueError("damaged model: label_names must be distinct")
    for feature, values in rules.schema.nominal.items():
        if not _are_sorted(values):
            raise ValueError(f"damaged model: categories[{feature}] must be all text or all numbers, and ascend")


def _are_sorted(categories: tuple[Any, ...]) -> bool:
    """Whether categories are as they are looked up: by bisection, numbers in floating point."""
    texts = sum(isinstance(value, str) for value in categories)
    comparable = texts == len(categories) or (texts == 0 and all(abs(c) <= sys.float_info.max for c in categories))
    return comparable and all(a < b for a, b in pairwise(categories))


# --- The format of labels and targets ---------------------------------------------------------------------------------


def _read_labels(content: dict[str, Any], names: tuple[str, ...], loss: Loss) -> dict[str, Any]:
    _check_keys(content, ("labels", "label_vectors", "label_vector_counts", "calibration"))
    stored = content["labels"]
    if not isinstance(stored, dict) or set(stored) != {"dtype", "sparse", "classes"}:
        raise ValueError("damaged model: 'labels' is not complete")
    text, sparse, classes = stored["dtype"], stored["sparse"], stored["classes"]
    if not isinstance(text, str) or not DTYPES.fullmatch(text):
        raise ValueError(f"damaged model: labels cannot have dtype {text!r:.50}")
    if sparse not in ((None, "array", "matrix") if classes is None else (None,)):
        raise ValueError(f"damaged model: labels cannot be {sparse!r:.50}")
    dtype = np.dtype(text)
    if classes is None:
        label_format = LabelFormat(names, dtype, sparse)
        _check_matrix(label_format)
    else:
        label_format = LabelFormat(names, dtype, None, _read_classes(classes, dtype, names))
    vectors = _read_vectors(content["label_vectors"], len(names), least=0 if classes is None else 1)
    counts = _read_counts(content["label_vector_counts"], len(vectors), loss.prepare is not None)
    curves = content["calibration"]
    return {
        "label_format": label_format,
        "label_vectors": vectors,
        "label_vector_counts": counts,
        "calibration": None if curves is None else Calibration.from_dict(curves, len(names)),
    }


def _check_matrix(label_format: LabelFormat) -> None:
    """Check that predictions can have the format of a matrix: scipy or NumPy may not know it with this dtype."""
    try:
        if label_format.dtype.kind in "UO":
            raise ValueError("only classes may be text")
        label_format.restore(np.zeros((1, len(label_format.names)), dtype=np.uint8))
    except ValueError as error:
        raise ValueError(f"damaged model: labels cannot have dtype {label_format.dtype}: {error}") from None


def _read_classes(stored: Any, dtype: np.dtype[Any], names: tuple[str, ...]) -> np.ndarray[Any, np.dtype[Any]]:
    """The classes, which must be as `fit` lists them: ascending (a single one twice), and the labels' names."""
    kind = {"b": bool, "i": int, "u": int, "f": float}.get(dtype.kind, str)
    if not isinstance(stored, list) or any(type(value) is not kind for value in stored):
        raise ValueError(f"damaged model: 'classes' must be a list of plain values, {kind.__name__} for dtype {dtype}")
    if len(stored) != max(len(names), 2):
        raise ValueError(f"damaged model: {len(stored)} classes for {len(names)} labels")
    if dtype.kind in "iuf":
        limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        if not all(kind(limits.min) <= value <= kind(limits.max) for value in stored):
            raise ValueError(f"damaged model: 'classes' must be within the range of dtype {dtype}")
    if _is_too_wide(dtype, len(stored)):
        raise ValueError(f"damaged model: {len(stored)} classes are too many for dtype {dtype}")
    classes = np.array(stored, dtype=dtype)
    ascending = all(a < b for a, b in pairwise(stored)) or (len(stored) == 2 and stored[0] == stored[1])
    if not ascending or classes.tolist() != stored:
        raise ValueError(f"damaged model: 'classes' must ascend, and be values of dtype {dtype}")
    if names != tuple(str(value) for value in (classes[1:] if len(classes) == 2 else classes)):
        raise ValueError("damaged model: 'classes' must have the names of the labels")
    return classes


def _is_too_wide(dtype: np.dtype[Any], n_classes: int) -> bool:
    """Whether classes are better kept as objects than as an array of text."""
    return dtype.kind == "U" and n_classes * dtype.itemsize > MOST_BYTES


def _read_vectors(stored: Any, n_labels: int, least: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    if not isinstance(stored, list) or len(stored) < least:
        raise ValueError(f"damaged model: 'label_vectors' must be a list of at least {least}")
    for vector in stored:
        if not isinstance(vector, str) or len(vector) != n_labels or set(vector) - {"0", "1"}:
            raise ValueError(f"damaged model: a label vector must be {n_labels} times 0 or 1, got {vector!r:.50}")
    flat = np.frombuffer("".join(stored).encode("ascii"), dtype=np.uint8) - ord("0")
    return flat.reshape(len(stored), n_labels).astype(np.uint8)


def _read_counts(stored: Any, n_vectors: int, needed: bool) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How often each known label vector occurred; 0 if a file from before they were counted does not say."""
    if stored is None and not needed:
        return np.zeros(n_vectors)
    if not isinstance(stored, list) or len(stored) != n_vectors or set(map(type, stored)) - {int, float}:
        raise ValueError(f"damaged model: 'label_vector_counts' must be a list of {n_vectors} numbers")
    least = 5e-324 if needed else 0
    if not all(least <= value <= 1e300 for value in stored):
        raise ValueError("damaged model: 'label_vector_counts' must be positive, and not too large to be added up")
    return np.array(stored, dtype=np.float64)


def _read_targets(content: dict[str, Any], names: tuple[str, ...], loss: Loss) -> dict[str, Any]:  # noqa: ARG001
    _check_keys(content, ("targets",))
    stored = content["targets"]
    flat = stored.get("flat") if isinstance(stored, dict) else None
    if not isinstance(flat, bool) or (flat and len(names) > 1):
        raise ValueError("damaged model: 'targets' must say whether the one target is flat")
    return {"label_format": TargetFormat(names, flat)}
