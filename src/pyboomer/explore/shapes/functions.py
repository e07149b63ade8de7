"""A shape is what rules say of an example by the value of one feature: steps, with a score for each label.

Rules that test one feature, by one condition or several, add up to a shape of it; rules that test two features to a
shape of the pair, a grid of steps; rules that test none to the intercept. With one condition per rule this is the whole
model, an additive one, and exactly so:

    scores = intercept + sum over features of  shape(value of the feature)

Longer rules are the `rest`. A missing value meets no condition, so its step is one of its own.

These are the rules, added up. But rules on several features say something of each of them alone, and examples X, which
tell how often values occur, allow to say what (a functional analysis of variance):

- Of a pair, the additive function that is nearest to it by least squares over X is moved to its two features; given
  either value, what is left is 0 on average ("purification", Lengerich et al. 2020).
- Of a longer rule, whether it covers an example is predicted by least squares from whether each of its features would
  let it; this is moved to these features, and `rest` is what is left.
- Shapes are centred: they are 0 on average, and the intercept is the mean score.

The sums stay what they are. Importance is the standard deviation of a shape over X. Without X, it is the sum of the
standard deviations of its rules, sqrt(p (1 - p)) |score| where p is the share of the training examples covered: at
least that of the shape, and the same if its rules agree.

Features, pairs and the rest have the shares

    sum over labels of cov(part, score)  /  sum over labels of var(score)

of the scores over X. By variance, because it adds up to 1, does not depend on how a shape is cut into rules, and takes
what cancels out for nothing. Without X, they are the shares of all importance, where a rule on two features counts as
pairwise, though most of what it says may be additive.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pyboomer.arrays import Array
from pyboomer.explore.shapes.steps import Steps
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.frames import import_pandas
from pyboomer.rules.names import find_all
from pyboomer.rules.precision import TIE
from pyboomer.rules.text import format_count, show_line

OVERALL, EXAMPLES = "(overall)", "(examples)"  # names of columns: in brackets, so that they are not taken for labels


@dataclass(frozen=True, eq=False, repr=False)
class FeatureShape:
    """What rules say of an example by the value of one feature. It can be called: `shape(values)` gives (N, K) scores.

    Attributes
    ----------
    steps : Steps
    values : array of shape (len(steps), K)
        The score of each step for each label.
    n_rules : int
        How many rules it is made of.
    n_examples : array of shape (len(steps),), or None
        How many of the examples X are in each step, if these are known.
    importance : array of shape (K,)
        The importance for each label.
    label_names : tuple of str

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, max_conditions=1, random_state=1).fit(X, Y)
    >>> shape = clf.shape_functions(X)["pixel_2_5"]
    >>> shape
    <FeatureShape of pixel_2_5: 3 steps of 5 rules>
    >>> bool(shape([16.0])[0, 1] > shape([0.0])[0, 1])  # ink at the upper right speaks for segment b
    True
    """

    steps: Steps
    values: Array
    n_rules: int
    n_examples: Array | None
    importance: Array
    label_names: tuple[str, ...]

    def __repr__(self) -> str:
        return show_line(f"<FeatureShape of {self.name}: {_count_parts(len(self.steps) - 1, self.n_rules)}>")

    def __call__(self, values: ArrayLike) -> Array:
        """The scores of examples with these values of the feature."""
        return self.values[self.steps.find(self.steps.read(values))]

    @property
    def name(self) -> str:
        """The name of the feature."""
        return self.steps.name

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per step; a column per label, after the number of examples if it is known."""
        pd = import_pandas("to_frame")
        counted = [] if self.n_examples is None else [self.n_examples]
        names = [*([] if self.n_examples is None else [EXAMPLES]), *self.label_names]
        index = pd.Index(self.steps.describe(), name=self.name)
        return pd.DataFrame(np.column_stack([*counted, self.values]), index=index, columns=names)


@dataclass(frozen=True, eq=False, repr=False)
class PairShape:
    """What rules say of an example by the values of two features; it can be called with both of them.

    Attributes
    ----------
    steps : pair of Steps
    values : array of shape (len(steps[0]), len(steps[1]), K)
    n_rules, n_examples, importance, label_names : as of `FeatureShape`
        `n_examples` is a grid, too.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, max_conditions=2, random_state=1).fit(X, Y)
    >>> pair = clf.shape_functions(X).pairs[0]
    >>> len(pair.steps)
    2
    >>> pair([0.0], [16.0]).shape
    (1, 7)
    """

    steps: tuple[Steps, Steps]
    values: Array
    n_rules: int
    n_examples: Array | None
    importance: Array
    label_names: tuple[str, ...]

    def __repr__(self) -> str:
        n_steps = (len(self.steps[0]) - 1) * (len(self.steps[1]) - 1)
        return show_line(f"<PairShape of {self.name}: {_count_parts(n_steps, self.n_rules)}>")

    def __call__(self, first: ArrayLike, second: ArrayLike) -> Array:
        """The scores of examples with these values of the two features."""
        one, two = self.steps
        return self.values[one.find(one.read(first)), two.find(two.read(second))]

    @property
    def name(self) -> str:
        """The names of both features."""
        return f"{self.steps[0].name} × {self.steps[1].name}"

    def to_frame(self, label: str | int) -> Any:
        """The grid of a label as a pandas DataFrame."""
        pd = import_pandas("to_frame")
        (k,) = find_all("label", label, self.label_names)[:1]
        rows, columns = (pd.Index(steps.describe(), name=steps.name) for steps in self.steps)
        return pd.DataFrame(self.values[:, :, k].copy(), index=rows, columns=columns)


def _count_parts(n_steps: int, n_rules: int) -> str:
    return f"{format_count(n_steps, 'step')} of {format_count(n_rules, 'rule')}"


@dataclass(frozen=True, eq=False, repr=False)
class ShapeFunctions:
    """A model as a sum: intercept, a shape for each feature, one for each pair of features, and longer rules.

    Attributes
    ----------
    intercept : array of shape (K,)
    features : tuple of FeatureShape
        The most important one, over all labels, first; so are the pairs.
    pairs : tuple of PairShape
    rest : RuleEnsemble
        The rules that test more than two features and, with X, rules that take off what the shapes have of them.
    shares : dict of float
        What part of the scores is "additive", "pairwise" and "more".
    by : {"examples", "coverage"}
        What importance and shares go by.
    label_names : tuple of str

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, max_conditions=1, random_state=1).fit(X, Y)
    >>> shapes = clf.shape_functions(X)
    >>> shapes.shares
    {'additive': 1.0, 'pairwise': 0.0, 'more': 0.0}
    >>> shapes.rank("b")[0].name
    'pixel_2_5'
    >>> total = shapes.intercept + sum(shape(X[shape.name]) for shape in shapes.features)
    >>> abs(total - clf.decision_function(X)).max() < 1e-9
    np.True_
    """

    intercept: Array
    features: tuple[FeatureShape, ...]
    pairs: tuple[PairShape, ...]
    rest: RuleEnsemble
    shares: dict[str, float]
    by: str
    label_names: tuple[str, ...]

    def __repr__(self) -> str:
        parts = ", ".join(f"{100 * share:.3g} % {name}" for name, share in self.shares.items() if abs(share) > TIE)
        counts = f"{format_count(len(self.features), 'feature')}, {format_count(len(self.pairs), 'pair')}"
        return f"<ShapeFunctions of {counts}: {parts}>"

    def __getitem__(self, key: Any) -> FeatureShape | PairShape:
        """The shape of a feature, by its name or index, or of two."""
        schema = self.rest.schema
        if not isinstance(key, tuple):
            (feature,) = schema.find_all([key])
            if feature not in self._features:
                raise ValueError(f"no rule is about feature {schema.names[feature]!r} alone")
            return self._features[feature]
        first, second = schema.find_all(key) if len(key) == 2 else (-1, -1)
        if first == second:
            raise ValueError(f"two features make a pair, got {key!r}")
        if (first, second) in self._pairs:
            return self._pairs[first, second]
        if (second, first) not in self._pairs:
            names = f"{schema.names[first]!r} and {schema.names[second]!r}"
            raise ValueError(f"no rule is about features {names} and no other")
        other = self._pairs[second, first]
        counts = None if other.n_examples is None else other.n_examples.T
        return replace(other, steps=other.steps[::-1], values=other.values.swapaxes(0, 1), n_examples=counts)

    @cached_property
    def _features(self) -> dict[int, FeatureShape]:
        return {shape.steps.feature: shape for shape in self.features}

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], PairShape]:
        return {(pair.steps[0].feature, pair.steps[1].feature): pair for pair in self.pairs}

    def rank(self, label: str | int) -> tuple[FeatureShape | PairShape, ...]:
        """The shapes that say something of a label, the most important one first."""
        (k,) = find_all("label", label, self.label_names)[:1]
        shapes: list[FeatureShape | PairShape] = [*self.features, *self.pairs]
        return tuple(sorted((shape for shape in shapes if shape.importance[k]), key=lambda s: -s.importance[k]))

    def to_frame(self) -> Any:
        """The importance of all shapes as a pandas DataFrame: "(overall)", which is their sum, and each label."""
        pd = import_pandas("to_frame")
        shapes: list[FeatureShape | PairShape] = [*self.features, *self.pairs]
        table = np.array([shape.importance for shape in shapes]).reshape(len(shapes), len(self.label_names))
        index = pd.Index([shape.name for shape in shapes], name="shape", dtype=object)
        frame = pd.DataFrame(np.column_stack([table.sum(axis=1), table]), index, [OVERALL, *self.label_names])
        return frame.iloc[np.argsort(-table.sum(axis=1), kind="stable")]
