"""The label vector of largest expected F-measure is the one that trying all lengths finds, and soon."""

import time
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from pyboomer.predicting.decoding import decode_by_f1, find_label_vectors, joint_probabilities, share_out
from pyboomer.predicting.fmeasure import find_nodes, weigh_independent, weigh_known

RNG = np.random.default_rng(5)


def count_known(joint: Any, vectors: Any) -> tuple[Any, Any]:
    """P(y_k = 1, |y| = s) for all sizes s from 1 to K, shape (n, K, K), and P(y is empty)."""
    length, K = vectors.sum(axis=1), vectors.shape[1]
    shares = np.stack([joint[:, length == s] @ vectors[length == s] for s in range(1, K + 1)], axis=2)
    return shares, joint[:, length == 0].sum(axis=1)


def count_independent(p: Any) -> tuple[Any, Any]:
    """The same for independent labels: one after another is counted of the others."""
    n, K = p.shape
    shares = np.empty((n, K, K))
    for k in range(K):
        others = np.zeros((n, K))
        others[:, 0] = 1.0
        for j in set(range(K)) - {k}:
            q = p[:, j, None]
            others[:, 1:] = others[:, 1:] * (1 - q) + others[:, :-1] * q
            others[:, :1] *= 1 - q
        shares[:, k] = p[:, k, None] * others
    return shares, np.prod(1 - p, axis=1)


def try_all_lengths(shares: Any, empty: Any) -> tuple[Any, Any]:
    """General F-measure maximisation as it is written: w of all labels and lengths, sorted; and the best vectors."""
    n, K, _ = shares.shape
    lengths = np.arange(1, K + 1)
    w = np.einsum("nks,sr->nrk", shares, 2.0 / (lengths[:, None] + lengths))
    order = np.argsort(-w, axis=2, kind="stable")
    expected = np.cumsum(np.take_along_axis(w, order, 2), axis=2)[:, lengths - 1, lengths - 1]
    best = expected.argmax(axis=1)
    chosen = np.argsort(order[np.arange(n), best], axis=1) <= best[:, None]
    chosen[empty >= expected[np.arange(n), best]] = False
    return w, chosen


@pytest.mark.parametrize("n_labels", [1, 2, 5, 8, 9, 17, 40])
@pytest.mark.parametrize(("scale", "shift"), [(0.3, 0), (1, -2), (3, 0), (8, -3)])
def test_the_best_vector_and_what_labels_add_are_those_of_all_lengths(n_labels: int, scale: float, shift: int) -> None:
    f = scale * RNG.normal(size=(20, n_labels)) + shift
    w, best = try_all_lengths(*count_independent(expit(f)))
    np.testing.assert_array_equal(decode_by_f1(f, None), best)
    for length in (1, n_labels):
        np.testing.assert_allclose(weigh_independent(f, length), w[:, length - 1], rtol=1e-11)
    for share in (0.1, 0.5):
        vectors = find_label_vectors((RNG.random((50, n_labels)) < share).astype(np.uint8), np.ones(50))[0]
        joint = joint_probabilities(f, vectors)
        w, best = try_all_lengths(*count_known(joint, vectors))
        np.testing.assert_array_equal(decode_by_f1(f, vectors), best)
        if vectors.any():
            _, shares = next(share_out(f, vectors))
            np.testing.assert_allclose(weigh_known(shares, n_labels), w[:, -1], rtol=1e-11, atol=1e-300)


def test_of_equal_labels_and_lengths_the_first_is_taken() -> None:
    f = np.array([[0.5, 2.0, 2.0, -4.0], [-1e13, -1e13, -1e13, -1e13], [1e13, 1e13, 1e13, 1e13], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(decode_by_f1(f, None), try_all_lengths(*count_independent(expit(f)))[1])
    vectors = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=np.uint8)
    joint = joint_probabilities(f, vectors)
    np.testing.assert_array_equal(decode_by_f1(f, vectors), try_all_lengths(*count_known(joint, vectors))[1])


@pytest.mark.parametrize("n_labels", [8, 200, 4000])
def test_the_nodes_integrate_all_powers_that_occur(n_labels: int) -> None:
    t, weight, _ = find_nodes(n_labels)
    for degree in {0, 1, 2, n_labels // 2, n_labels, 2 * n_labels}:
        assert weight @ t**degree * (degree + 1) == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("known", [False, True])
def test_thousands_of_labels_are_decoded_in_no_time(known: bool) -> None:
    f = 2 * RNG.normal(size=(10, 4000)) - 6
    vectors = find_label_vectors((RNG.random((300, 4000)) < 0.002).astype(np.uint8), np.ones(300))[0]
    begin = time.process_time()
    best = decode_by_f1(f, vectors if known else None)
    assert time.process_time() - begin < 1.5  # trying all lengths takes K times the room
    assert best.any(axis=1).all()
