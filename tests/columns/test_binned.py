"""To learn from binned features is to learn from their bin numbers."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyboomer import BoomerClassifier
from pyboomer.columns import binned
from pyboomer.columns.binned import MISSING, bin_columns, find_common, find_edges, list_sampled
from pyboomer.rules.ensemble import RuleEnsemble

Array = NDArray[np.float64]


def make_data(n: int, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(0, 6, size=n)  # few values
    X[:, 2] = rng.integers(0, 4, size=n)  # nominal in the tests that say so
    X[rng.random(X.shape) < 0.05] = np.nan
    scores = np.nan_to_num(np.column_stack([X[:, 0] - X[:, 3], X[:, 1] - 2.5, X[:, 2] - 1.5, X[:, 4] + X[:, 0]]))
    return X, (scores + rng.normal(scale=0.5, size=scores.shape) > 0).astype(int)


def bodies(rules: RuleEnsemble) -> list[list[tuple[int, str]]]:
    return [[(condition.feature, condition.operator) for condition in rule.body] for rule in rules]


@pytest.mark.parametrize("n", [300, 3000], ids=["few examples, swept one by one", "many, swept by bins"])
@pytest.mark.parametrize("nominal", [(), (2,)], ids=["numeric", "nominal"])
@pytest.mark.parametrize(("head", "least"), [("single", 1), ("single", 20), ("multi", 1), (2, 1)])
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_a_binned_fit_is_an_exact_fit_on_the_bin_numbers(
    n: int, nominal: tuple[int, ...], head: Any, least: int, loss: str
) -> None:
    X, Y = make_data(n)
    parameters: dict[str, Any] = {"loss": loss, "head": head, "n_rules": 25, "random_state": 3, "learning_rate": 0.3}
    parameters["min_coverage"] = least
    binned = BoomerClassifier(max_bins=16, categorical_features=list(nominal), **parameters).fit(X, Y)
    categories = dict.fromkeys(nominal, (0, 1, 2, 3))
    codes = bin_columns(X, categories, 16).columns.codes.T.astype(float)
    codes[codes == MISSING] = np.nan
    exact = BoomerClassifier(max_bins=None, categorical_features=list(nominal), **parameters).fit(codes, Y)
    assert bodies(binned.rules_) == bodies(exact.rules_)
    np.testing.assert_array_equal(binned.rules_.coverage, exact.rules_.coverage)
    np.testing.assert_allclose(binned.decision_function(X), exact.decision_function(codes), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("search", ["bound", pytest.param("exact", marks=pytest.mark.slow)])
def test_bins_serve_exact_search_too(search: str) -> None:
    X, Y = make_data(700)
    model = BoomerClassifier(max_bins=8, search=search, n_rules=10, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0


def test_features_of_few_values_lose_nothing() -> None:
    X, Y = make_data(2000)
    X = np.round(X)
    exact, binned = (
        BoomerClassifier(max_bins=bins, n_rules=30, random_state=0).fit(X, Y).rules_ for bins in (None, 255)
    )
    assert bodies(binned) == bodies(exact)
    np.testing.assert_allclose(binned.head_matrix(), exact.head_matrix(), rtol=1e-9, atol=1e-12)


def test_bins_of_a_continuous_feature_hold_about_equally_many_values() -> None:
    values = np.random.default_rng(0).exponential(size=10_000)
    edges = find_edges(values, 50)
    counts = np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)
    assert len(counts) == 50
    assert counts.max() < 2 * len(values) / 50


def test_rows_that_repeat_with_a_period_keep_all_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binned, "SAMPLE", 2000)
    n = 20_000
    X = np.column_stack([np.arange(n) % 2, np.arange(n) % 10, np.arange(n) % 24]).astype(float)
    edges = bin_columns(X, {}, 255).edges
    assert [len(own) for own in edges] == [1, 9, 23]


def test_the_sample_for_edges_does_not_depend_on_where_rows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binned, "SAMPLE", 2000)
    whole = list_sampled(0, 20_000, 20_000)
    assert 1800 < len(whole) < 2200
    parts = [first + list_sampled(first, count, 20_000) for first, count in ((0, 7000), (7000, 1), (7001, 12_999))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert len(list_sampled(0, 3999, 3999)) == 3999


def test_edges_separate_the_values_they_lie_between() -> None:
    assert find_edges(np.array([3.0, 1.0, np.nan, 2.0, 1.0]), 10).tolist() == [1.5, 2.5]
    assert find_edges(np.full(4, 7.0), 10).tolist() == []
    assert find_edges(np.full(4, np.nan), 10).tolist() == []


def test_losses_with_bins_are_close_to_those_without() -> None:
    X, Y = make_data(4000)
    losses = {}
    for bins in (None, 255, 32):
        model = BoomerClassifier(max_bins=bins, n_rules=100, random_state=1).fit(X[:3000], Y[:3000])
        losses[bins] = 1 - model.score(X[3000:], Y[3000:])
    assert abs(losses[255] - losses[None]) < 0.04
    assert abs(losses[32] - losses[None]) < 0.06


def test_auto_uses_bins_only_for_many_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = make_data(600)
    rules = {bins: BoomerClassifier(max_bins=bins, n_rules=5, random_state=0).fit(X, Y).rules_ for bins in (None, 255)}
    assert BoomerClassifier(n_rules=5, random_state=0).fit(X, Y).rules_ == rules[None]
    monkeypatch.setattr("pyboomer.columns.binned.FROM", 500)
    assert BoomerClassifier(n_rules=5, random_state=0).fit(X, Y).rules_ == rules[255]
    assert BoomerClassifier(n_rules=5, random_state=0, search="exact").fit(X, Y).rules_ != rules[255]


def test_bad_requests_for_bins_name_the_culprit() -> None:
    import scipy.sparse as sp

    X, Y = make_data(300)
    with pytest.raises(ValueError, match='max_bins must be None or "auto" for a sparse X, got 8'):
        BoomerClassifier(max_bins=8).fit(sp.csr_array(np.nan_to_num(X)), Y)
    for wrong in (1, 256, 2.5, "many", True):
        with pytest.raises(ValueError, match='max_bins must be None, "auto" or a whole number from 2 to 255'):
            BoomerClassifier(max_bins=wrong).fit(X, Y)  # type: ignore[arg-type]


def test_of_many_categories_the_rarer_ones_share_a_bin_that_no_condition_is_about() -> None:
    rng = np.random.default_rng(0)
    common, rare = rng.integers(0, 260, 3_000), np.arange(1_000, 1_250)
    x = np.concatenate([common, rare])  # 510 categories or so
    Y = np.column_stack([np.isin(x, [1, 2, 3]), x >= 1_000, x % 2]).astype(int)
    X = np.column_stack([x, rng.normal(size=len(x))])
    X[::50, 0] = np.nan
    model = BoomerClassifier(
        "label-wise-logistic", n_rules=40, max_bins=255, categorical_features=[0], max_features=None, random_state=1
    ).fit(X, Y)
    conditions = [condition for rule in model.rules_ for condition in rule.body if condition.feature == 0]
    often = np.flatnonzero(np.bincount(x[~np.isnan(X[:, 0])]) > 1)
    assert len(conditions) > 10
    assert {condition.value for condition in conditions} <= set(often.tolist())
    # rules cover in training what they cover afterwards: categories are what they were before they became bins
    loss = np.log1p(np.exp(-(2 * Y - 1) * model.decision_function(X))).sum(axis=1).mean()
    assert model.training_facts_["loss"] == pytest.approx(loss)


def test_the_commonest_categories_are_those_that_occur_most_often_and_of_equals_the_smaller() -> None:
    column = np.array([3, 3, 1, 1, 1, 0, 2, 2, np.nan, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(find_common(column, 2), [1, 2])
    np.testing.assert_array_equal(find_common(column, 9), [0, 1, 2, 3])
