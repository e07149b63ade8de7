"""Gradient boosted multi-label classification rules: BOOMER (ECML-PKDD 2020) in Python."""

from pyboomer.classifier import BoomerClassifier, Progress
from pyboomer.losses import Loss
from pyboomer.modelfile import load_model
from pyboomer.rules import Condition, Rule, RuleEnsemble

__version__ = "0.1.0"

__all__ = [
    "BoomerClassifier",
    "Condition",
    "Loss",
    "Progress",
    "Rule",
    "RuleEnsemble",
    "__version__",
    "load_model",
]
