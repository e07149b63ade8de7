"""Labels are gathered like cards; what is known of a group lies together, and rules stay the same."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier, BoomerRegressor
from pyboomer.engine import sampling
from pyboomer.engine.cpu import groups
from pyboomer.losses import joint_logistic
from pyboomer.losses.compiled import tell_truth, update
from pyboomer.losses.compiled_joint import sum_vectors, take_group
from pyboomer.losses.truth import pad_signs

RNG = np.random.default_rng(0)
X = sp.random_array((150, 20), density=0.3, rng=RNG, format="csr")
F = X @ RNG.normal(size=(20, 19)) + 0.2 * RNG.normal(size=(150, 19))
Y = (F > 0.3).astype(float)
UNKNOWN = np.where(RNG.random(Y.shape) < 0.1, np.nan, Y)
GAPS = X.copy()
GAPS.data[::7] = np.nan


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The epochs that have been gathered, and which of their groups."""
    seen: list[tuple[int, int]] = []

    class Watched(groups.GroupedLabels):
        def show(self, rule: int) -> Any:
            answer = super().show(rule)
            seen.append(self.current)
            return answer

    monkeypatch.setattr(groups, "GroupedLabels", Watched)
    return seen


def check_same_rules(model: BoomerClassifier, copied: BoomerClassifier) -> None:
    """The same conditions; scores up to rounding, as what is kept of a group is not what is kept of all labels."""
    assert [rule.body for rule in model.rules_] == [rule.body for rule in copied.rules_]
    np.testing.assert_allclose(model.rules_.head_scores, copied.rules_.head_scores, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(model.training_facts_["loss"], copied.training_facts_["loss"])


@pytest.mark.parametrize(
    ("X", "Y", "options"),
    [
        (X, Y, {}),
        (GAPS, UNKNOWN, {}),
        (X, UNKNOWN, {"class_weight": {1: 2.5}}),
        (X, Y, {"bootstrap": False}),
        pytest.param(X, Y, {"l1": 0.5}, marks=pytest.mark.slow),
        (X.toarray(), Y, {"max_labels": 0.2}),
    ],
    ids=["sparse", "missing values", "weights of labels", "all examples", "l1", "dense"],
)
def test_rules_are_those_of_labels_that_are_copied(
    monkeypatch: pytest.MonkeyPatch, turns: list[tuple[int, int]], X: Any, Y: Any, options: dict[str, Any]
) -> None:
    options = {"loss": "label-wise-logistic", "n_rules": 150, "random_state": 1, "max_labels": 4, **options}
    copied = BoomerClassifier(**options).fit(X, Y)
    assert turns == []
    monkeypatch.setattr(groups, "CACHE", 0)
    model = BoomerClassifier(**options).fit(X, Y)
    assert sorted({epoch for epoch, _ in turns}) == [0, 1, 2, 3]
    check_same_rules(model, copied)
    go_on = BoomerClassifier(**options | {"n_rules": 100}, warm_start=True).fit(X, Y)  # in the midst of an epoch
    assert go_on.set_params(n_rules=150).fit(X, Y).rules_.to_dict() == model.rules_.to_dict()


def test_targets_are_dealt(monkeypatch: pytest.MonkeyPatch, turns: list[tuple[int, int]]) -> None:
    copied = BoomerRegressor(n_rules=150, random_state=1, max_labels=4).fit(X, F)
    monkeypatch.setattr(groups, "CACHE", 0)
    model = BoomerRegressor(n_rules=150, random_state=1, max_labels=4).fit(X, F)
    assert model.rules_.to_dict() == copied.rules_.to_dict()
    assert turns


# --- The joint loss ---------------------------------------------------------------------------------------------------


def learn_jointly(Y: Any, **options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"loss": "joint-logistic", "n_rules": 120, "random_state": 1, **options}).fit(X, Y)


@pytest.mark.parametrize(
    ("Y", "options"),
    [
        (Y, {"max_labels": 4}),
        (Y, {"max_labels": 9, "l1": 0.2}),
        (np.hstack([Y, Y[:, ::-1], np.roll(Y, 3, axis=1), np.roll(Y, 7, axis=1)]), {"max_labels": 70 / 152}),
        (np.zeros(Y.shape), {"max_labels": 4}),
    ],
    ids=["small groups", "large groups", "groups of more labels than a word has bits", "no label at all"],
)
def test_a_hand_of_the_joint_loss_has_the_rules_of_all_labels(
    monkeypatch: pytest.MonkeyPatch, turns: list[tuple[int, int]], Y: Any, options: dict[str, Any]
) -> None:
    model = learn_jointly(Y, **options)
    assert len(set(turns)) > 4
    go_on = learn_jointly(Y, **options, warm_start=True, n_rules=45)  # in the midst of a turn
    go_on = go_on.set_params(n_rules=120).fit(X, Y)
    monkeypatch.setattr(groups, "group_labels", lambda *_: None)
    copied = learn_jointly(Y, **options)
    for other in (model, go_on):
        check_same_rules(other, copied)


def test_unknown_labels_of_the_joint_loss_are_not_dealt(turns: list[tuple[int, int]]) -> None:
    model = learn_jointly(UNKNOWN, max_labels=4)
    assert turns == []
    assert len(model.rules_) == 120


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_what_is_known_of_a_hand_gives_the_statistics_of_all_labels(scale: float) -> None:
    rng = np.random.default_rng(2)
    vectors = np.unique(rng.random((60, 21)) < 0.2, axis=0).astype(np.uint8)
    loss = joint_logistic().prepare(vectors, rng.integers(1, 9, size=len(vectors)).astype(float))  # type: ignore[misc]
    labels_of = 2.0 * vectors[rng.integers(len(vectors), size=29)] - 1
    signs, scores = pad_signs(labels_of.astype(np.int8), None), np.zeros((29, 24))
    scores[:, :21] = scale * rng.normal(size=(29, 21))
    truth = tell_truth(loss, True, signs, np.zeros((0, 24)))
    everyone, group = np.arange(29, dtype=np.uint32), np.array([0, 3, 4, 11, 17, 20])
    g, h = loss.derivatives(labels_of, scores[:, :21])
    own_scores, own_signs, statistics = np.zeros((29, 8)), np.zeros((29, 8), dtype=np.int8), np.zeros((29, 16))
    own_scores[:, :6], own_signs[:, :6] = scores[:, group], signs[:, group]
    own = take_group(truth, group, scores, own_signs, np.full(29, np.nan))
    update(own, own_scores, everyone, statistics, 0, 6)
    np.testing.assert_allclose(statistics[:, :6], g[:, group], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(statistics[:, 8:14], h[:, group], rtol=1e-9, atol=1e-12)
    assert not statistics[:, [6, 7, 14, 15]].any()
    sums = np.empty(29)
    sum_vectors(own, own_scores, sums)
    assert np.isfinite(sums).all()
    again = take_group(truth, group, scores, own_signs, sums)  # from what the first one leaves
    n_groups = len(own.known.by_vector.offsets) - 1
    np.testing.assert_allclose(again.base[:, :n_groups], own.base[:, :n_groups], rtol=1e-9)
    gradients = np.zeros((29, 8))
    update(own, own_scores, everyone, gradients, 0, 6)
    np.testing.assert_array_equal(gradients, statistics[:, :8])
    assert n_groups == len(np.unique(vectors[:, group], axis=0))


# --- Whose turn it is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "size"), [(6, 2), (7, 2), (5, 4), (100, 3), (9, 1), (300, 1)])
def test_every_label_is_in_one_group_of_an_epoch(n: int, size: int) -> None:
    labels, groups = sampling.make_draw(n, size), n // size
    epochs: dict[int, list[list[int]]] = {}
    for rule in range(1, 1000):
        epoch, group, left = sampling.find_group(rule, n, size)
        sampling.fill_with_labels(1, rule, False, labels)
        gathered = epochs.setdefault(epoch, [])
        if len(gathered) == group:
            gathered.append(labels.drawn.tolist())
            turns = left
        assert gathered[group] == labels.drawn.tolist()
        assert turns == (max(min(4**epoch, 64, 256 // groups), 1) if groups > 1 else 1)
        assert 1 <= left <= turns
    for gathered in list(epochs.values())[:-1]:
        assert len({label for group in gathered for label in group}) == groups * size
    assert n < 6 or epochs[0] != epochs[1]
