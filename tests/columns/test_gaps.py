"""Printed thresholds are short, and make the same rules of the training examples as the exact ones."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier, Condition, Rule
from pyboomer.datasets import load_dataset
from pyboomer.editing import compact, insert_rule, replace_rules
from pyboomer.loading import load_model
from pyboomer.predicting.scores import find_covered
from pyboomer.rules.digits import FEWEST_DIGITS
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.text import NO_DIGITS


def read_again(rules: RuleEnsemble) -> RuleEnsemble:
    """The rules as they are read from what is printed of them."""
    again = rules[:0]
    for rule in rules:
        again = insert_rule(again, Rule.parse(rule.to_text(None, None)))
    return again


def assert_same_coverage(clf: BoomerClassifier, X: Any) -> None:
    matrix = clf.get_fitted().read_matrix(X)
    printed, exact = (find_covered(rules, matrix) for rules in (read_again(clf.rules_), clf.rules_))
    for t, (a, b) in enumerate(zip(printed, exact, strict=True)):
        assert a.tolist() == b.tolist(), clf.rules_[t].to_text()


def make_data(seed: int = 0, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.random(n),
            1e6 + rng.random(n),  # the first seven digits are the same
            rng.integers(0, 3, n),
            np.where(rng.random(n) < 0.3, np.nan, rng.standard_normal(n) * 1e-12),
            rng.choice(np.nextafter(1.0, [0.0, 1.0, 2.0]), n),  # nothing is closer than these
            rng.standard_normal(n) * 1e200,
        ]
    )
    Y = np.column_stack([X[:, 0] > 0.5, X[:, 1] > 1e6 + 0.4, X[:, 4] > 1, X[:, 5] > 0]).astype(int)
    return X, (Y + (rng.random(Y.shape) < 0.2)) % 2


@pytest.mark.parametrize("options", [{}, {"max_bins": 20}, {"categorical_features": [2]}, {"head": "single"}])
def test_printed_rules_cover_the_same_examples(options: dict[str, Any]) -> None:
    X, Y = make_data()
    clf = BoomerClassifier(n_rules=150, random_state=1, max_conditions=5, **options).fit(X, Y)
    assert_same_coverage(clf, X)


def test_printed_rules_of_sparse_data_cover_the_same_examples() -> None:
    X, Y = make_data()
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0
    clf = BoomerClassifier(n_rules=100, random_state=1).fit(sp.csr_array(X), Y)
    assert_same_coverage(clf, sp.csr_array(X))


def test_words_of_sparse_data_are_there_or_not() -> None:
    rng = np.random.default_rng(1)
    X = np.where(rng.random((200, 4)) < 0.7, 0.0, rng.random((200, 4)) + 0.5)
    X[:, 1] *= rng.choice([-1.0, 1.0], 200)  # zero is not the least value
    Y = (np.abs(X[:, :2]) > [[0.0, 0.9]]).astype(int)
    rules = BoomerClassifier(n_rules=30, random_state=1).fit(sp.csr_array(X), Y).rules_
    without = rules.condition_digits == NO_DIGITS
    below = rules.condition_values < 0.5
    np.testing.assert_array_equal(without, below & (rules.condition_features != 1))
    assert (without & (rules.condition_operators == 0)).any()
    assert "none of: x0" in rules.to_text()
    dense = BoomerClassifier(n_rules=30, random_state=1).fit(X, Y).rules_
    assert (dense.condition_digits > 0).all()


def test_digits_stay_few() -> None:
    digits = load_dataset("digits7")
    clf = BoomerClassifier(n_rules=100, random_state=1).fit(digits.X + np.pi, digits.Y)
    counts = np.bincount(clf.rules_.condition_digits)
    assert counts[FEWEST_DIGITS] > 0.9 * counts.sum()
    assert len(counts) <= 8


def test_digits_are_those_of_all_data_learned_from(tmp_path: Any) -> None:
    X, Y = make_data()
    clf = BoomerClassifier(n_rules=30, random_state=1, warm_start=True).fit(X[:50], Y[:50])
    clf.set_params(n_rules=60).fit(X, Y)
    assert_same_coverage(clf, X)
    clf.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.rules_.condition_digits, clf.rules_.condition_digits)
    assert str(loaded.rules_) == str(clf.rules_)


def test_rules_without_digits_are_printed_in_full() -> None:
    X, Y = make_data()
    content = BoomerClassifier(n_rules=20, random_state=1).fit(X, Y).rules_.to_dict()
    del content["condition_digits"]
    rules = RuleEnsemble.from_dict(content)
    thresholds = {float(c.value) for rule in rules for c in rule.body}
    assert thresholds >= {float(c.value) for rule in read_again(rules) for c in rule.body}


def test_a_tightened_condition_keeps_its_own_digits() -> None:
    coarse, fine = Condition(0, "<=", 5.0, "x", digits=4), Condition(0, "<=", 3.123456789, "x", digits=10)
    rule = Rule((coarse, fine), (0,), (1.0,), ("y",))
    clf = BoomerClassifier(n_rules=2).fit([[1.0], [4.0]], [[0, 1], [1, 0]])
    rules = RuleEnsemble.from_rules([rule], clf.rules_.schema, clf.rules_.label_names)
    assert compact(replace_rules(clf, rules)).rules_[0].body_text() == "x0 <= 3.123456789"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog"])
def test_printed_rules_of_benchmark_data_cover_the_same_examples(name: str, benchmark_data: Any) -> None:
    data = benchmark_data(name)
    nominal = list(data.nominal_features)
    clf = BoomerClassifier(n_rules=200, random_state=1, categorical_features=nominal).fit(data.X, data.Y)
    assert_same_coverage(clf, data.X)
