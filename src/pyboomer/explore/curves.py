"""A curve shows how models get better with their size.

That of training has measures of a model's first 1, 2, ... rules, on some data. Nothing is fitted again: the scores of
the first rules are those of the model as it was when it had no more. So the number of rules can be chosen afterwards,
by any measure. That of sizes has the losses of models that were made smaller in several ways.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.explore.judging import is_classifier, make_judge
from pyboomer.rules.frames import import_pandas

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator


TRAIN, TEST = "train", "held out"
POINTS = 60  # of a curve, by default; denser where there are few rules
OF_LABELS = ("loss", "hamming_loss", "subset_zero_one_loss", "example_f1")
OF_TARGETS = ("loss", "r2")


@dataclass(frozen=True, eq=False, repr=False)
class TrainingCurve:
    """Measures of a model's first rules.

    Attributes
    ----------
    n_rules : array of shape (P,)
        The numbers of rules at which the model was measured, ascending.
    values : mapping from str to mapping from str to array of shape (P,)
        For each data set, "train" and "held out", the values of each measure.
    larger_is_better : mapping from str to bool

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.curves import training_curve
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(digits.X, digits.Y)
    >>> curve = training_curve(clf, digits.X, digits.Y, at=[1, 10, 50])
    >>> curve
    <TrainingCurve of loss, hamming_loss, subset_zero_one_loss, example_f1: 1 to 50 rules>
    >>> curve.find_best("loss")
    50
    """

    n_rules: NDArray[np.int64]
    values: Mapping[str, Mapping[str, Array]]
    larger_is_better: Mapping[str, bool]

    def __repr__(self) -> str:
        return f"<TrainingCurve of {', '.join(self.larger_is_better)}: 1 to {self.n_rules[-1]} rules>"

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per number of rules, a column per data set and measure."""
        pd = import_pandas("to_frame")
        columns = {(data, name): own for data, measures in self.values.items() for name, own in measures.items()}
        return pd.DataFrame(columns, index=pd.Index(self.n_rules, name="n_rules"))

    def find_best(self, measure: str = "loss") -> int:
        """Return the least number of rules with which a measure is best, on held-out data if there are any."""
        if measure not in self.larger_is_better:
            raise ValueError(f"the curve has no {measure!r}, only {', '.join(self.larger_is_better)}")
        values = self.values[TEST if TEST in self.values else TRAIN][measure]
        return int(self.n_rules[np.argmax(values) if self.larger_is_better[measure] else np.argmin(values)])


@dataclass(frozen=True, eq=False, repr=False)
class SizeCurve:
    """The losses of small models made from a large one, by the number of conditions they may have.

    Attributes
    ----------
    n_conditions : array of shape (P,)
        How many conditions all rules of a model may have together, ascending.
    losses : mapping from str to array of shape (P,)
        The mean loss of the models of each kind: "cut", "refitted", "distilled".
    n_rules : mapping from str to array of shape (P,)
        How many rules they have.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.explore.curves import SizeCurve
    >>> losses = {"cut": np.array([1.9, 1.6]), "refitted": np.array([1.7, 1.4]), "distilled": np.array([1.2, 0.9])}
    >>> n_rules = {"cut": np.array([14, 27]), "refitted": np.array([14, 27]), "distilled": np.array([21, 43])}
    >>> curve = SizeCurve(np.array([50, 100]), losses, n_rules)  # or that of pyboomer.editing.size_curve
    >>> curve
    <SizeCurve of cut, refitted, distilled models: 50 to 100 conditions>
    >>> curve.to_frame()["distilled"]
                  loss  n_rules
    n_conditions
    50             1.2       21
    100            0.9       43
    """

    n_conditions: NDArray[np.int64]
    losses: Mapping[str, Array]
    n_rules: Mapping[str, NDArray[np.int64]]

    def __repr__(self) -> str:
        first, last = self.n_conditions[[0, -1]].tolist()
        return f"<SizeCurve of {', '.join(self.losses)} models: {first} to {last} conditions>"

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per number of conditions, a column per kind of model and for its loss and rules."""
        pd = import_pandas("to_frame")
        columns: dict[tuple[str, str], Any] = {(way, "loss"): self.losses[way] for way in self.losses}
        columns |= {(way, "n_rules"): self.n_rules[way] for way in self.n_rules}
        return pd.DataFrame(columns, index=pd.Index(self.n_conditions, name="n_conditions"))


def training_curve(
    model: "RuleEstimator",
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    measures: Sequence[Any] | None = None,
    at: Iterable[int] | None = None,
) -> TrainingCurve:
    """Measure the first rules of a fitted model on training data and, if given, on held-out data.

    Parameters
    ----------
    model : fitted estimator
    X, y : examples, usually those of the training
    X_test, y_test : held-out examples, optional
    measures : list of str or scorers, optional
        "loss", names in `pyboomer.metrics.METRICS`, scorers of scikit-learn or their names. By default the loss and the
        losses of the paper, Hamming and subset 0/1, with F1; of a regressor, the loss and R^2.
    at : list of int, optional
        The numbers of rules at which to measure, ascending; by default some 60, more of them where there are few rules.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.curves import training_curve
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(digits.X, digits.Y)
    >>> curve = training_curve(clf, digits.X, digits.Y, measures=["hamming_loss"], at=[1, 10, 50])
    >>> curve.values["train"]["hamming_loss"].round(3).tolist()
    [0.357, 0.188, 0.081]
    """
    fitted = model.get_fitted()
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test must be given together")
    chosen = list(measures) if measures is not None else list(OF_LABELS if is_classifier(model) else OF_TARGETS)
    if not chosen:
        raise ValueError("measures must name at least one measure")
    counts = _choose_counts(len(model.rules_)) if at is None else list(at)
    if not counts:
        raise ValueError("at must have at least one number of rules")
    values: dict[str, Mapping[str, Array]] = {}
    for name, data in {TRAIN: (X, y)}.items() if X_test is None else {TRAIN: (X, y), TEST: (X_test, y_test)}.items():
        examples = fitted.read_examples(*data)
        judges = [make_judge(model, measure, examples) for measure in chosen]
        if len({judge.name for judge in judges}) < len(judges):
            raise ValueError(f"measures must differ, got {', '.join(judge.name for judge in judges)}")
        # the examples are read already: those that do not count are left out
        stages = fitted.stage_scores(examples.matrix, _check_counts(counts, len(model.rules_)))
        points = np.array([[judge.rate(scores) for judge in judges] for scores in stages])
        values[name] = MappingProxyType({judge.name: points[:, i] for i, judge in enumerate(judges)})
        larger = {judge.name: judge.larger_is_better for judge in judges}
    return TrainingCurve(np.array(counts, dtype=np.int64), MappingProxyType(values), MappingProxyType(larger))


def _choose_counts(n_rules: int) -> list[int]:
    if n_rules <= POINTS:
        return list(range(1, n_rules + 1))
    return np.unique(np.geomspace(1, n_rules, POINTS).round().astype(int)).tolist()


def _check_counts(counts: list[int], n_rules: int) -> list[int]:
    whole = all(isinstance(n, int | np.integer) for n in counts)
    if not whole or any(a >= b for a, b in pairwise([0, *counts, n_rules + 1])):
        raise ValueError(f"at must ascend from 1 to at most {n_rules}, the number of rules; got {counts}")
    return [int(n) for n in counts]
