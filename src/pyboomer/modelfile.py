"""A model file is a fitted model as JSON text: versioned, readable, and nothing in it is ever executed.

Floating-point numbers are written in full, so the scores of a model that was saved and loaded are exactly the same.
A user's own loss is code and therefore not part of the file: it is passed to `load_model` again.
"""

import json
import os
import re
import tempfile
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyboomer.labels import LabelForm
from pyboomer.losses import BUILT_IN, Loss
from pyboomer.parameters import PARAMETERS
from pyboomer.rules import RuleEnsemble

if TYPE_CHECKING:
    from pyboomer.classifier import BoomerClassifier

FORMAT = "pyboomer model"
VERSION = 1
KEYS = ("format", "version", "parameters", "loss", "rules", "label_vectors", "labels", "feature_names_in")


def save_model(model: "BoomerClassifier", path: str | Path) -> None:
    """Write a fitted model; the file appears only once it is complete."""
    loss = model.loss.name if isinstance(model.loss, Loss) else model.loss
    form = model._form
    content = {
        "format": FORMAT,
        "version": VERSION,
        "parameters": {p.name: _plain_parameter(getattr(model, p.name)) for p in PARAMETERS if p.name not in SKIPPED},
        "loss": {"name": loss, "built_in": isinstance(model.loss, str)},
        "labels": {
            "dtype": form.dtype.str if form.dtype.kind in "buifU" else "object",
            "sparse": form.sparse,
            "classes": None if form.classes is None else form.classes.tolist(),
        },
        "label_vectors": ["".join(map(str, vector)) for vector in model.label_vectors_.tolist()],
        "feature_names_in": [str(name) for name in model.feature_names_in_] if _has_names(model) else None,
        "rules": model.rules_.to_dict(),
    }
    text = json.dumps(content, allow_nan=False)
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot save {target}: there is no folder {target.parent}")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


# not part of a model: code, or how to run rather than what was learned
SKIPPED = ("loss", "callbacks", "categorical_features", "random_state", "n_jobs", "verbose")


def load_model(path: str | Path, loss: Loss | None = None) -> "BoomerClassifier":
    """Read a model that was written by `BoomerClassifier.save`.

    Parameters
    ----------
    path : str or path
    loss : Loss, optional
        The loss, if the model was learned with a user's own.
    """
    from pyboomer.classifier import BoomerClassifier

    if loss is not None and not isinstance(loss, Loss):
        raise TypeError(f"loss must be a pyboomer.Loss, got {loss!r}")
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(f"{path} is not a pyboomer model: nested too deeply") from None
    except (UnicodeDecodeError, json.JSONDecodeError, ValueError) as error:
        raise ValueError(f"{path} is not a pyboomer model, or is damaged: {error}") from None
    try:
        return _build_model(BoomerClassifier, content, loss)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"{path}: {error}") from None


def _build_model(kind: "type[BoomerClassifier]", content: Any, loss: Loss | None) -> "BoomerClassifier":
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError("not a pyboomer model")
    version = content.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"version must be a whole number, got {version!r:.50}")
    if version > VERSION:
        raise ValueError(f"written by a newer version of pyboomer (file version {version}, this one reads {VERSION})")
    for key in KEYS:
        if key not in content:
            raise ValueError(f"damaged model: {key!r} is missing")
    rules = RuleEnsemble.from_dict(content["rules"])
    if len(rules) == 0 or not rules.label_names or not rules.feature_names:
        raise ValueError("damaged model: it has no rules, no labels or no features")
    n_labels = len(rules.label_names)

    parameters = content["parameters"]
    table = {p.name: p for p in PARAMETERS if p.name not in SKIPPED}
    if not isinstance(parameters, dict) or set(parameters) != set(table):
        raise ValueError("damaged model: 'parameters' is not complete")
    for name, value in parameters.items():
        table[name].validate(value)
    model = kind(loss=_read_loss(content["loss"], loss), **parameters)

    form = _read_form(content["labels"], rules.label_names)
    vectors = _read_vectors(content["label_vectors"], n_labels)
    names = content["feature_names_in"]
    model.n_features_in_ = len(rules.feature_names)
    if names is not None:
        if names != list(rules.feature_names):
            raise ValueError("damaged model: 'feature_names_in' does not fit the rules")
        model.feature_names_in_ = np.array(names, dtype=object)
    return model._store(rules, form, vectors)


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


def _read_form(stored: Any, names: tuple[str, ...]) -> LabelForm:
    if not isinstance(stored, dict) or set(stored) != {"dtype", "sparse", "classes"}:
        raise ValueError("damaged model: 'labels' is not complete")
    text, sparse, classes = stored["dtype"], stored["sparse"], stored["classes"]
    if not isinstance(text, str) or not re.fullmatch(r"object|[<>|][buif][0-9]{1,2}|[<>]U[0-9]{1,6}", text):
        raise ValueError(f"damaged model: labels cannot have dtype {text!r:.50}")
    dtype = np.dtype(text)
    if sparse not in (None, "array", "matrix"):
        raise ValueError(f"damaged model: labels cannot be {sparse!r:.50}")
    if classes is None:
        return LabelForm(names, dtype, sparse)
    if not isinstance(classes, list) or not all(isinstance(c, str | int | float | bool) for c in classes):
        raise ValueError("damaged model: 'classes' must be a list of plain values")
    if len(classes) != max(len(names), 2):
        raise ValueError(f"damaged model: {len(classes)} classes for {len(names)} labels")
    return LabelForm(names, dtype, sparse, np.array(classes, dtype=dtype))


def _read_vectors(stored: Any, n_labels: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    if not isinstance(stored, list) or not stored:
        raise ValueError("damaged model: 'label_vectors' must be a list")
    for vector in stored:
        if not isinstance(vector, str) or len(vector) != n_labels or set(vector) - {"0", "1"}:
            raise ValueError(f"damaged model: a label vector must be {n_labels} times 0 or 1, got {vector!r:.50}")
    flat = np.frombuffer("".join(stored).encode("ascii"), dtype=np.uint8) - ord("0")
    return flat.reshape(len(stored), n_labels).astype(np.uint8)


def _has_names(model: "BoomerClassifier") -> bool:
    return hasattr(model, "feature_names_in_")


def _plain_parameter(value: Any) -> Any:
    """A parameter as JSON can hold it: numbers may be NumPy's, or fractions."""
    if isinstance(value, np.generic):
        return value.item()
    return float(value) if isinstance(value, Real) and not isinstance(value, int) else value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
