"""An ensemble is the rules of a model, in the order they were learned.

It holds them in a few flat arrays, which compiled code reads and writes, and hands them out as `Rule` values on demand.
"""

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from pyboomer.rules.frames import frame_rules
from pyboomer.rules.names import find_all, plain_names
from pyboomer.rules.operators import EQUAL, OPERATORS
from pyboomer.rules.rule import Condition, Rule
from pyboomer.rules.schema import Categories, Schema
from pyboomer.rules.storage import (
    ABOUT,
    DTYPES,
    KEYS,
    OPTIONAL,
    PER_CONDITION,
    PER_RULE,
    PER_SCORE,
    any_in_rule,
    check_arrays,
    check_list,
    check_nominal,
    frozen_array,
    gather,
)
from pyboomer.rules.text import FEW, SHOWN_RULES, format_count, render_rules, tabulate


@dataclass(frozen=True, eq=False, repr=False)
class RuleEnsemble:
    """The rules of a model, in the order they were learned.

    An index gives a `Rule`. A slice, a list of indices or a mask gives an ensemble of the selected rules. All T rules
    lie one after another in flat arrays, which are copied, checked and made read-only. The first rule of a fitted model
    is the default rule, which has an empty body.

    A selection remembers where it came from: `order` has the number of each rule in the whole ensemble, and `share` its
    share of the gain of all rules. Any other change makes a new ensemble with new numbers.

    Parameters
    ----------
    condition_offsets, head_offsets : int64 arrays of length T + 1
        Rule t has the conditions, and the scores, from `offsets[t]` up to `offsets[t + 1]`.
    condition_features, condition_operators : int32 and int8 arrays
        Index of the feature that each condition tests, and position of its operator in `OPERATORS`.
    condition_values : float64 array
        Its threshold, or the code of its category: a position in `schema.categories[feature]`.
    head_labels, head_scores : int32 and float64 arrays
        Index of the label that each score is for, ascending within a rule, and the score.
    coverage, gain : float64 arrays of length T
        See `Rule`.
    schema : Schema
        The features of the data; `feature_names`, `categories` and `ordinal` are its own.
    label_names : tuple of str
        Names of all labels of the data.
    condition_digits : int8 array, optional
        How many significant digits of a threshold to print; 0 for all of them, -1 for "zero or not"; 32 more
        where it is rounded down.
    condition_shares : float64 array, optional
        The part of the gain of its rule that each condition brought; by default they are equal.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> rules = clf.rules_
    >>> rules
    <RuleEnsemble: 50 rules, 7 labels, 64 features>
    >>> rules[7].body_text()
    'pixel_4_4 <= 0.5 AND pixel_3_4 <= 6 AND pixel_7_3 > 6 AND pixel_3_6 > 0.5'
    >>> len(rules.mentioning(feature="pixel_2_5", label="b"))
    7
    >>> rules.by_gain()[:10].order.tolist()
    [3, 5, 17, 2, 9, 7, 10, 13, 14, 15]
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
    schema: Schema
    label_names: tuple[str, ...]
    condition_digits: NDArray[np.int8] = None  # type: ignore[assignment]
    condition_shares: NDArray[np.float64] = None  # type: ignore[assignment]
    order: NDArray[np.int64] = field(init=False)
    share: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        if self.condition_digits is None:
            object.__setattr__(self, "condition_digits", np.zeros(len(self.condition_features), dtype=np.int8))
        if self.condition_shares is None:
            object.__setattr__(self, "condition_shares", np.ones(len(self.condition_features)))
        frozen = {name: frozen_array(name, getattr(self, name)) for name in DTYPES}
        # the only way to set the fields of a frozen dataclass
        self.__dict__.update(frozen, label_names=plain_names("label_names", self.label_names))
        check_arrays(self)
        check_nominal(self)
        self._remember(np.arange(len(self)), _find_shares(self.gain))

    def _remember(self, order: NDArray[np.int64], share: NDArray[np.float64]) -> None:
        for name, values in ("order", order), ("share", share):
            values.flags.writeable = False
            self.__dict__[name] = values

    def _derive(self, **arrays: NDArray[Any]) -> "RuleEnsemble":
        """Rules in other arrays, which come from those of sound ensembles: nothing is copied or checked again."""
        rules = object.__new__(type(self))
        for array in arrays.values():
            array.flags.writeable = False
        rules.__dict__.update(self.__dict__ | arrays)
        return rules

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of all features."""
        return self.schema.names

    @property
    def categories(self) -> Categories:
        """The categories of each nominal feature, by its index, and the levels of each ordinal one, in their order."""
        return self.schema.categories

    @property
    def ordinal(self) -> tuple[int, ...]:
        """The ordinal features."""
        return self.schema.ordinal

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
        said = [name for name in DTYPES if name not in ABOUT]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in said) and (
            self.schema == other.schema and self.label_names == other.label_names
        )

    def __getstate__(self) -> dict[str, Any]:
        # by name, so that a later version may have more
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # constructed anew: arrays forget when pickled that they are read-only
        self.__init__(**{f.name: state[f.name] for f in fields(self) if f.init and f.name in state})  # type: ignore[misc]
        self._remember(state["order"], state["share"])

    def __repr__(self) -> str:
        sizes = {"rule": len(self), "label": len(self.label_names), "feature": len(self.feature_names)}
        return f"<RuleEnsemble: {', '.join(format_count(size, noun) for noun, size in sizes.items())}>"

    def __str__(self) -> str:
        return self.to_text(max_rules=SHOWN_RULES)

    def _repr_html_(self) -> str:
        return render_rules(self)

    def to_text(
        self, max_rules: int | None = None, max_labels: int | None = FEW, max_conditions: int | None = FEW
    ) -> str:
        """Return the rules as text, one per line: number, training examples covered, share of all gain, rule.

        `max_rules` limits the number of rules. For `max_labels` see `Rule.head_text`, for `max_conditions`
        `Rule.body_text`. The last line has the share of the gain of the rules left out or, for a selection, of the
        rules shown.
        """
        return tabulate(self, max_rules, max_labels, max_conditions)

    def to_frame(self) -> Any:
        """Return the rules as a pandas DataFrame, one row per rule.

        The columns are `body` and `head` (text), `n_conditions`, `n_labels` (with a score other than zero), `coverage`,
        `gain`, `share` (of all gain) and `order`, the number of the rule, which is also the index. `head_matrix` has
        the scores.
        """
        return frame_rules(self)

    def mentioning(self, *, feature: Any = None, label: Any = None) -> "RuleEnsemble":
        """Return the rules with a condition on a feature, and with a score (other than zero) for a label.

        Give a feature or label by name or index. In a list, any of them will do.
        """
        wanted = np.ones(len(self), dtype=bool)
        if feature is not None:
            tested = np.isin(self.condition_features, self.schema.find_all(feature))
            wanted &= any_in_rule(self.condition_offsets, tested)
        if label is not None:
            scored = np.isin(self.head_labels, find_all("label", label, self.label_names)) & (self.head_scores != 0)
            wanted &= any_in_rule(self.head_offsets, scored)
        return self[wanted]

    def about(self, label: Any) -> "RuleEnsemble":
        """Return what the rules say about a label, or several: the same rules without all other scores.

        A rule keeps the part of its gain that these labels have of its scores, by absolute value. `share` is the share
        of all that is gained for these labels. Give labels as in `mentioning`.
        """
        wanted = np.isin(self.head_labels, find_all("label", label, self.label_names)) & (self.head_scores != 0)
        rule = np.repeat(np.arange(len(self)), np.diff(self.head_offsets))
        size = np.abs(self.head_scores)
        own, total = (np.bincount(rule, weights=size * kept, minlength=len(self)) for kept in (wanted, True))
        gain = self.gain * np.divide(own, total, out=np.zeros(len(self)), where=total > 0)
        reduced = self._derive(
            head_offsets=np.append(0, np.cumsum(wanted))[self.head_offsets],
            head_labels=self.head_labels[wanted],
            head_scores=self.head_scores[wanted],
            gain=gain,
            share=_find_shares(gain),
        )
        return reduced[any_in_rule(self.head_offsets, wanted)]

    def top(self, share: float = 0.5) -> "RuleEnsemble":
        """Return the fewest rules that together have this share of the gain, the largest first."""
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, got {share!r}")
        ordered = self.by_gain()
        reached = np.cumsum(np.maximum(ordered.gain, 0.0))
        enough = reached >= share * reached[-1] if len(reached) else reached
        return ordered[: int(np.argmax(enough)) + 1 if enough.any() else len(ordered)]

    def with_digits(self, digits: NDArray[np.int8]) -> "RuleEnsemble":
        """The same rules, with other `condition_digits`: all else has been checked before, and is shared."""
        return self._derive(condition_digits=frozen_array("condition_digits", digits))

    def renumber(self) -> "RuleEnsemble":
        """Return the same rules, numbered from 0, with shares of their own gain."""
        return self._derive(order=np.arange(len(self)), share=_find_shares(self.gain))

    def by_gain(self) -> "RuleEnsemble":
        """Return the rules in the order of their gain, the largest first."""
        return self[np.argsort(-self.gain, kind="stable")]

    def head_matrix(self) -> NDArray[np.float64]:
        """Return the heads as a dense (T, K) matrix: the score that each rule adds to each label."""
        matrix = np.zeros((len(self), len(self.label_names)))
        rules = np.repeat(np.arange(len(self)), np.diff(self.head_offsets))
        matrix[rules, self.head_labels] = self.head_scores
        return matrix

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain dicts and lists, fit for JSON. `from_dict` restores them exactly."""
        arrays = {name: getattr(self, name).tolist() for name in DTYPES}
        return arrays | {
            "feature_names": list(self.feature_names),
            "label_names": list(self.label_names),
            "categories": {str(feature): list(values) for feature, values in self.categories.items()},
            "ordinal": list(self.ordinal),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Restore an ensemble from `to_dict`, or from JSON of any origin. Everything is checked.

        A ValueError names what is missing, unknown, of the wrong type, out of range or inconsistent.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"rules must be a dict, got {type(data).__name__}")
        if missing := [name for name in KEYS if name not in data and name not in OPTIONAL]:
            raise ValueError(f"rules lack {', '.join(missing)}")
        if unknown := [key for key in data if key not in KEYS]:
            raise ValueError(f"rules have unknown keys: {reprlib.repr(unknown)}")
        for name in (name for name in KEYS if name != "categories" and name in data):
            check_list(name, data[name], {int} if name == "ordinal" else {int, float} if name in DTYPES else {str})
        if not isinstance(data["categories"], Mapping):
            raise ValueError(f"categories must be a dict, got {type(data['categories']).__name__}")
        features = {str(feature): feature for feature in range(len(data["feature_names"]))}
        for key, values in data["categories"].items():
            if key not in features:
                raise ValueError(f"categories must have indices of features as keys, got {reprlib.repr(key)}")
            check_list(f"categories[{key}]", values, {str, int, float, bool})
        categories = {features[key]: values for key, values in data["categories"].items()}
        schema = Schema(data["feature_names"], categories, data.get("ordinal", ()))
        arrays = {name: data[name] for name in DTYPES if name in data}
        return cls(**arrays, schema=schema, label_names=data["label_names"])

    @classmethod
    def from_rules(cls, rules: Iterable[Rule], schema: Schema, label_names: Sequence[str]) -> Self:
        """Build an ensemble of single rules. Features and labels go by index, not by name."""
        rules = list(rules)
        conditions = [condition for rule in rules for condition in rule.body]
        codes = {(feature, value): code for feature, vs in schema.categories.items() for code, value in enumerate(vs)}
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
            "condition_shares": [c.share for c in conditions],
        }
        return cls(**arrays, schema=schema, label_names=tuple(label_names))

    def _rule(self, t: int) -> Rule:
        conditions = slice(*self.condition_offsets[t : t + 2].tolist())
        head = slice(*self.head_offsets[t : t + 2].tolist())
        own = (getattr(self, name)[conditions].tolist() for name in PER_CONDITION)
        body = []
        for feature, code, value, digits, share in zip(*own, strict=True):
            shown = self.categories[feature][int(value)] if code >= EQUAL else value
            name, levels = self.schema.names[feature], self.schema.get_levels(feature)
            body.append(Condition(feature, OPERATORS[code], shown, name, digits, levels, share))
        labels = tuple(self.head_labels[head].tolist())
        names = tuple(self.label_names[label] for label in labels)
        scores = tuple(self.head_scores[head].tolist())
        return Rule(tuple(body), labels, scores, names, float(self.coverage[t]), float(self.gain[t]))

    def _select(self, rules: NDArray[np.intp]) -> "RuleEnsemble":
        condition_offsets, conditions = gather(self.condition_offsets, rules)
        head_offsets, scores = gather(self.head_offsets, rules)
        positions = {PER_CONDITION: conditions, PER_SCORE: scores, PER_RULE: rules}
        taken = {name: getattr(self, name)[where] for names, where in positions.items() for name in names}
        origin = {"order": self.order[rules], "share": self.share[rules]}
        return self._derive(condition_offsets=condition_offsets, head_offsets=head_offsets, **taken, **origin)


def join_rules(parts: Sequence[RuleEnsemble]) -> RuleEnsemble:
    """One ensemble of the rules of several, which are about the same features and labels."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in (*PER_CONDITION, *PER_SCORE, *PER_RULE)
    }
    for name in ("condition_offsets", "head_offsets"):
        lengths = np.concatenate([np.diff(getattr(part, name)) for part in parts])
        joined[name] = np.concatenate([[0], np.cumsum(lengths)])
    return parts[0]._derive(**joined).renumber()


def _find_shares(gain: NDArray[np.float64]) -> NDArray[np.float64]:
    """What part of all gain each rule has; 0 where that makes no sense: gains of a file may be anything."""
    with np.errstate(over="ignore"):
        total = float(gain.sum())
        share = gain / total if 0 < total < np.inf else np.zeros(len(gain))
    return share if np.isfinite(share).all() else np.zeros(len(gain))
