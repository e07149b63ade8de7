"""What "auto" stands for: settings that depend on how much data there is.

They were measured (docs/results/defaults.md). Few examples are learned slowly, in small steps: what rules have in
common is kept, and what each has by chance averages out. Many examples leave less to chance: steps may be longer, and
a part of the examples is enough to choose conditions by.

| examples | learning rate | examples that conditions are chosen by |
|---|---|---|
| up to 2,500 | 0.05 | as many as there are |
| 10,000 | 0.1 | as many as there are |
| 90,000 and more | 0.3 | 20,000 |
"""

import numpy as np

from pyboomer.data.examples import Examples
from pyboomer.losses import Loss, find_loss

SLOWEST, FASTEST = 0.05, 0.3
SMALL = 2_500  # examples that are learned as slowly as possible
ENOUGH = 20_000  # examples to choose conditions by
MOST_CELLS = 2 * 10**7  # of examples x known label vectors, each of which has a score for each


def find_learning_rate(learning_rate: str | float, n: int) -> float:
    """The rate for n examples: in between, it grows with the square root of their number."""
    if not isinstance(learning_rate, str):
        return float(learning_rate)
    return float(np.clip(SLOWEST * np.sqrt(n / SMALL), SLOWEST, FASTEST))


def find_max_samples(max_samples: str | int | float | None, n: int) -> int | float | None:
    """How many of n examples conditions are chosen by."""
    return (ENOUGH if n > ENOUGH else None) if isinstance(max_samples, str) else max_samples


def choose_loss(examples: Examples, n_vectors: int) -> Loss:
    """The joint loss, unless it takes long, or labels have weights of their own, which it has no use for."""
    weight = examples.label_weight
    weighted = weight is not None and not np.isin(weight, (0, 1)).all()
    if weighted or len(examples.Y) * n_vectors > MOST_CELLS:
        return find_loss("label-wise-logistic")
    return find_loss("joint-logistic")
