"""What the known label vectors say of labels is what their probabilities add up to, one by one."""

import time
from typing import Any

import numpy as np
import pytest

from pyboomer.predicting.calibration import Calibration, Curve
from pyboomer.predicting.decoding import (
    NO_CURVE,
    decode_by_f1,
    find_label_vectors,
    joint_probabilities,
    marginal_probabilities,
    share_out,
)

RNG = np.random.default_rng(7)


def draw_vectors(n: int, n_labels: int, share: float) -> Any:
    return find_label_vectors((RNG.random((n, n_labels)) < share).astype(np.uint8), np.ones(n))[0]


@pytest.mark.parametrize("n", [1, 7, 8, 19])
@pytest.mark.parametrize(("n_labels", "share"), [(1, 0.5), (6, 0.3), (40, 0.1)])
@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (3, -2), (200, 0), (200, 100), (1e13, 0)])
def test_shares_are_sums_of_the_probabilities_of_vectors(
    n: int, n_labels: int, share: float, scale: float, shift: float
) -> None:
    terms, vectors = scale * RNG.normal(size=(n, n_labels)) + shift, draw_vectors(60, n_labels, share)
    bias = np.log(RNG.random(len(vectors))) if scale < 1e6 else 0.0  # beside what is larger, it would be rounded
    curve = Curve((0.01, 0.1, 0.1, 0.7), (0.001, 0.2, 0.3, 0.9))
    for calibration in (None, Calibration((), curve)):
        joint = joint_probabilities(terms, vectors, bias)
        points = NO_CURVE
        if calibration is not None:
            joint, points = calibration.scale_joint(joint), np.array([curve.x, curve.y])
        _, shares = next(share_out(terms, vectors, bias, points))
        size = vectors.sum(axis=1)
        assert list(shares.sizes) == sorted(set(size.tolist()))
        for i, s in enumerate(shares.sizes):
            np.testing.assert_allclose(shares.of_sizes[:, i], joint[:, size == s].sum(axis=1), rtol=1e-9, atol=1e-100)
            of_labels = joint[:, size == s] @ vectors[size == s]
            np.testing.assert_allclose(shares.of_labels[:, i], of_labels, rtol=1e-9, atol=1e-100)
        np.testing.assert_allclose(shares.of_none, joint[:, size == 0].sum(axis=1), rtol=1e-9, atol=1e-100)


def test_there_may_be_no_examples_and_a_single_vector() -> None:
    vectors = np.zeros((1, 3), dtype=np.uint8)
    assert decode_by_f1(np.empty((0, 3)), vectors).shape == (0, 3)
    np.testing.assert_array_equal(decode_by_f1(np.ones((2, 3)), vectors), np.zeros((2, 3)))
    np.testing.assert_array_equal(marginal_probabilities(np.zeros((2, 3)), 1 - vectors), np.ones((2, 3)))


def test_a_hundred_thousand_known_vectors_are_decoded_in_no_time() -> None:
    vectors, terms = draw_vectors(100_000, 50, 0.2), RNG.normal(size=(400, 50)) - 2
    decode_by_f1(terms[:1], vectors[:5])  # compiles
    begin = time.process_time()
    decode_by_f1(terms, vectors)
    assert time.process_time() - begin < 0.8  # products of sparse matrices took 2 seconds
