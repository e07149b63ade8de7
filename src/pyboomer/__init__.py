"""Gradient boosted multi-label classification rules: BOOMER (ECML-PKDD 2020) in Python."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyboomer.classifier import BoomerClassifier
    from pyboomer.editing import distil
    from pyboomer.learning.training import Progress
    from pyboomer.loading import load_model
    from pyboomer.losses import Loss
    from pyboomer.regressor import BoomerRegressor
    from pyboomer.rules.ensemble import RuleEnsemble
    from pyboomer.rules.rule import Condition, Rule

__version__ = "0.1.0"

__all__ = [
    "BoomerClassifier",
    "BoomerRegressor",
    "Condition",
    "Loss",
    "Progress",
    "Rule",
    "RuleEnsemble",
    "__version__",
    "distil",
    "load_model",
]

# Numba and scikit-learn take about a second to import: a name is looked up in its module when it is first used.
_MODULES = {
    "BoomerClassifier": "classifier",
    "BoomerRegressor": "regressor",
    "Condition": "rules.rule",
    "Loss": "losses",
    "Progress": "learning.training",
    "Rule": "rules.rule",
    "RuleEnsemble": "rules.ensemble",
    "distil": "editing",
    "load_model": "loading",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'pyboomer' has no attribute {name!r}")
    value = getattr(import_module(f"pyboomer.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
