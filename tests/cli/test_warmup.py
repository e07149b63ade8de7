"""What is warmed up is compiled: whoever learns afterwards need not wait for it."""

import numpy as np
import pytest
from numba import config

from pyboomer import BoomerClassifier
from pyboomer.cli import main
from pyboomer.compiling.store import Store


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_what_is_warmed_up_need_not_be_compiled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["warmup", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["warmup"]) == 0
    assert capsys.readouterr().err.startswith("boomer: compiled and kept in ")
    monkeypatch.setattr(Store, "load_overload", lambda *_: pytest.fail("other code is needed"))
    X = np.random.default_rng(3).random((90, 5))
    for Y in (X[:, :4] > 0.4, np.tile(X[:, :4] > 0.4, 10)):
        model = BoomerClassifier(n_rules=20).fit(X, Y)
        model.predict(X)
        model.predict(X, decode="f1")
    X = np.random.default_rng(4).random((5000, 5))
    many = {"loss": "label-wise-logistic", "max_samples": 1000, "rules_per_round": 4, "max_bins": 255}
    BoomerClassifier(n_rules=60, **many).fit(X, X[:, :4] > 0.4)  # type: ignore[arg-type]


def test_options_of_a_classifier_do_not_warm_up_a_regressor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "--regression", "--search", "exact"]) == 2
    assert capsys.readouterr().err == "boomer: error: --search does not go with --regression\n"
