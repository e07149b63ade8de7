"""Loading makes a fitted model of a model file, be it a classifier or a regressor."""

from pathlib import Path
from typing import Any

from pyboomer.classifier import BoomerClassifier
from pyboomer.export.modelfile import read_model
from pyboomer.losses import Loss
from pyboomer.regressor import BoomerRegressor


def load_model(path: str | Path, loss: Loss | None = None) -> Any:
    """Read a model that was written by the method `save` of a `BoomerClassifier` or a `BoomerRegressor`.

    Parameters
    ----------
    path : str or path
    loss : Loss, optional
        The loss, if the model was learned with a user's own.
    """
    return read_model(path, {"classifier": BoomerClassifier, "regressor": BoomerRegressor}, loss)
