"""Needless conditions, found by sets of conditions, are those that all examples together tell."""

import numpy as np
import pytest

from pyboomer.engine.cuda.needless import PATTERN_WORDS, _find_dropped, _list_unproven


def drop_one_by_one(met: np.ndarray) -> list[int]:
    """The plain definition: a condition is dropped if those kept before and all behind exclude all that it excludes."""
    dropped: list[int] = []
    for i in range(met.shape[1]):
        others = [j for j in range(met.shape[1]) if j != i and j not in dropped]
        if not (met[:, others].all(axis=1) & ~met[:, i]).any():
            dropped.append(i)
    return dropped


@pytest.mark.parametrize("seed", range(40))
def test_sets_of_violated_conditions_tell_which_are_needless(seed: int) -> None:
    rng = np.random.default_rng(seed)
    met = rng.random((30, rng.integers(2, 8))) < rng.choice([0.3, 0.6, 0.9])
    met = np.vstack([met, np.arange(met.shape[1]) < met.shape[1] - 1])  # the last condition is needed
    violated = [sum(1 << int(i) for i in np.flatnonzero(~row)) for row in met]
    proven = sum(1 << i for i in range(met.shape[1]) if 1 << i in violated)
    unproven = _list_unproven(proven, met.shape[1])
    words = np.zeros(PATTERN_WORDS, dtype=np.uint64)
    for v in violated:
        if v and all(i in unproven for i in range(met.shape[1]) if v >> i & 1):
            pattern = sum((v >> i & 1) << place for place, i in enumerate(unproven))
            words[pattern >> 6] |= np.uint64(1 << (pattern & 63))
    assert _find_dropped(unproven, words) == drop_one_by_one(met)
