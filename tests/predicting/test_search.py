"""The search finds the known vector that looking at all of them finds, however many there are."""

import time
from typing import Any

import numpy as np
import pytest

from pyboomer.losses import example_wise_logistic
from pyboomer.losses.squared import example_wise_squared_error, example_wise_squared_hinge
from pyboomer.predicting import search
from pyboomer.predicting.decoding import decode_by_loss, decode_by_probability, find_label_vectors
from pyboomer.rules.precision import TIE

RNG = np.random.default_rng(7)


def make_vectors(n: int, n_labels: int, share: float) -> Any:
    return find_label_vectors((RNG.random((n, n_labels)) < share).astype(np.uint8), np.ones(n))[0]


def look_at_all(scores: Any, vectors: Any, loss: Any) -> Any:
    """The first vector of least loss, but for ties."""
    losses = np.stack([loss.value(np.broadcast_to(2.0 * y - 1, scores.shape), scores) for y in vectors], axis=1)
    least = losses.min(axis=1, keepdims=True)
    return vectors[np.argmax(losses <= least + TIE * np.minimum(least, 1.0), axis=1)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BLOCK", 16)
    monkeypatch.setattr(search, "ROWS", 30)


LOSSES = [example_wise_logistic, example_wise_squared_error, example_wise_squared_hinge]


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("n_labels", [3, 12, 60])
def test_the_vector_found_is_that_of_looking_at_all(n_labels: int, share: float) -> None:
    vectors = make_vectors(400, n_labels, share)
    for scale in (0.0, 0.3, 2.0, 30.0):
        scores = scale * (RNG.normal(size=(70, n_labels)) - 0.5)
        for loss in LOSSES:
            np.testing.assert_array_equal(decode_by_loss(scores, vectors, loss), look_at_all(scores, vectors, loss))
        bias = np.log(RNG.random(len(vectors)))
        for b in (0.0, bias, 100 * bias):
            best = (scores @ vectors.T.astype(float) + b).argmax(axis=1)
            np.testing.assert_array_equal(decode_by_probability(scores, vectors, b), vectors[best])


def test_of_vectors_that_cost_the_same_the_first_is_found_wherever_it_is() -> None:
    vectors = make_vectors(400, 12, 0.3)
    scores = RNG.choice([-2.0, 0.0, 1.0], size=(200, 12))  # so that many costs are equal, whole numbers
    best = (scores @ vectors.T.astype(float)).argmax(axis=1)
    np.testing.assert_array_equal(decode_by_probability(scores, vectors), vectors[best])
    for loss in LOSSES:
        np.testing.assert_array_equal(decode_by_loss(scores, vectors, loss), look_at_all(scores, vectors, loss))


def test_scores_of_all_sizes_are_no_obstacle() -> None:
    vectors = make_vectors(400, 8, 0.4)
    scores = RNG.choice([0.0, 1e-5, -1.0, 3.0, -40.0, 299.0, -301.0, 1e5, -1e300], size=(200, 8))
    exponents = np.where(vectors == 1, -scores[:, None, :], scores[:, None, :]).max(axis=2)
    chosen = np.where(decode_by_loss(scores, vectors, example_wise_logistic) == 1, -scores, scores).max(axis=1)
    assert (chosen <= exponents.min(axis=1) + np.log(8) + 1e-9).all()
    best = (np.clip(scores, -1e12, 1e12) @ vectors.T.astype(float)).max(axis=1)
    found = (np.clip(scores, -1e12, 1e12) * decode_by_probability(scores, vectors)).sum(axis=1)
    np.testing.assert_allclose(found, best, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_the_least_of_large_losses_is_found_though_no_other_counts_as_equal(loss: Any) -> None:
    vectors = make_vectors(50, 12, 0.4)
    for scale in (1e5, 1e6, 1e8):
        scores = scale * RNG.normal(size=(300, 12))
        losses = np.stack([loss.value(np.broadcast_to(2.0 * y - 1, scores.shape), scores) for y in vectors], axis=1)
        found = loss.value(2.0 * decode_by_loss(scores, vectors, loss) - 1, scores)
        np.testing.assert_allclose(found, losses.min(axis=1), rtol=1e-12)


def test_most_vectors_are_never_looked_at_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    vectors = make_vectors(50_000, 30, 0.3)
    scores = RNG.normal(size=(200, 30))
    looked_at, evaluate = [], search._look_at

    def count(start: int, rows: Any, *rest: Any) -> None:
        looked_at.append(len(rows))
        evaluate(start, rows, *rest)

    monkeypatch.setattr(search, "_look_at", count)
    begin = time.process_time()
    decode_by_loss(scores, vectors, example_wise_logistic)
    assert sum(looked_at) * search.BLOCK < 0.1 * len(scores) * len(vectors)
    assert time.process_time() - begin < 1.0
