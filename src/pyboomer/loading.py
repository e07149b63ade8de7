"""Loading makes a fitted model of a model file, be it a classifier or a regressor."""

from pathlib import Path
from typing import Any

from pyboomer.classifier import BoomerClassifier
from pyboomer.export.modelfile import read_model
from pyboomer.losses import Loss
from pyboomer.regressor import BoomerRegressor


def load_model(path: str | Path, loss: Loss | None = None) -> Any:
    """Read a model that `BoomerClassifier.save` or `BoomerRegressor.save` has written.

    Parameters
    ----------
    path : str or path
    loss : Loss, optional
        The loss, if the model was learned with a loss of your own.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer import load_model
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(digits.X, digits.Y)
    >>> clf.save("model.json")
    >>> again = load_model("model.json")
    >>> (again.predict(digits.X) == clf.predict(digits.X)).all()
    np.True_
    """
    return read_model(path, {"classifier": BoomerClassifier, "regressor": BoomerRegressor}, loss)
