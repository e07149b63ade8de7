"""Training tells of a loss that rises, and only then."""

import warnings

import numpy as np
import pytest

from pyboomer import BoomerClassifier

X = np.random.default_rng(1).normal(size=(200, 4))
Y = (X[:, :3] > 0).astype(int)


def test_a_training_loss_that_rises_is_told_with_the_cure() -> None:
    model = BoomerClassifier(
        "example-wise-squared-error", n_rules=150, learning_rate=0.3, max_conditions=None, random_state=1
    )
    with pytest.warns(UserWarning, match=r"loss has risen .* larger l2 \(it is 1.0\) or a smaller learning_rate"):
        model.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(learning_rate=0.1).fit(X, Y)
