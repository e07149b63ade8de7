"""Conditions that exclude nobody go: rules are shorter, and cover the same training examples."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier
from pyboomer.columns.binned import bin_columns
from pyboomer.columns.needless import find_heirs
from pyboomer.columns.sorted import sort_columns
from pyboomer.columns.sparse import sort_stored
from pyboomer.learning import training
from pyboomer.reference import ReferenceRule, drop_needless
from pyboomer.rules.operators import EQUAL, OPERATORS

N_FEATURES, NOMINAL = 5, {4: (0.0, 1.0, 2.0)}


def draw_data(rng: np.random.Generator, n: int) -> np.ndarray:
    X = rng.integers(0, 4, (n, N_FEATURES)).astype(float)
    X[:, 4] = rng.integers(0, 3, n)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def draw_body(rng: np.random.Generator) -> list[tuple[int, int, float]]:
    features = rng.integers(0, N_FEATURES, rng.integers(0, 7)).tolist()
    return [
        (f, int(rng.integers(2, 4)), float(rng.integers(0, 3)))
        if f in NOMINAL
        else (f, int(rng.integers(0, 2)), rng.integers(0, 3) + 0.5)
        for f in features
    ]


@pytest.mark.parametrize("kind", ["sorted", "sparse", "binned"])
def test_what_is_dropped_is_what_the_reference_drops(kind: str) -> None:
    rng = np.random.default_rng(1)
    dropped = 0
    for n in (64, 100):
        X = draw_data(rng, n)
        bodies = [draw_body(rng) for _ in range(200)]
        conditions = np.array([condition for body in bodies for condition in body])
        offsets = np.cumsum([0, *map(len, bodies)])
        if kind == "sorted":
            columns: Any = sort_columns(X, NOMINAL)
        elif kind == "sparse":
            columns = sort_stored(sp.csc_array(X), NOMINAL)
        else:  # thresholds are numbers of bins there
            columns, edges = bin_columns(X, NOMINAL, 255)
            for condition in conditions:
                if condition[1] < EQUAL:
                    condition[2] = np.searchsorted(edges[int(condition[0])], condition[2])
        heirs = find_heirs(columns, n, conditions, offsets)
        for body, start in zip(bodies, offsets.tolist(), strict=False):
            named = tuple((f, OPERATORS[operator], value) for f, operator, value in body)
            shares = tuple(rng.random(len(body)).tolist())
            expected = drop_needless(ReferenceRule(named, np.zeros(1), shares=shares), X)
            own = heirs[start : start + len(body)] - start
            kept = np.flatnonzero(own == np.arange(len(body)))
            assert [named[c] for c in kept] == list(expected.body)
            added = np.array(shares)
            for c in np.flatnonzero(own != np.arange(len(body))):
                added[own[c]] += added[c]
            np.testing.assert_array_equal(added[kept], expected.shares)
            dropped += len(body) - len(kept)
    assert dropped > 200


def test_scores_of_what_was_learned_from_stay_the_same_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    Y = (np.nan_to_num(X[:, :3]) + rng.normal(size=(200, 3)) / 2 > 0).astype(int)
    options: dict[str, Any] = {"loss": "example-wise-logistic", "learning_rate": 0.1, "max_conditions": None}
    model = BoomerClassifier(n_rules=100, random_state=1, **options)
    short = model.fit(X, Y).rules_
    scores = model.decision_function(X)
    again = BoomerClassifier(n_rules=50, random_state=1, warm_start=True, **options).fit(X, Y)
    again.set_params(n_rules=100).fit(X, Y)
    assert again.rules_ == short  # learned in two steps, the first of which has dropped conditions already
    monkeypatch.setattr(training, "find_heirs", lambda *told: np.arange(len(told[2])))
    full = model.fit(X, Y).rules_
    assert len(short.condition_features) < len(full.condition_features)
    np.testing.assert_array_equal(model.decision_function(X), scores)
    np.testing.assert_array_equal(short.coverage, full.coverage)
    own = np.add.reduceat(short.condition_shares, short.condition_offsets[1:-1])
    np.testing.assert_allclose(own, 1.0)  # what was dropped has left its share to others


def test_a_condition_on_a_missing_value_excludes_its_example() -> None:
    X = np.array([[1.0, 1.0], [1.0, np.nan], [5.0, 5.0]])
    conditions, offsets = np.array([[1, 0, 3.0], [0, 0, 3.0]]), np.array([0, 2])
    assert find_heirs(sort_columns(X, {}), 3, conditions, offsets).tolist() == [0, 1]
    assert find_heirs(sort_columns(X[[0, 2]], {}), 2, conditions, offsets).tolist() == [1, 1]
