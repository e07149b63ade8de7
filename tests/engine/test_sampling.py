"""Draws are pure functions of (seed, rule, step), and as random as they claim to be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare, poisson

from pyboomer import BoomerClassifier
from pyboomer.data.stratification import group_examples
from pyboomer.engine.sampling import (
    NO_STRATA,
    Strata,
    count_examples,
    count_features,
    draw_examples,
    draw_few,
    fill_with_draw,
    make_draw,
)

seeds = st.integers(0, 2**31 - 2)
numbers = st.integers(0, 10_000)


def bootstrap(seed: int, rule: int, n: int) -> NDArray[np.float64]:
    counts = np.full(n, 99.0)  # what was there before must not matter
    draw_examples(seed, rule, n, NO_STRATA, counts)
    return counts


def draw_features(seed: int, rule: int, step: int, n_features: int, size: int) -> NDArray[np.int64]:
    draw = make_draw(n_features, size)
    fill_with_draw(seed, rule, step, draw)
    return draw.drawn


@given(seeds, numbers, st.integers(1, 200))
def test_a_bootstrap_draws_as_many_examples_as_there_are(seed: int, rule: int, n: int) -> None:
    counts = bootstrap(seed, rule, n)
    assert counts.sum() == n
    assert (counts >= 0).all()
    assert (counts == np.round(counts)).all()


@given(seeds, numbers, st.integers(1, 200), st.integers(1, 50))
def test_few_examples_are_drawn_as_many_are(seed: int, rule: int, n: int, size: int) -> None:
    counts, drawn, bits, weight = np.empty(n), np.zeros(n), np.zeros(n // 64 + 1, dtype=np.uint64), np.arange(n) % 3.0
    weights, rows = np.empty(size), np.empty(size, dtype=np.uint32)
    draw_examples(seed, rule, size, NO_STRATA, counts)
    n_drawn = draw_few(seed, rule, size, weight, drawn, bits, rows, weights)
    np.testing.assert_array_equal(rows[:n_drawn], np.flatnonzero(counts * weight))
    np.testing.assert_array_equal(weights[:n_drawn], (counts * weight)[rows[:n_drawn]])
    assert not bits.any()
    assert not drawn.any()


def test_bootstrap_counts_are_roughly_poisson() -> None:
    n = 20_000
    counts = np.concatenate([bootstrap(7, rule, n) for rule in range(1, 6)])
    observed = np.bincount(np.minimum(counts, 5).astype(int), minlength=6)
    expected = np.append(poisson.pmf(range(5), 1), poisson.sf(4, 1)) * len(counts)
    assert chisquare(observed, expected).pvalue > 1e-4


def test_every_example_is_drawn_equally_often() -> None:
    counts = sum(bootstrap(3, rule, 50) for rule in range(4000))
    assert chisquare(counts).pvalue > 1e-4


@given(seeds, numbers, st.integers(1, 50), st.integers(1, 60), st.integers(1, 60))
def test_drawn_features_are_distinct_and_ascending(seed: int, rule: int, step: int, n_features: int, size: int) -> None:
    features = draw_features(seed, rule, step, n_features, size)
    assert len(features) == min(size, n_features)
    assert (np.diff(features) > 0).all()
    assert features[0] >= 0
    assert features[-1] < n_features


@pytest.mark.parametrize(("n_features", "size"), [(10, 3), (72, 7), (5, 4)])
def test_features_are_drawn_uniformly(n_features: int, size: int) -> None:
    draws = [draw_features(1, rule, step, n_features, size) for rule in range(2000) for step in range(1, 4)]
    # counts of draws without replacement vary less than multinomial ones: the statistic shrinks by (L - m) / (L - 1)
    observed = np.bincount(np.concatenate(draws), minlength=n_features)
    statistic = chisquare(observed).statistic * (n_features - 1) / (n_features - size)
    assert abs(statistic - (n_features - 1)) < 5 * np.sqrt(2 * (n_features - 1))


def test_pairs_of_features_are_drawn_uniformly() -> None:
    draws = np.array([draw_features(2, rule, 1, 6, 2) for rule in range(15_000)])
    observed = np.bincount(draws[:, 0] * 6 + draws[:, 1], minlength=36)
    assert chisquare(observed[observed > 0]).pvalue > 1e-4
    assert (observed > 0).sum() == 15


@given(seeds, numbers, st.integers(1, 20))
def test_a_draw_depends_on_seed_rule_and_step_alone(seed: int, rule: int, step: int) -> None:
    first = draw_features(seed, rule, step, 1000, 20), bootstrap(seed, rule, 40)
    for other in range(3):  # draws in between, as of other chunks or threads
        draw_features(seed + other, rule, step, 30, 5)
        bootstrap(seed, rule + other, 10)
    np.testing.assert_array_equal(first[0], draw_features(seed, rule, step, 1000, 20))
    np.testing.assert_array_equal(first[1], bootstrap(seed, rule, 40))


@given(seeds, numbers, st.integers(1, 20))
def test_another_seed_rule_or_step_gives_another_draw(seed: int, rule: int, step: int) -> None:
    draw = tuple(draw_features(seed, rule, step, 100_000, 20))
    assert tuple(draw_features(seed + 1, rule, step, 100_000, 20)) != draw
    assert tuple(draw_features(seed, rule + 1, step, 100_000, 20)) != draw
    assert tuple(draw_features(seed, rule, step + 1, 100_000, 20)) != draw
    counts = bootstrap(seed, rule, 200)
    assert (bootstrap(seed + 1, rule, 200) != counts).any()
    assert (bootstrap(seed, rule + 1, 200) != counts).any()


@pytest.mark.parametrize(("n_features", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (72, 7), (294, 9), (1001, 10)])
def test_the_papers_number_of_features_is_drawn(n_features: int, size: int) -> None:
    # floor(log2(L - 1) + 1): L - 1 = 2, 8, 71, 293, 1000 lie in [2, 4), [8, 16), [64, 128), [256, 512), [512, 1024)
    assert count_features("log2", n_features) == size


@pytest.mark.parametrize("power", range(1, 31))
def test_the_number_of_features_steps_exactly_after_powers_of_two(power: int) -> None:
    assert count_features("log2", 2**power) == power
    assert count_features("log2", 2**power + 1) == power + 1


@pytest.mark.parametrize(
    ("max_features", "size"), [(None, 20), (5, 5), (50, 20), (0.5, 10), (1.0, 20), (0.001, 1), (1, 1)]
)
def test_max_features_may_be_none_a_number_or_a_fraction(max_features: int | float | None, size: int) -> None:
    assert count_features(max_features, 20) == size


# --- Other samples of examples ----------------------------------------------------------------------------------------


def sample(seed: int, rule: int, size: int, n: int, strata: Strata = NO_STRATA) -> NDArray[np.float64]:
    counts = np.full(n, np.nan)
    draw_examples(seed, rule, size, strata, counts)
    return counts


def one_group(n: int) -> Strata:
    return Strata(np.arange(n, dtype=np.uint32), np.array([n]))


@given(st.integers(0, 2**31 - 1), st.integers(1, 1000), st.integers(1, 60), st.data())
def test_a_sample_without_replacement_has_its_size(seed: int, rule: int, n: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, n))
    counts = sample(seed, rule, size, n, one_group(n))
    assert set(counts) <= {0.0, 1.0}
    assert counts.sum() == size
    np.testing.assert_array_equal(counts, sample(seed, rule, size, n, one_group(n)))


def test_a_sample_with_replacement_may_be_smaller_or_larger() -> None:
    assert sample(1, 1, 7, 30).sum() == 7
    assert sample(1, 1, 70, 30).sum() == 70


def test_every_example_is_drawn_equally_often_without_replacement() -> None:
    shares = sum(sample(3, rule, 20, 50, one_group(50)) for rule in range(4000)) / 4000
    np.testing.assert_allclose(shares, 0.4, atol=0.04)


@given(st.integers(0, 2**31 - 1), st.integers(1, 100), st.integers(1, 200), st.integers(1, 6), st.floats(0.05, 1))
def test_each_stratum_has_its_share(seed: int, rule: int, n: int, k: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, k)) < 0.3).astype(np.uint8)
    size = count_examples(share, n, replace=False)
    for by in ("label-wise", "example-wise"):
        strata = group_examples(Y, by)
        assert sorted(strata.examples.tolist()) == list(range(n))
        counts = sample(seed, rule, size, n, strata)
        assert counts.sum() == size
        begin = 0
        for end in strata.ends:
            members = strata.examples[begin:end]
            assert abs(counts[members].sum() - len(members) * size / n) <= 1
            begin = end


def test_groups_are_label_vectors_or_rarest_labels() -> None:
    Y = np.array([[1, 0], [1, 1], [0, 0], [1, 0], [0, 1]], dtype=np.uint8)  # the second label is the rarer one
    by_vector = group_examples(Y, "example-wise")
    assert [group.tolist() for group in np.split(by_vector.examples, by_vector.ends[:-1])] == [[2], [4], [0, 3], [1]]
    by_label = group_examples(Y, "label-wise")
    assert [group.tolist() for group in np.split(by_label.examples, by_label.ends[:-1])] == [[1, 4], [0, 3], [2]]


@pytest.mark.parametrize(
    ("given", "n", "replace", "size"),
    [(None, 30, True, 30), (None, 30, False, 20), (0.5, 30, False, 15), (70, 30, True, 70), (70, 30, False, 30)],
)
def test_the_size_of_a_sample(given: Any, n: int, replace: bool, size: int) -> None:
    assert count_examples(given, n, replace) == size


@pytest.mark.parametrize("sampling", ["with-replacement", "without-replacement", "label-wise", "example-wise"])
def test_every_kind_of_sample_gives_the_rules_of_the_reference(
    variant: dict[str, Any], sampling: str, check_oracle: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    Y = np.where(X[:, :3] + rng.normal(size=(60, 3)) > 0, 1, -1)
    strata = NO_STRATA if sampling == "with-replacement" else group_examples((Y == 1).astype(np.uint8), sampling)
    check_oracle(X, Y, n_rules=20, n_samples=25, strata=strata, **variant)


@pytest.mark.parametrize(
    "sampling", ["with-replacement", "without-replacement", "stratified-label-wise", "stratified-example-wise"]
)
def test_every_kind_of_sample_learns(sampling: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4))
    Y = (X[:, :3] > 0).astype(int)
    model = BoomerClassifier(n_rules=200, sampling=sampling, max_samples=0.4, random_state=1).fit(X, Y)
    assert model.score(X, Y) > 0.9
    everyone = BoomerClassifier(n_rules=20, bootstrap=False, random_state=1).fit(X, Y)
    all_of_them = BoomerClassifier(n_rules=20, sampling="without-replacement", max_samples=1.0, random_state=1).fit(
        X, Y
    )
    assert all_of_them.rules_ == everyone.rules_
