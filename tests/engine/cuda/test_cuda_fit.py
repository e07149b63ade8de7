"""Estimators learn on a GPU what they learn on the processor, and everything around learning works as ever."""

from typing import Any

import numpy as np
import pytest
from emulation import COMPILER, EmulatedDevice

from pyboomer import BoomerClassifier
from pyboomer.compiling.device import is_there_a_device
from pyboomer.engine import choice
from pyboomer.engine.cuda import engine as engine_module
from pyboomer.predicting import device_scores

OPTIONS = {"loss": "label-wise-logistic", "n_rules": 6, "max_bins": 16, "max_conditions": 3, "random_state": 1}


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.cuda)], autouse=True)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU, or as if there was one."""
    if request.param == "cuda":
        if not is_there_a_device():
            pytest.skip("there is no NVIDIA GPU, or no CuPy")
        return
    if COMPILER is None:
        pytest.skip("there is no C++ compiler to emulate a GPU with")
    monkeypatch.setattr(choice, "import_cupy", lambda: None)
    for module in (engine_module, device_scores):
        monkeypatch.setattr(module, "find_device", EmulatedDevice)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 5))
    X[rng.random(X.shape) < 0.05] = np.nan
    Y = (np.nan_to_num(X) @ rng.normal(size=(5, 3)) + rng.normal(size=(250, 3)) > 0.5).astype(int)
    return X, Y


def learn(data: tuple[np.ndarray, np.ndarray], **options: Any) -> BoomerClassifier:
    return BoomerClassifier(**OPTIONS | {"device": "cuda"} | options).fit(*data)


def test_a_model_is_that_of_the_processor(data: tuple[np.ndarray, np.ndarray]) -> None:
    model, expected = learn(data), learn(data, device="cpu")
    for name in ("condition_offsets", "condition_features", "condition_values", "condition_digits", "head_labels"):
        np.testing.assert_array_equal(getattr(model.rules_, name), getattr(expected.rules_, name), err_msg=name)
    np.testing.assert_allclose(model.rules_.head_scores, expected.rules_.head_scores, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.rules_.condition_shares, expected.rules_.condition_shares, rtol=1e-5)
    assert model.training_facts_["loss"] == pytest.approx(expected.training_facts_["loss"], rel=1e-6)
    scores = model.decision_function(data[0])
    np.testing.assert_array_equal(model.set_params(device="cpu").decision_function(data[0]), scores)


def test_rules_are_added_as_if_they_had_been_learned_at_once(data: tuple[np.ndarray, np.ndarray]) -> None:
    model = learn(data, n_rules=3, warm_start=True)
    model.set_params(n_rules=6).fit(*data)
    np.testing.assert_array_equal(model.rules_.head_scores, learn(data).rules_.head_scores)


def test_callbacks_and_held_out_examples_are_asked(data: tuple[np.ndarray, np.ndarray]) -> None:
    seen: list[int] = []

    def stop(progress: Any) -> bool:
        seen.append(progress.n_rules)
        return progress.n_rules == 3

    model = learn(data, callbacks=stop)
    assert (seen, len(model.rules_)) == ([1, 2, 3], 3)
    stopped = learn(data, early_stopping=True, n_iter_no_change=5)
    assert stopped.validation_curve_[-1].n_rules == 6


def test_a_failing_callback_loses_no_rules(data: tuple[np.ndarray, np.ndarray]) -> None:
    def fail(progress: Any) -> None:
        if progress.n_rules == 4:
            raise RuntimeError("enough")

    model = BoomerClassifier(**OPTIONS | {"device": "cuda", "callbacks": fail})
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(*data)
    assert len(model.rules_) == 4
