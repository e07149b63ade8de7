"""Labels are dealt like cards; where there are many, what is known of a hand lies together, and rules stay the same."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier, BoomerRegressor
from pyboomer.engine import sampling
from pyboomer.engine.cpu import dealing

RNG = np.random.default_rng(0)
X = sp.random_array((150, 20), density=0.3, rng=RNG, format="csr")
F = X @ RNG.normal(size=(20, 19)) + 0.2 * RNG.normal(size=(150, 19))
Y = (F > 0.3).astype(float)
UNKNOWN = np.where(RNG.random(Y.shape) < 0.1, np.nan, Y)


@pytest.fixture
def decks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The decks that have been dealt."""
    seen: list[int] = []

    class Watched(dealing.Dealer):
        def deal(self, rule: int) -> Any:
            answer = super().deal(rule)
            seen.append(self.deck)
            return answer

    monkeypatch.setattr(dealing, "Dealer", Watched)
    return seen


@pytest.mark.parametrize(
    ("X", "Y", "options"),
    [
        (X, Y, {}),
        (X, UNKNOWN, {"class_weight": {1: 2.5}}),
        (X, Y, {"bootstrap": False}),
        pytest.param(X, Y, {"l1": 0.5}, marks=pytest.mark.slow),
        (X.toarray(), Y, {"max_labels": 0.2}),
    ],
    ids=["sparse", "weights of labels", "all examples", "l1", "dense"],
)
def test_rules_are_those_of_labels_that_are_copied(
    monkeypatch: pytest.MonkeyPatch, decks: list[int], X: Any, Y: Any, options: dict[str, Any]
) -> None:
    options = {"loss": "label-wise-logistic", "n_rules": 150, "random_state": 1, "max_labels": 4, **options}
    copied = BoomerClassifier(**options).fit(X, Y)
    assert decks == []
    monkeypatch.setattr(dealing, "CACHE", 0)
    model = BoomerClassifier(**options).fit(X, Y)
    assert sorted(set(decks)) == [0, 1, 2]
    assert model.rules_.to_dict() == copied.rules_.to_dict()
    assert model.training_facts_["loss"] == copied.training_facts_["loss"]
    model = BoomerClassifier(**options | {"n_rules": 100}, warm_start=True).fit(X, Y)  # in the midst of a deck
    assert model.set_params(n_rules=150).fit(X, Y).rules_.to_dict() == copied.rules_.to_dict()


def test_targets_are_dealt(monkeypatch: pytest.MonkeyPatch, decks: list[int]) -> None:
    copied = BoomerRegressor(n_rules=150, random_state=1, max_labels=4).fit(X, F)
    monkeypatch.setattr(dealing, "CACHE", 0)
    model = BoomerRegressor(n_rules=150, random_state=1, max_labels=4).fit(X, F)
    assert model.rules_.to_dict() == copied.rules_.to_dict()
    assert decks


@pytest.mark.parametrize(("n", "size"), [(6, 2), (7, 2), (5, 4), (100, 3), (9, 1)])
def test_every_label_of_a_deck_is_dealt_once_in_a_round(n: int, size: int) -> None:
    labels, hands = sampling.make_draw(n, size), n // size
    count = sampling.count_per_deck(n, size)
    dealt = []
    for rule in range(1, 2 * count + 1):
        sampling.fill_with_labels(1, rule, False, labels)
        dealt.append(labels.drawn.tolist())
    first = dealt[:hands]
    assert len({label for hand in first for label in hand}) == hands * size
    assert dealt[:count] == first * (count // hands)
    assert n < 6 or dealt[count:] != dealt[:count]
