"""X in the memory of a GPU is binned there as on the host."""

import numpy as np
import pytest

from pyboomer.columns.binned import bin_columns
from pyboomer.columns.device import bin_device_matrix, copy_to_host, find_device_gaps, is_on_device, read_device_matrix
from pyboomer.compiling.device import NoDevice, import_cupy


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    X[:, 1] = X[:, 1].round()
    X[rng.random(X.shape) < 0.05] = np.nan
    return X


def test_arrays_of_the_host_stay_there(X: np.ndarray) -> None:
    assert not is_on_device(X)
    assert copy_to_host(X) is X
    assert not is_on_device([[1.0]])


@pytest.mark.cuda
def test_bins_and_gaps_are_those_of_the_host(X: np.ndarray) -> None:
    try:
        cupy = import_cupy()
    except NoDevice as error:
        pytest.skip(str(error))
    matrix = read_device_matrix(cupy.asarray(X))
    assert matrix[np.array([2, 5])].shape == (2, 4)
    assert matrix.count_nonzero() == np.count_nonzero(X)
    found, expected = bin_device_matrix(matrix, 32), bin_columns(X, {}, 32)
    np.testing.assert_array_equal(cupy.asnumpy(found.columns.codes), expected.columns.codes)
    for own, other in zip(found.edges, expected.edges, strict=True):
        np.testing.assert_array_equal(own, other)
    thresholds = expected.edges[0][:5]
    below, above = find_device_gaps(matrix, np.zeros(5, dtype=np.int32), thresholds)
    for i, threshold in enumerate(thresholds):
        values = X[~np.isnan(X[:, 0]), 0]
        assert below[i] == values[values <= threshold].max()
        assert above[i] == values[values > threshold].min()
    with pytest.raises(ValueError, match="2D"):
        read_device_matrix(cupy.ones(3))
