"""A rule is a body, the conjunction of conditions an example must meet, and a head, the scores it then adds to labels.

Both are small values for people: they can be printed and called.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyboomer.arrays import is_missing
from pyboomer.rules.operators import EQUAL, OPERATORS
from pyboomer.rules.schema import Category
from pyboomer.rules.text import FEW, NO_DIGITS, describe_body, describe_head, format_threshold, render_rule, show_line


@dataclass(frozen=True)
class Condition:
    """A test of one feature, such as `at1 <= 0.3` or `weather == sunny`.

    `value` is a threshold for `<=` and `>`, a category for `==` and `!=`. `name` is the name of the feature. A
    threshold is printed with `digits` significant digits; 0 means all, -1 means that it only divides zero from larger
    values, and 32 more mean that it is rounded down. An ordinal feature has `levels`, the names of its values in order;
    its threshold is a position among them. `share` is the condition's part of the gain of its rule.

    Examples
    --------
    >>> from pyboomer import Condition
    >>> slow = Condition(feature=0, operator="<=", value=100.0, name="tempo")
    >>> print(slow)
    tempo <= 100
    >>> slow.covers([90, 120, float("nan")])
    array([ True, False, False])
    """

    feature: int
    operator: str
    value: Category
    name: str
    digits: int = field(default=0, compare=False)
    levels: tuple[str, ...] = field(default=(), compare=False)
    share: float = field(default=1.0, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"operator must be one of {', '.join(OPERATORS)}, got {self.operator!r}")

    def __str__(self) -> str:
        return show_line(f"{self.name} {self.operator} {self.value_text()}")

    def value_text(self) -> str:
        """Return the category or level as text, or the threshold with as many digits as matter."""
        if self.levels:
            return self.levels[int(self.value)]
        if isinstance(self.value, str) or self.is_nominal:
            return str(self.value)
        return format_threshold(float(self.value), self.digits)

    @property
    def is_nominal(self) -> bool:
        """Whether the condition tests a nominal feature."""
        return OPERATORS.index(self.operator) >= EQUAL

    @property
    def is_absence(self) -> bool:
        """Whether the condition says that something is absent: zero, where all other values are larger."""
        return self.digits == NO_DIGITS and self.operator == "<="

    def covers(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Return which values of the feature meet the condition; for a nominal feature, pass categories, not codes.

        A missing value (NaN, None) meets no condition. Neither does a value that is not a level.
        """
        if self.levels:
            positions = {level: float(position) for position, level in enumerate(self.levels)}
            given = np.asarray(values, dtype=object)
            values = np.array([positions.get(value, np.nan) for value in given.ravel()]).reshape(given.shape)
        if not self.is_nominal:
            numbers = np.asarray(values, dtype=np.float64)
            threshold = float(self.value)
            return np.asarray(numbers <= threshold if self.operator == "<=" else numbers > threshold)
        given = np.asarray(values, dtype=object)
        wanted = self.operator == "=="
        met = [not is_missing(value) and (value == self.value) == wanted for value in given.ravel()]
        return np.array(met, dtype=np.bool_).reshape(given.shape)


@dataclass(frozen=True)
class Rule:
    """A rule as people read it: `IF at1 <= 0.3 AND at7 > 1.2 THEN beach +0.8, urban -0.4`.

    `body` has the conditions in the order they were learned. If it is empty, the rule covers every example. The head
    adds `scores` to `labels` (indices, ascending) named `label_names`. `coverage` is the number (sum of weights) of
    training examples covered, `gain` the gain of the head on the training data.

    Examples
    --------
    >>> from pyboomer import Rule
    >>> rule = Rule.parse("IF tempo <= 100 AND style == folk THEN calm +0.8, party -0.4")
    >>> print(rule)
    IF tempo <= 100 AND style == folk THEN calm +0.8, party -0.4
    >>> rule.head
    {'calm': 0.8, 'party': -0.4}
    >>> [str(condition) for condition in rule.body]
    ['tempo <= 100', 'style == folk']
    """

    body: tuple[Condition, ...]
    labels: tuple[int, ...]
    scores: tuple[float, ...]
    label_names: tuple[str, ...]
    coverage: float = 0.0
    gain: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.labels) == len(self.scores) == len(self.label_names):
            raise ValueError("labels, scores and label_names must have the same length")

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return render_rule(self)

    @property
    def head(self) -> dict[str, float]:
        """The score of each label in the head, by the label's name."""
        return dict(zip(self.label_names, self.scores, strict=True))

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Read a rule as it is printed or typed: `Rule.parse("IF x1 <= 3 THEN beach +0.5")`.

        Keywords may be in lower case. `x1 < 3` and `x1 >= 3` become `<=` and `>` of the next number below 3.
        """
        from pyboomer.rules.parsing import parse_rule  # which imports this module

        return parse_rule(text)

    def body_text(self, max_conditions: int | None = FEW) -> str:
        """Return the body as text. Conditions on the same feature are merged: `0.2 < x <= 0.7`.

        Absent things, such as words of a text, come last: `none of: cough, fever`. If there are more than
        `max_conditions` tests or absent words, the text names the five that gained most and counts the others; None
        names all.
        """
        return describe_body(self.body, max_conditions)

    def head_text(self, max_labels: int | None = FEW) -> str:
        """Return the head as text: `beach +0.8, urban -0.4`. Scores of zero are left out.

        If there are more than `max_labels` labels, the text names the five with the largest absolute scores and counts
        the others; None names all. At least one score of each sign is shown.
        """
        return describe_head(self.label_names, self.scores, max_labels)

    def to_text(self, max_labels: int | None = FEW, max_conditions: int | None = FEW) -> str:
        """Return the rule in one line. A rule with an empty body reads `DEFAULT beach -1.2, urban -0.9`.

        ``to_text(None, None)`` leaves nothing out, and `Rule.parse` reads it.
        """
        head = self.head_text(max_labels)
        return show_line(f"IF {self.body_text(max_conditions)} THEN {head}" if self.body else f"DEFAULT {head}")
