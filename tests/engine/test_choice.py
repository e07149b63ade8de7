"""The device is chosen before anything is learned; what a GPU cannot learn is refused, with the cure."""

import sys
from typing import Any

import numpy as np
import pytest

from pyboomer import BoomerClassifier
from pyboomer.compiling.device import NoDevice, find_device, is_there_a_device
from pyboomer.engine import choice
from pyboomer.engine.choice import choose_device
from pyboomer.engine.protocol import Settings
from pyboomer.losses import example_wise_logistic, label_wise_logistic
from pyboomer.losses.robust import absolute_error

LARGE = (20_000, 100)


def settings(**options: Any) -> Settings:
    return Settings(**{"loss": label_wise_logistic, "max_bins": "auto", "device": "cuda"} | options)


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there was a GPU."""
    monkeypatch.setattr(choice, "import_cupy", lambda: None)
    monkeypatch.setattr(choice, "is_there_a_device", lambda: True)


@pytest.fixture
def without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.mark.parametrize(
    ("options", "sparse", "cure"),
    [
        ({}, True, "toarray"),
        ({"max_bins": None}, False, 'max_bins="auto"'),
        ({"loss": absolute_error}, False, "no kernel for loss 'absolute-error'"),
        ({"loss": example_wise_logistic, "search": "exact"}, False, 'search="bound"'),
    ],
    ids=["sparse", "all values", "own loss", "exact"],
)
@pytest.mark.usefixtures("with_gpu")
def test_what_a_gpu_cannot_learn_is_refused_or_left_to_the_processor(
    options: dict[str, Any], sparse: bool, cure: str
) -> None:
    with pytest.raises(ValueError, match=cure):
        choose_device(settings(**options), LARGE, sparse)
    assert choose_device(settings(device="auto", **options), LARGE, sparse).device == "cpu"


@pytest.mark.usefixtures("with_gpu")
def test_auto_is_a_gpu_where_data_are_large_and_features_are_binned_there() -> None:
    chosen = choose_device(settings(device="auto"), LARGE, False)
    assert (chosen.device, chosen.max_bins) == ("cuda", 255)
    assert choose_device(settings(device="auto"), (10_001, 1), False).device == "cuda"
    assert choose_device(settings(device="auto"), (10_000, 1000), False).device == "cpu"
    exact = settings(loss=example_wise_logistic, search="exact", head="single")
    assert choose_device(exact, LARGE, False).device == "cuda"
    assert choose_device(settings(max_bins=16), LARGE, False).max_bins == 16


@pytest.mark.usefixtures("with_gpu")
def test_what_is_on_a_gpu_is_learned_from_there() -> None:
    assert choose_device(settings(device="auto"), (10, 2), False, there=True).device == "cuda"
    with pytest.raises(ValueError, match='set device="cuda"'):
        choose_device(settings(device="cpu"), (10, 2), False, there=True)


@pytest.mark.usefixtures("without_cupy")
def test_without_cupy_the_cure_is_told_and_auto_is_the_processor() -> None:
    with pytest.raises(NoDevice, match=r"pip install .pyboomer\[cuda\]"):
        BoomerClassifier(device="cuda", n_rules=2).fit(np.zeros((4, 1)), np.array([[0, 1]] * 4))
    assert not is_there_a_device()
    assert choose_device(settings(device="auto"), LARGE, False).device == "cpu"
    with pytest.raises(NoDevice, match="needs CuPy"):
        find_device("")
