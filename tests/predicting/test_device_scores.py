"""Scores that a GPU adds up are those of the host, bit for bit."""

from typing import Any

import numpy as np
import pytest
from emulation import COMPILER, EmulatedDevice

from pyboomer.compiling.device import NoDevice, find_device
from pyboomer.predicting import device_scores
from pyboomer.predicting.device_scores import add_scores_on_device, read_program
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.schema import Schema


@pytest.fixture(scope="module", params=["emulated", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> Any:
    if request.param == "emulated":
        if COMPILER is None:
            pytest.skip("there is no C++ compiler to emulate a GPU with")
        return EmulatedDevice(read_program())
    try:
        return find_device(read_program())
    except NoDevice as error:
        pytest.skip(str(error))


def make_rules(n_labels: int, whole: bool, seed: int = 0) -> RuleEnsemble:
    """Rules of no, one or several conditions, with heads about all labels or about some."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, 12)
    n = int(sizes.sum())
    lengths = np.where(whole, n_labels, rng.integers(1, n_labels + 1, 12))
    labels = [np.sort(rng.choice(n_labels, length, replace=False)) for length in lengths]
    features = rng.integers(0, 4, n).astype(np.int32)
    return RuleEnsemble(
        condition_offsets=np.append(0, np.cumsum(sizes)),
        condition_features=features,
        condition_operators=(2 * (features > 1) + rng.integers(0, 2, n)).astype(np.int8),
        condition_values=rng.integers(0, 3, n).astype(np.float64),
        head_offsets=np.append(0, np.cumsum(lengths)),
        head_labels=np.concatenate(labels).astype(np.int32),
        head_scores=rng.normal(size=int(lengths.sum())),
        coverage=np.ones(12),
        gain=np.ones(12),
        schema=Schema(tuple("abcde"), {2: (0, 1, 2, 3), 3: (0, 1, 2, 3)}),
        label_names=tuple(f"y{k}" for k in range(n_labels)),
        condition_shares=np.ones(n),
    )


@pytest.mark.parametrize(("n_labels", "whole", "dtype"), [(3, True, "f8"), (3, False, "f8"), (40, False, "f4")])
def test_scores_are_those_of_the_host(
    n_labels: int, whole: bool, dtype: str, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (1500, 5)).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    rules = make_rules(n_labels, whole)
    expected = rng.normal(size=(len(X), n_labels))
    found = expected.copy()
    add_scores(rules, X.astype(np.float64), expected)
    monkeypatch.setattr(device_scores, "PART", 1)  # more than one part
    add_scores_on_device(rules, np.arange(5), X, found, device=device)
    np.testing.assert_array_equal(found, expected)
