"""What "auto" stands for depends on the data, is told, and stays what it was."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier, load_model
from pyboomer.data.examples import Examples
from pyboomer.editing import refit_heads
from pyboomer.learning import sizing
from pyboomer.learning.sizing import (
    choose_loss,
    count_drawn,
    find_learning_rate,
    find_max_features,
    find_max_labels,
    find_max_samples,
    find_n_rules,
)
from pyboomer.losses import FOR_LABELS

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 4))
Y = (X[:, :3] + 0.5 * RNG.normal(size=(80, 3)) > 0).astype(int)


def learn(**options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 10, "random_state": 1, **options}).fit(X, Y)


def make_examples(n: int, n_labels: int, size: int) -> Examples:
    """Label vectors of so many labels, each label as often as any other."""
    Y = (np.arange(n_labels) - np.arange(n)[:, None]) % n_labels < size
    return Examples(np.zeros((n, 1)), Y.astype(np.uint8), np.ones(n), None)


def make_sparse(n: int, n_labels: int) -> Examples:
    return Examples(sp.csr_array((n, 2)), np.zeros((n, n_labels), dtype=np.uint8), np.ones(n), None)


@pytest.mark.parametrize(
    ("n", "rate"), [(1, 1 / 15), (2_500, 1 / 15), (10_000, 2 / 15), (40_000, 4 / 15), (90_000, 0.4), (10**6, 0.4)]
)
def test_the_learning_rate_grows_with_the_square_root_of_the_examples(n: int, rate: float) -> None:
    examples = make_examples(n, 2, 1)
    for loss in FOR_LABELS.values():
        assert find_learning_rate("auto", examples, loss) == pytest.approx(rate)
        assert find_learning_rate(0.7, examples, loss) == 0.7


def test_long_label_vectors_are_learned_in_short_steps() -> None:
    examples = make_examples(100_000, 40, 10)
    assert find_learning_rate("auto", examples, FOR_LABELS["joint-logistic"]) == pytest.approx(0.1)
    assert find_learning_rate("auto", examples, FOR_LABELS["label-wise-logistic"]) == 0.4
    assert choose_loss(examples, 40).name == "joint-logistic"
    assert choose_loss(make_examples(1000, 100, 21), 100).name == "label-wise-logistic"
    assert choose_loss(make_examples(1000, 100, 99), 100).name == "joint-logistic"  # as short as those of one label


@pytest.mark.parametrize(
    ("n_labels", "drawn"),
    [(32, None), (33, 11), (45, 15), (80, 16), (159, 15), (170, 17), (983, 98)],
)
def test_rules_from_sparse_features_are_about_a_part_of_many_labels(n_labels: int, drawn: int | None) -> None:
    examples, loss = make_sparse(1000, n_labels), FOR_LABELS["label-wise-logistic"]
    assert find_max_labels("auto", "multi", examples, {}, loss) == drawn
    for head in ("single", 3, 0.5):
        assert find_max_labels("auto", head, examples, {}, loss) is None
    for given in (None, 5, 0.5, "round-robin"):
        assert find_max_labels(given, "multi", examples, {}, loss) == given


@pytest.mark.parametrize(("n_labels", "drawn"), [(15, None), (16, 8), (20, 6), (32, 8), (33, 11)])
def test_rules_of_the_joint_loss_are_about_a_part_of_fewer(n_labels: int, drawn: int | None) -> None:
    assert find_max_labels("auto", "multi", make_sparse(1000, n_labels), {}, FOR_LABELS["joint-logistic"]) == drawn


def test_features_are_sparse_if_most_values_are_0_however_they_are_stored() -> None:
    half = np.array([[0.0, 1.0], [np.nan, 0.0]])
    stored = sp.csr_array(([0.0, 2.0], ([0, 1], [0, 1])), shape=(2, 2))  # a zero is stored
    examples = make_sparse(2, 33)
    for matrix, sparse in ((half, False), (np.nan_to_num(half), True), (sp.csc_array(half), False), (stored, True)):
        assert examples._replace(matrix=matrix).are_sparse({}) == sparse
    for sparse in (False, True):  # X is elsewhere
        assert examples._replace(matrix=None, sparse=sparse).are_sparse({}) == sparse


def test_of_categories_the_number_0_alone_is_0() -> None:
    codes = np.array([[0.0, 1.0], [0.0, 0.0], [0.0, np.nan]])
    examples = make_sparse(3, 33)._replace(matrix=codes)
    assert examples.are_sparse({})
    assert not examples.are_sparse({0: ("no", "yes")})
    assert not examples.are_sparse({0: (1, 2)})
    assert examples.are_sparse({0: (0, 1)})
    assert examples.are_sparse({0: (0, 1), 1: (0, 5)})
    assert not examples.are_sparse({0: (-1, 0)})


@pytest.mark.parametrize("words", [("no", "yes"), ("none", "abnormal")])
def test_how_categories_are_spelled_changes_no_rule(words: tuple[str, str]) -> None:
    found = RNG.random((60, 4)) < 0.1
    labels = np.eye(40, dtype=int)[RNG.integers(0, 40, 60)]
    frame = pd.DataFrame({f"x{i}": np.where(found[:, i], words[1], words[0]) for i in range(4)})
    model = BoomerClassifier(n_rules=10, random_state=1).fit(frame, labels)
    assert max(np.count_nonzero(rule.scores) for rule in list(model.rules_)[1:]) > 20


@pytest.mark.parametrize(
    ("given", "drawn"), [(5, 5), (0.1, 4), (40, None), (1.0, None), (None, None), (1, 1), ("round-robin", 1)]
)
def test_rules_about_a_part_of_the_labels_count_as_such_whoever_says_so(given: Any, drawn: int | None) -> None:
    assert count_drawn(given, "multi", 40) == drawn
    assert count_drawn(given, "single", 40) is None


def test_few_features_are_drawn_where_few_examples_are_learned_from() -> None:
    few = {n: find_max_features("auto", 20_000, n) for n in (1, 2, 3, 4, 12, 50, 72, 294, 500, 1001, 3125)}
    assert few == {1: 1, 2: 2, 3: 2, 4: 2, 12: 4, 50: 6, 72: 7, 294: 9, 500: 16, 1001: 32, 3125: 56}
    assert [find_max_features("auto", 20_001, n) for n in (1, 2, 50)] == [1, 2, 16]
    for given in (None, 5, 0.5, "log2", "sqrt"):
        assert find_max_features(given, 10**6, 50) == given


@pytest.mark.parametrize(
    ("n", "n_labels", "drawn", "n_rules"),
    [
        (10**6, 1000, None, 3000),
        (10**4, 20, 5, 3000),  # few labels
        (1000, 64, 16, 3000),
        (2500, 64, 16, 3000),
        (5000, 64, 16, 6000),
        (5000, 159, 15, 15_000),
        (4000, 100, 14, 8600),
        (10**5, 983, 98, 15_000),
    ],
)
def test_more_rules_are_learned_for_many_labels(n: int, n_labels: int, drawn: int | None, n_rules: int) -> None:
    examples = make_sparse(1, n_labels)._replace(merged=n)  # each label vector once
    assert find_n_rules("auto", examples, drawn) == n_rules
    assert find_n_rules(17, examples, drawn) == 17


def test_a_classifier_learns_as_many_rules_as_auto_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "RULES", 100)
    monkeypatch.setattr(sizing, "FOR_EACH", 200)
    labels = np.eye(40, dtype=int)[RNG.integers(0, 40, 100)]
    table = RNG.normal(size=(100, 3)) * (RNG.random((100, 3)) < 0.4)
    model = BoomerClassifier("label-wise-logistic", random_state=1).fit(table, labels)
    assert len(model.rules_) == 200  # 13 of 40 labels each: 100 / 200 * 40 / 13 is 1.54, which is rounded
    for given in (13, 13 / 40):
        same = BoomerClassifier("label-wise-logistic", max_labels=given, random_state=1).fit(table, labels)
        assert same.rules_ == model.rules_
    assert len(BoomerClassifier("label-wise-logistic", max_labels=40, random_state=1).fit(table, labels).rules_) == 100
    assert len(BoomerClassifier(n_rules=7, random_state=1).fit(table, labels).rules_) == 7
    model.set_params(warm_start=True)
    rules = model.rules_
    assert model.fit(table[:50], labels[:50]).rules_ == rules  # more than "auto" stands for here
    with pytest.raises(ValueError, match="n_rules must be at least 200"):
        model.set_params(n_rules=20).fit(table, labels)


def test_the_learning_rate_grows_if_labels_are_drawn() -> None:
    examples = make_examples(1000, 64, 1)
    for loss in FOR_LABELS.values():
        assert find_learning_rate("auto", examples, loss, 16) == pytest.approx(2 / 15)
        assert find_learning_rate("auto", make_examples(2500, 160, 1), loss, 16) == pytest.approx(2 / 15)  # 7500 rules
        assert find_learning_rate("auto", make_examples(2500, 1280, 1), loss, 4) == 0.4
        assert find_learning_rate(0.7, examples, loss, 16) == 0.7
    labels = np.eye(40, dtype=int)[RNG.integers(0, 40, len(X))]
    sparse = np.maximum(X - 0.5, 0)
    for table, size, options in ((X, 40, {}), (sparse, 13, {}), (sparse, 40, {"max_labels": None})):
        model = BoomerClassifier("label-wise-logistic", n_rules=6, random_state=1, **options).fit(table, labels)
        assert [len(rule.scores) for rule in model.rules_] == [40, *[size] * 5]
    assert BoomerClassifier.paper().max_labels is None


def test_labels_that_move_together_do_not_diverge() -> None:
    rng = np.random.default_rng(0)
    vectors = (rng.random((20, 200)) < 0.09).astype(int)
    table = rng.normal(size=(2000, 5))
    labels = vectors[np.argmax(table @ rng.normal(size=(5, 20)), axis=1)]
    losses: list[float] = []
    model = BoomerClassifier(n_rules=15, random_state=1, callbacks=lambda progress: losses.append(progress.loss))
    assert model.fit(table, labels).loss_.name == "joint-logistic"
    assert max(losses) == losses[0]


def test_few_examples_are_sampled_in_full() -> None:
    assert find_max_samples("auto", 20_000) is None
    assert [find_max_samples("auto", n) for n in (20_001, 400_000, 2 * 10**6)] == [20_000, 20_000, 100_000]
    assert [find_max_samples(given, 10**6) for given in (None, 5, 0.5)] == [None, 5, 0.5]


def test_settings_are_those_of_the_numbers_that_auto_stands_for() -> None:
    assert learn().rules_ == learn(loss="joint-logistic", learning_rate=1 / 15, max_samples=None).rules_


def test_the_loss_is_told() -> None:
    assert learn().loss_.name == "joint-logistic"
    assert learn(known_vectors=False).loss_.name == "label-wise-logistic"
    assert learn(class_weight="balanced").loss_.name == "label-wise-logistic"
    assert learn(loss="example-wise-logistic").loss_.name == "example-wise-logistic"
    incomplete = np.where(np.arange(3) == np.arange(80)[:, None] % 3, np.nan, Y)
    assert BoomerClassifier(n_rules=3).fit(X, incomplete).loss_.name == "label-wise-logistic"
    assert BoomerClassifier(n_rules=3).fit(X, Y.sum(axis=1)).loss_.name == "joint-logistic"


def test_too_many_label_vectors_are_learned_label_by_label(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = Examples(X, Y, np.ones(80), None)
    assert choose_loss(examples, 40).name == "joint-logistic"
    assert choose_loss(examples, 41).name == "label-wise-logistic"  # they hardly repeat
    monkeypatch.setattr(sizing, "MOST_CELLS", 80 * 30)
    assert choose_loss(examples, 30).name == "joint-logistic"
    assert choose_loss(examples, 31).name == "label-wise-logistic"
    classes = Examples(X, np.eye(60, dtype=int)[np.arange(80) % 60], np.ones(80), None)
    assert choose_loss(classes, 30).name == "joint-logistic"


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


def test_label_vectors_that_hardly_repeat_are_not_decided_among() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(60, 4))
    labels = (table @ rng.normal(size=(4, 12)) + rng.normal(size=(60, 12)) > 0.5).astype(int)
    options: dict[str, Any] = {"loss": "label-wise-logistic", "n_rules": 20, "random_state": 1, "decode": "f1"}
    model, among, free = (
        BoomerClassifier(**options, known_vectors=known).fit(table, labels) for known in ("auto", True, False)
    )
    assert len(among.label_vectors_) > 30
    assert len(model.label_vectors_) == 0
    np.testing.assert_array_equal(model.predict(table), free.predict(table))
    assert (model.predict(table) != among.predict(table)).any()
    with pytest.raises(ValueError, match="vectors hardly repeat; known_vectors=True keeps"):
        model.predict_joint(table)
    repeated = BoomerClassifier(**options).fit(table, labels[np.arange(60) % 20])
    assert len(repeated.label_vectors_) == 20
    whole = BoomerClassifier(**{**options, "loss": "example-wise-logistic"}).fit(table, labels)
    assert len(whole.label_vectors_) > 30


def test_examples_with_unknown_labels_do_not_hide_that_label_vectors_hardly_repeat() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(60, 4))
    labels = (table @ rng.normal(size=(4, 12)) + rng.normal(size=(60, 12)) > 0.5).astype(float)
    labels[:50, 0] = np.nan  # ten complete examples, all different
    model = BoomerClassifier("label-wise-logistic", n_rules=5, random_state=1).fit(table, labels)
    assert len(model.label_vectors_) == 0


def test_label_vectors_stay_known_when_few_examples_go_on() -> None:
    rng = np.random.default_rng(1)
    table, labels = rng.normal(size=(200, 4)), rng.integers(0, 2, size=(200, 4))
    model = BoomerClassifier("label-wise-logistic", n_rules=5, random_state=1, warm_start=True).fit(table, labels)
    assert len(model.label_vectors_) == 16
    model.set_params(n_rules=6).fit(table[:10], labels[:10])
    assert len(model.label_vectors_) == 16


def test_label_vectors_may_hardly_repeat_with_more_labels_than_examples() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(30, 4))
    labels = (table @ rng.normal(size=(4, 50)) > 2).astype(int)
    model = BoomerClassifier(n_rules=5, random_state=1).fit(table, labels)
    assert model.loss_.name == "label-wise-logistic"
    assert len(model.label_vectors_) == 0
    classes = BoomerClassifier(n_rules=5, random_state=1).fit(table, np.eye(50, dtype=int)[:30])
    assert classes.loss_.name == "joint-logistic"
