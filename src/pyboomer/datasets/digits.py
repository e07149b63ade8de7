"""The built-in example: handwritten digits, labelled with the segments of a display that shows them.

Real data with strong dependence between its labels, and rules that can be drawn on the pixels; no file, no network.
"""

from __future__ import annotations

import numpy as np

from pyboomer.datasets.dataset import Dataset

#: The lit segments of each digit, in the usual lettering: a on top, then clockwise to f, and g in the middle.
SEGMENTS = ("abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg")


def load_digits7() -> Dataset:
    """Load scikit-learn's 8 x 8 digits with the segments of a seven-segment display as labels.

    Returns
    -------
    Dataset
        1797 examples; 64 features `pixel_r_c`, the ink from 0 to 16 in row r and column c, counted from the top left;
        labels `a` to `g`, in ten distinct combinations.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    lit = np.array([[letter in segments for letter in "abcdefg"] for segments in SEGMENTS], dtype=np.int8)
    return Dataset(
        X=np.ascontiguousarray(digits.data, dtype=np.float64),
        Y=lit[digits.target],
        feature_names=tuple(f"pixel_{r}_{c}" for r in range(8) for c in range(8)),
        label_names=tuple("abcdefg"),
        name="digits7",
    )
