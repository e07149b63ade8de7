"""What "auto" stands for depends on the data, is told, and stays what it was."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyboomer import BoomerClassifier, load_model
from pyboomer.data.examples import Examples
from pyboomer.editing import refit_heads
from pyboomer.learning import sizing
from pyboomer.learning.sizing import choose_loss, find_learning_rate, find_max_samples

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 4))
Y = (X[:, :3] + 0.5 * RNG.normal(size=(80, 3)) > 0).astype(int)


def learn(**options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 10, "random_state": 1, **options}).fit(X, Y)


@pytest.mark.parametrize(
    ("n", "rate"), [(1, 0.05), (2_500, 0.05), (10_000, 0.1), (40_000, 0.2), (90_000, 0.3), (10**7, 0.3)]
)
def test_the_learning_rate_grows_with_the_square_root_of_the_examples(n: int, rate: float) -> None:
    assert find_learning_rate("auto", n) == pytest.approx(rate)
    assert find_learning_rate(0.7, n) == 0.7


def test_few_examples_are_sampled_in_full() -> None:
    assert find_max_samples("auto", 20_000) is None
    assert find_max_samples("auto", 20_001) == 20_000
    assert [find_max_samples(given, 10**6) for given in (None, 5, 0.5)] == [None, 5, 0.5]


def test_settings_are_those_of_the_numbers_that_auto_stands_for() -> None:
    assert learn().rules_ == learn(loss="joint-logistic", learning_rate=0.05, max_samples=None).rules_


def test_the_loss_is_told() -> None:
    assert learn().loss_.name == "joint-logistic"
    assert learn(known_vectors=False).loss_.name == "label-wise-logistic"
    assert learn(class_weight="balanced").loss_.name == "label-wise-logistic"
    assert learn(loss="example-wise-logistic").loss_.name == "example-wise-logistic"
    incomplete = np.where(np.arange(3) == np.arange(80)[:, None] % 3, np.nan, Y)
    assert BoomerClassifier(n_rules=3).fit(X, incomplete).loss_.name == "label-wise-logistic"
    assert BoomerClassifier(n_rules=3).fit(X, Y.sum(axis=1)).loss_.name == "joint-logistic"


def test_too_many_label_vectors_are_learned_label_by_label() -> None:
    examples = Examples(X, Y, np.ones(80), None)
    least = sizing.MOST_CELLS // 80
    assert choose_loss(examples, least).name == "joint-logistic"
    assert choose_loss(examples, least + 1).name == "label-wise-logistic"


def test_what_was_chosen_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = learn(warm_start=True)
    model.save(tmp_path / "model.json")
    monkeypatch.setattr(sizing, "MOST_CELLS", 0)
    loaded = load_model(tmp_path / "model.json")
    assert (loaded.loss, loaded.loss_) == ("auto", model.loss_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert refit_heads(model, X[:40], Y[:40]).loss_ is model.loss_
    assert model.set_params(n_rules=12).fit(X, Y).loss_.name == "joint-logistic"
    assert learn().loss_.name == "label-wise-logistic"


def test_the_settings_of_the_paper_are_one_word_away() -> None:
    paper = BoomerClassifier.paper(n_rules=5)
    assert (paper.loss, paper.n_rules, paper.max_conditions) == ("example-wise-logistic", 5, None)
    assert (paper.default_rule, paper.max_features, paper.learning_rate) == ("newton", "log2", 0.3)
    assert paper.fit(X, Y).loss_.name == "example-wise-logistic"
