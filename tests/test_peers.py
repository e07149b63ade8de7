"""The official implementation, where it is installed, reaches the same losses within noise."""

import numpy as np
import pytest

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import hamming_loss, subset_zero_one_loss

LOSSES = {"label-wise-logistic": "logistic-decomposable", "example-wise-logistic": "logistic-non-decomposable"}


@pytest.mark.filterwarnings("ignore")  # what the peer warns of is its own business
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_those_of_the_official_implementation(loss: str) -> None:
    peer = pytest.importorskip("mlrl.boosting", reason="mlrl-boomer is not installed")
    digits = load_dataset("digits7")
    train, test = np.arange(1797) % 3 != 0, np.arange(1797) % 3 == 0
    ours = BoomerClassifier(loss, n_rules=200, learning_rate=0.3, random_state=1).fit(digits.X[train], digits.Y[train])
    theirs = peer.BoomerClassifier(
        random_state=1,
        max_rules=200,
        loss=LOSSES[loss],
        head_type="complete",
        shrinkage=0.3,
        l2_regularization_weight=1.0,
        feature_sampling="without-replacement",
        instance_sampling="with-replacement",
        feature_binning="none",
    ).fit(digits.X[train].astype(np.float32), digits.Y[train])
    predicted = np.asarray(ours.predict(digits.X[test]))
    expected = theirs.predict(digits.X[test].astype(np.float32))
    expected = expected.toarray() if hasattr(expected, "toarray") else np.asarray(expected)
    for measure, noise in ((hamming_loss, 0.015), (subset_zero_one_loss, 0.05)):
        difference = measure(digits.Y[test], predicted) - measure(digits.Y[test], expected)
        assert abs(difference) < noise, measure.__name__
