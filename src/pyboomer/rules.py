"""A rule is a body, the conjunction of conditions an example must meet, and a head, the scores it then adds to labels.

`Condition` and `Rule` are for people: small values that can be printed and called. `RuleEnsemble` holds the rules of a
model in a few flat arrays, which compiled code reads and writes, and hands them out as `Rule` values on demand.
"""

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyboomer.names import find_all
from pyboomer.ruletext import (
    SHOWN_RULES,
    describe_body,
    describe_head,
    format_count,
    format_threshold,
    render_rules,
    tabulate,
)

OPERATORS = ("<=", ">", "==", "!=")  # stored as codes 0..3; the first two test numeric, the last two nominal features
FIRST_NOMINAL_OPERATOR = 2

Category = str | int | float | bool

_DTYPES: dict[str, type[np.generic]] = {
    "condition_offsets": np.int64,  # all conditions, or all scores, of a model may outnumber an int32
    "condition_features": np.int32,
    "condition_operators": np.int8,
    "condition_values": np.float64,  # thresholds are compared in float64 at fit and at predict
    "head_offsets": np.int64,
    "head_labels": np.int32,
    "head_scores": np.float64,
    "coverage": np.float64,  # weights need not be integers
    "gain": np.float64,
    "condition_digits": np.int8,
}
_PER_CONDITION = ("condition_features", "condition_operators", "condition_values", "condition_digits")
_PER_SCORE = ("head_labels", "head_scores")
_PER_RULE = ("coverage", "gain")
_OPTIONAL = ("condition_digits",)  # the first models had no such thing


@dataclass(frozen=True)
class Condition:
    """A test of one feature, such as `at1 <= 0.3` or `weather == sunny`.

    `value` is a threshold for the operators `<=` and `>` of numeric features, a category for `==` and `!=` of nominal
    ones; `name` is the name of the feature. A threshold is printed with `digits` significant digits, 0 meaning all.
    """

    feature: int
    operator: str
    value: Category
    name: str
    digits: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"operator must be one of {', '.join(OPERATORS)}, got {self.operator!r}")

    def __str__(self) -> str:
        return f"{self.name} {self.operator} {self.value_text()}"

    def value_text(self) -> str:
        """The category, or the threshold with as many digits as matter."""
        return str(self.value) if self.is_nominal else format_threshold(float(self.value), self.digits)

    @property
    def is_nominal(self) -> bool:
        """Whether the condition tests a nominal feature."""
        return OPERATORS.index(self.operator) >= FIRST_NOMINAL_OPERATOR

    def covers(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Tell which values of the feature (of a nominal one the categories, not their codes) meet the condition.

        A missing value (NaN, None) meets no condition, whichever its operator.
        """
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

    `body` has all conditions in the order they were learned; if it is empty, the rule covers every example. The head
    adds `scores` to `labels` (indices, ascending), whose names are `label_names`. `coverage` is the number (sum of
    weights) of the training examples covered, `gain` the gain of the head on the training data.
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

    @property
    def head(self) -> dict[str, float]:
        """The score of each label in the head, by the label's name."""
        return dict(zip(self.label_names, self.scores, strict=True))

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Read a rule as it is printed or typed: `Rule.parse("IF x1 <= 3 THEN beach +0.5")`; see `pyboomer.parsing`."""
        from pyboomer.parsing import parse_rule  # which imports this module

        return parse_rule(text)

    def body_text(self) -> str:
        """Describe the body; the conditions on one feature are merged: `0.2 < x <= 0.7`."""
        return describe_body(self.body)

    def head_text(self, max_labels: int | None = 8) -> str:
        """Describe the head: `beach +0.8, urban -0.4`; scores of zero are left out.

        A head with more than `max_labels` labels shows only (up to) five, those with the largest absolute scores
        first, and the number of the others; None shows all.
        """
        return describe_head(self.label_names, self.scores, max_labels)

    def to_text(self, max_labels: int | None = 8) -> str:
        """Describe the rule in one line; a rule with an empty body reads `DEFAULT beach -1.2, urban -0.9`."""
        head = self.head_text(max_labels)
        return f"IF {self.body_text()} THEN {head}" if self.body else f"DEFAULT {head}"


@dataclass(frozen=True, eq=False, repr=False)
class RuleEnsemble:
    """The rules of a model, in the order they were learned.

    Index it for a `Rule`; a slice, a list of indices or a mask gives the ensemble of the rules selected. All T rules
    lie one after another in flat arrays, which are copied, checked and made read-only. The first rule of a fitted
    model is the default rule, which has an empty body.

    What is selected remembers where it came from: `order` has the number of each rule in the whole ensemble, and
    `share` its share of the gain of all rules there. Any other change makes another ensemble, which is numbered anew.

    Parameters
    ----------
    condition_offsets, head_offsets : int64 arrays of length T + 1
        The conditions, and the scores, of rule t are those from `offsets[t]` up to `offsets[t + 1]`.
    condition_features, condition_operators : int32 and int8 arrays
        Index of the feature that each condition tests, and position of its operator in `OPERATORS`.
    condition_values : float64 array
        Its threshold, or the code of its category: a position in `categories[feature]`.
    head_labels, head_scores : int32 and float64 arrays
        Index of the label that each score is for, ascending within a rule, and the score.
    coverage, gain : float64 arrays of length T
        See `Rule`.
    feature_names, label_names : tuple of str
        Names of all features and labels of the data.
    categories : mapping from int to tuple, optional
        The categories of each nominal feature, by its index.
    condition_digits : int8 array, optional
        How many significant digits of a threshold are printed; 0 for all of them.
    """

    condition_offsets: NDArray[np.int64]
    condition_features: NDArray[np.int32]
    condition_operators: NDArray[np.int8]
    condition_values: NDArray[np.float64]
    head_offsets: NDArray[np.int64]
    head_labels: NDArray[np.int32]
    head_scores: NDArray[np.float64]
    coverage: NDArray[np.float64]
    gain: NDArray[np.float64]
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    categories: Mapping[int, tuple[Category, ...]] = field(default_factory=dict)
    condition_digits: NDArray[np.int8] = None  # type: ignore[assignment]
    order: NDArray[np.int64] = field(init=False)
    share: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        if self.condition_digits is None:
            object.__setattr__(self, "condition_digits", np.zeros(len(self.condition_features), dtype=np.int8))
        frozen: dict[str, Any] = {name: _frozen_array(name, getattr(self, name)) for name in _DTYPES}
        for name in ("feature_names", "label_names"):
            frozen[name] = _plain_names(name, getattr(self, name))
        frozen["categories"] = _plain_categories(self.categories, len(frozen["feature_names"]))
        for name, value in frozen.items():
            object.__setattr__(self, name, value)  # the only way to set a field of a frozen dataclass
        _check_layout(self)
        _check_nominal(self)
        with np.errstate(over="ignore"):
            total = float(self.gain.sum())
        share = self.gain / total if 0 < total < np.inf else np.zeros(len(self))
        self._remember(np.arange(len(self)), share)

    def _remember(self, order: NDArray[np.int64], share: NDArray[np.float64]) -> None:
        for name, values in ("order", order), ("share", share):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.coverage)

    @overload
    def __getitem__(self, key: int | np.integer) -> Rule: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | NDArray[Any]) -> "RuleEnsemble": ...
    def __getitem__(self, key: Any) -> "Rule | RuleEnsemble":
        if isinstance(key, int | np.integer):
            if not -len(self) <= key < len(self):
                raise IndexError(f"rule {key} is out of range, the ensemble has {len(self)} rules")
            return self._rule(int(key) % len(self))
        rules = np.arange(len(self))[key]
        if rules.ndim != 1:
            raise IndexError("rules are selected by an integer, a slice, or a one-dimensional list or array")
        return self._select(rules)

    def __iter__(self) -> Iterator[Rule]:
        return (self._rule(t) for t in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RuleEnsemble):
            return NotImplemented
        # Lists of categories are compared as text: Python holds 1, 1.0 and True to be equal.
        said = [name for name in _DTYPES if name != "condition_digits"]  # how they are printed makes no difference
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in said) and (
            self.feature_names == other.feature_names
            and self.label_names == other.label_names
            and repr(self.categories) == repr(other.categories)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays forget when pickled that they are read-only, and a mapping proxy cannot be pickled: construct anew.
        # Fields go by name, so that a later version may have more; version 0.1.0 had them in order: new ones come last.
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        origin = self.order, self.share
        return partial(type(self), **values | {"categories": dict(self.categories)}), (), origin

    def __setstate__(self, origin: tuple[NDArray[np.int64], NDArray[np.float64]]) -> None:
        self._remember(*origin)

    def __repr__(self) -> str:
        sizes = {"rule": len(self), "label": len(self.label_names), "feature": len(self.feature_names)}
        return f"<RuleEnsemble: {', '.join(format_count(size, noun) for noun, size in sizes.items())}>"

    def __str__(self) -> str:
        return self.to_text(max_rules=SHOWN_RULES)

    def _repr_html_(self) -> str:
        return render_rules(self)

    def to_text(self, max_rules: int | None = None, max_labels: int | None = 8) -> str:
        """Describe the rules, one per line: number, weight of the training examples covered, share of all gain, rule.

        `max_rules` shows only the first so many rules; for `max_labels` see `Rule.head_text`.
        """
        return tabulate(self, max_rules, max_labels)

    def to_frame(self) -> Any:
        """Tabulate the rules as a pandas DataFrame.

        One row per rule; columns `body` and `head` (text), `n_conditions`, `n_labels` (with a score other than zero),
        `coverage`, `gain`, `share` (of all gain) and `order`, the number of the rule, which is also the index. The
        scores themselves are in `head_matrix`.
        """
        pd = import_pandas("to_frame")
        rules = list(self)
        columns = {
            "body": [rule.body_text() for rule in rules],
            "head": [rule.head_text() for rule in rules],
            "n_conditions": np.diff(self.condition_offsets),
            "n_labels": np.array([np.count_nonzero(rule.scores) for rule in rules], dtype=np.int64),
            "coverage": self.coverage.copy(),
            "gain": self.gain.copy(),
            "share": self.share.copy(),
            "order": self.order.copy(),
        }
        return pd.DataFrame(columns, index=pd.Index(self.order.copy(), name="rule"))

    def mentioning(self, *, feature: Any = None, label: Any = None) -> "RuleEnsemble":
        """The rules with a condition on a feature, and with a score (other than zero) for a label.

        Both are given by name or index, or as a list of those, any of which will do.
        """
        wanted = np.ones(len(self), dtype=bool)
        if feature is not None:
            tested = np.isin(self.condition_features, find_all("feature", feature, self.feature_names))
            wanted &= _any_in_rule(self.condition_offsets, tested)
        if label is not None:
            scored = np.isin(self.head_labels, find_all("label", label, self.label_names)) & (self.head_scores != 0)
            wanted &= _any_in_rule(self.head_offsets, scored)
        return self[wanted]

    def by_gain(self) -> "RuleEnsemble":
        """The rules in the order of their gain, the largest first."""
        return self[np.argsort(-self.gain, kind="stable")]

    def head_matrix(self) -> NDArray[np.float64]:
        """Lay out the heads as a dense (T, K) matrix: the score each rule adds to each label."""
        matrix = np.zeros((len(self), len(self.label_names)))
        rules = np.repeat(np.arange(len(self)), np.diff(self.head_offsets))
        matrix[rules, self.head_labels] = self.head_scores
        return matrix

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain dicts and lists that JSON can hold; `from_dict` restores them exactly."""
        arrays = {name: getattr(self, name).tolist() for name in _DTYPES}
        return arrays | {
            "feature_names": list(self.feature_names),
            "label_names": list(self.label_names),
            "categories": {str(feature): list(values) for feature, values in self.categories.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Restore an ensemble from `to_dict`, or from JSON of any origin: everything is checked.

        A ValueError names what is missing, unknown, of the wrong type, out of range or inconsistent.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"rules must be a dict, got {type(data).__name__}")
        expected = [f.name for f in fields(cls) if f.init]
        if missing := [name for name in expected if name not in data and name not in _OPTIONAL]:
            raise ValueError(f"rules lack {', '.join(missing)}")
        if unknown := [key for key in data if key not in expected]:
            raise ValueError(f"rules have unknown keys: {reprlib.repr(unknown)}")
        for name in (name for name in expected if name != "categories" and name in data):
            _check_list(name, data[name], {str} if name not in _DTYPES else {int, float})
        if not isinstance(data["categories"], Mapping):
            raise ValueError(f"categories must be a dict, got {type(data['categories']).__name__}")
        features = {str(feature): feature for feature in range(len(data["feature_names"]))}
        for key, values in data["categories"].items():
            if key not in features:
                raise ValueError(f"categories must have indices of features as keys, got {reprlib.repr(key)}")
            _check_list(f"categories[{key}]", values, {str, int, float, bool})
        return cls(**{**data, "categories": {features[key]: values for key, values in data["categories"].items()}})

    @classmethod
    def from_rules(
        cls,
        rules: Iterable[Rule],
        feature_names: Sequence[str],
        label_names: Sequence[str],
        categories: Mapping[int, Sequence[Category]] | None = None,
    ) -> Self:
        """Build an ensemble of single rules; features and labels are found by their index, not by their name."""
        rules = list(rules)
        conditions = [condition for rule in rules for condition in rule.body]
        nominal = {feature: tuple(values) for feature, values in (categories or {}).items()}
        codes = {(feature, value): code for feature, vs in nominal.items() for code, value in enumerate(vs)}
        for condition in conditions:
            if condition.is_nominal and (condition.feature, condition.value) not in codes:
                raise ValueError(f"{condition}: not one of the categories of feature {condition.feature}")
        arrays: dict[str, Any] = {
            "condition_offsets": np.cumsum([0, *(len(rule.body) for rule in rules)]),
            "condition_features": [c.feature for c in conditions],
            "condition_operators": [OPERATORS.index(c.operator) for c in conditions],
            "condition_values": [codes[c.feature, c.value] if c.is_nominal else c.value for c in conditions],
            "head_offsets": np.cumsum([0, *(len(rule.labels) for rule in rules)]),
            "head_labels": [label for rule in rules for label in rule.labels],
            "head_scores": [score for rule in rules for score in rule.scores],
            "coverage": [rule.coverage for rule in rules],
            "gain": [rule.gain for rule in rules],
            "condition_digits": [c.digits for c in conditions],
        }
        return cls(**arrays, feature_names=tuple(feature_names), label_names=tuple(label_names), categories=nominal)

    def _rule(self, t: int) -> Rule:
        conditions = slice(*self.condition_offsets[t : t + 2].tolist())
        head = slice(*self.head_offsets[t : t + 2].tolist())
        own = (getattr(self, name)[conditions].tolist() for name in _PER_CONDITION)
        body = []
        for feature, code, value, digits in zip(*own, strict=True):
            shown = self.categories[feature][int(value)] if code >= FIRST_NOMINAL_OPERATOR else value
            body.append(Condition(feature, OPERATORS[code], shown, self.feature_names[feature], digits))
        labels = tuple(self.head_labels[head].tolist())
        names = tuple(self.label_names[label] for label in labels)
        scores = tuple(self.head_scores[head].tolist())
        return Rule(tuple(body), labels, scores, names, float(self.coverage[t]), float(self.gain[t]))

    def _select(self, rules: NDArray[np.intp]) -> "RuleEnsemble":
        condition_offsets, conditions = _gather(self.condition_offsets, rules)
        head_offsets, scores = _gather(self.head_offsets, rules)
        positions = {_PER_CONDITION: conditions, _PER_SCORE: scores, _PER_RULE: rules}
        taken = {name: getattr(self, name)[where] for names, where in positions.items() for name in names}
        selected = replace(self, condition_offsets=condition_offsets, head_offsets=head_offsets, **taken)
        selected._remember(self.order[rules], self.share[rules])
        return selected


def join_rules(parts: Sequence[RuleEnsemble]) -> RuleEnsemble:
    """One ensemble of the rules of several, which are about the same features, labels and categories."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in (*_PER_CONDITION, *_PER_SCORE, *_PER_RULE)
    }
    for name in ("condition_offsets", "head_offsets"):
        lengths = np.concatenate([np.diff(getattr(part, name)) for part in parts])
        joined[name] = np.concatenate([[0], np.cumsum(lengths)])
    return replace(parts[0], **joined)


def import_pandas(wanted_by: str) -> Any:
    """Import pandas, or say how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{wanted_by} needs pandas: pip install 'pyboomer[pandas]'") from error
    return pandas


def is_missing(value: Any) -> bool:
    """Tell NaN, None and pandas' NA: all that is not equal to itself, and None."""
    same = value == value
    return value is None or not isinstance(same, bool | np.bool_) or not same


def _gather(offsets: NDArray[np.int64], rules: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the positions of the entries that belong to some rules, and the offsets of these rules among them."""
    lengths = np.diff(offsets)[rules]
    gathered = np.concatenate([[0], np.cumsum(lengths)])
    return gathered, np.repeat(offsets[rules] - gathered[:-1], lengths) + np.arange(gathered[-1])


def _any_in_rule(offsets: NDArray[np.int64], marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rules have a marked entry."""
    counts = np.concatenate([[0], np.cumsum(marked)])[offsets]
    return np.diff(counts) > 0


def _check_list(name: str, values: Any, allowed: set[type]) -> None:
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name} must be a list, got {type(values).__name__}")
    if strange := set(map(type, values)) - allowed:
        kinds = " or ".join(sorted(kind.__name__ for kind in allowed))
        raise ValueError(f"{name} must hold {kinds} only, got {min(kind.__name__ for kind in strange)}")


def _frozen_array(name: str, values: ArrayLike) -> NDArray[Any]:
    wanted = np.dtype(_DTYPES[name])
    try:
        given = np.asarray(values)
    except OverflowError:
        raise ValueError(f"{name} holds a number that is out of range") from None
    if given.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got {given.ndim}")
    if given.size and given.dtype.kind not in ("iu" if wanted.kind == "i" else "iuf"):
        raise ValueError(f"{name} must hold numbers that fit {wanted}, got {given.dtype}")
    array = np.array(given, dtype=wanted)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    if not np.array_equal(array, given):
        raise ValueError(f"{name} holds a number that is out of range")
    array.flags.writeable = False
    return array


def _plain_names(name: str, names: Iterable[Any]) -> tuple[str, ...]:
    names = tuple(names)
    if strange := [value for value in names if not isinstance(value, str)]:
        raise ValueError(f"{name} must be strings, got {reprlib.repr(strange[0])}")
    return tuple(map(str, names))


def _plain_categories(categories: Mapping[int, Iterable[Any]], n_features: int) -> Mapping[int, tuple[Category, ...]]:
    if isinstance(categories, MappingProxyType):  # those of another ensemble
        return categories
    plain = {}
    for feature, given in sorted(categories.items()):
        if not isinstance(feature, int | np.integer) or not 0 <= feature < n_features:
            raise ValueError(f"categories has the key {feature!r}, which is not an index of {n_features} features")
        values = tuple(value.item() if isinstance(value, np.generic) else value for value in given)
        allowed = set(map(type, values)) <= {str, int, float, bool}
        if not allowed or any(type(value) is float and not np.isfinite(value) for value in values):
            raise ValueError(f"categories[{feature}] must be strings, booleans or finite numbers")
        if len(set(values)) < len(values):
            raise ValueError(f"categories[{feature}] must be distinct")
        plain[int(feature)] = values
    return MappingProxyType(plain)


def _check_layout(e: RuleEnsemble) -> None:
    """Check that the arrays fit each other and the names."""
    for first, *others in (_PER_CONDITION, _PER_SCORE, _PER_RULE):
        for name in others:
            n, n_first = len(getattr(e, name)), len(getattr(e, first))
            if n != n_first:
                raise ValueError(f"{name} must have as many entries as {first}, {n_first}, got {n}")
    for name, n in ("condition_offsets", len(e.condition_features)), ("head_offsets", len(e.head_labels)):
        offsets = getattr(e, name)
        if len(offsets) != len(e) + 1:
            raise ValueError(f"{name} must have one entry more than coverage, {len(e) + 1}, got {len(offsets)}")
        if offsets[0] != 0 or offsets[-1] != n or (offsets[1:] < offsets[:-1]).any():
            raise ValueError(f"{name} must rise from 0 to the number of entries, {n}")
    limits = {"condition_features": e.feature_names, "condition_operators": OPERATORS, "head_labels": e.label_names}
    for name, named in limits.items():
        indices = getattr(e, name)
        if ((indices < 0) | (indices >= len(named))).any():
            raise ValueError(
                f"{name} must be below {len(named)} and not negative, got {indices.min()} to {indices.max()}"
            )
    if ((e.condition_digits < 0) | (e.condition_digits > 17)).any():
        raise ValueError("condition_digits must be from 0 to 17")
    if (e.coverage < 0).any():
        raise ValueError("coverage must not be negative")
    falls = e.head_labels[1:] <= e.head_labels[:-1]
    starts = e.head_offsets[(e.head_offsets > 0) & (e.head_offsets < len(e.head_labels))]
    falls[starts - 1] = False  # from one rule to the next they may fall
    if falls.any():
        raise ValueError("head_labels must be ascending within a rule")


def _check_nominal(e: RuleEnsemble) -> None:
    """Check that operators suit their features and that codes are those of categories."""
    n_categories = np.full(len(e.feature_names), -1)  # -1: not nominal
    for feature, categories in e.categories.items():
        n_categories[feature] = len(categories)
    sizes = n_categories[e.condition_features]
    nominal = e.condition_operators >= FIRST_NOMINAL_OPERATOR
    if (nominal != (sizes >= 0)).any():
        raise ValueError("condition_operators must be == or != for features in categories, <= or > for all others")
    codes = e.condition_values[nominal]
    if ((codes < 0) | (codes >= sizes[nominal]) | (codes != np.floor(codes))).any():
        raise ValueError("condition_values of nominal features must be codes, positions in their categories")
