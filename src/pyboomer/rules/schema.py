"""A schema says what the features are that rules are about: their names, and the categories of those without numbers.

It is made, and checked, once: where a table or a file is read. From there on it goes wherever the rules go.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import isfinite
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.rules.names import find_all, find_name, plain_names, plain_text

Category = str | int | float | bool
Categories = Mapping[int, tuple[Category, ...]]


@dataclass(frozen=True, eq=False)
class Schema:
    """The features of a model.

    Parameters
    ----------
    names : tuple of str
        The names of all features.
    categories : mapping from int to tuple, optional
        The categories of each nominal feature, by its index, and the levels of each ordinal one, in their order.
    ordinal : tuple of int, optional
        The ordinal features: positions of levels are compared with thresholds.
    """

    names: tuple[str, ...]
    categories: Categories = field(default_factory=dict)
    ordinal: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        names = plain_names("feature_names", self.names)
        categories = _plain_categories(self.categories, len(names))
        ordinal = tuple(sorted(set(map(int, self.ordinal))))
        for feature in ordinal:
            if not all(isinstance(level, str) for level in categories.get(feature, (0,))):
                raise ValueError(f"ordinal has feature {feature}, but categories[{feature}] are not strings")
        # the only way to set the fields of a frozen dataclass
        self.__dict__.update(names=names, categories=MappingProxyType(categories), ordinal=ordinal)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        # Categories are compared as text: Python holds 1, 1.0 and True to be equal.
        return self is other or (
            self.names == other.names
            and self.ordinal == other.ordinal
            and repr(self.categories) == repr(other.categories)
        )

    def __getstate__(self) -> dict[str, Any]:
        # plain values by name: a mapping proxy cannot be pickled
        return {"names": self.names, "categories": dict(self.categories), "ordinal": self.ordinal}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @cached_property
    def nominal(self) -> Categories:
        """The categories of the nominal features alone."""
        if not self.ordinal:
            return self.categories
        return MappingProxyType({f: values for f, values in self.categories.items() if not self.is_ordinal(f)})

    @cached_property
    def with_text(self) -> frozenset[int]:
        """The features that have text among their categories, which no array of numbers can hold."""
        return frozenset(f for f, values in self.categories.items() if any(isinstance(value, str) for value in values))

    @cached_property
    def n_categories(self) -> NDArray[np.int64]:
        """How many categories, or levels, each feature has; -1 if it is numeric."""
        counts = np.full(len(self.names), -1, dtype=np.int64)
        features = np.fromiter(self.categories, np.int64, len(self.categories))
        counts[features] = np.fromiter(map(len, self.categories.values()), np.int64, len(self.categories))
        counts.flags.writeable = False
        return counts

    @cached_property
    def without_levels(self) -> "Schema":
        """The features as they are learned from: the ordinal ones are positions, and as good as numeric."""
        return Schema(self.names, self.nominal) if self.ordinal else self

    def find(self, name: str, index: int = -1) -> int:
        """The index of the feature of a name; one that is given decides between equal names."""
        return find_name("feature", name, self.names, index)

    def find_all(self, wanted: Any) -> list[int]:
        """The indices of the features wanted: a name, an index (from the end, if negative), or a list of those."""
        return find_all("feature", wanted, self.names)

    def is_ordinal(self, feature: int) -> bool:
        """Whether a feature is ordinal."""
        return feature in self._ordinal

    @cached_property
    def _ordinal(self) -> frozenset[int]:
        return frozenset(self.ordinal)

    def get_levels(self, feature: int) -> tuple[str, ...]:
        """The levels of an ordinal feature; none if it is not ordinal."""
        return self.categories[feature] if self.is_ordinal(feature) else ()  # type: ignore[return-value]

    def pick_categories(self, features: Iterable[int]) -> dict[int, tuple[Category, ...]]:
        """The categories of some features, by their positions among these."""
        return {i: self.categories[f] for i, f in enumerate(features) if f in self.categories}


def _plain_categories(categories: Mapping[int, Iterable[Any]], n_features: int) -> dict[int, tuple[Category, ...]]:
    """Categories as plain values, by feature in ascending order."""
    if set(map(type, categories)) - {int}:
        for feature in categories:
            if not isinstance(feature, int | np.integer):
                raise ValueError(f"categories has the key {feature!r}, which is not an index of {n_features} features")
        categories = {int(feature): given for feature, given in categories.items()}
    features = sorted(categories)
    if strange := [feature for feature in (*features[:1], *features[-1:]) if not 0 <= feature < n_features]:
        raise ValueError(f"categories has the key {strange[0]}, which is not an index of {n_features} features")
    given = list(map(categories.__getitem__, features))
    keys = list(map(id, given))  # indicators, by the thousand, share a tuple: each is looked at once
    firsts = dict(zip(reversed(keys), reversed(features), strict=True))
    plain = {key: _plain_values(feature, categories[feature]) for key, feature in firsts.items()}
    return dict(zip(features, map(plain.__getitem__, keys), strict=True))


def _plain_values(feature: int, given: Iterable[Any]) -> tuple[Category, ...]:
    values = tuple(map(_plain_category, given))
    for value in values:
        if not isinstance(value, str | int | float) or (isinstance(value, float) and not isfinite(value)):
            raise ValueError(f"categories[{feature}] must be strings, booleans or finite numbers")
    texts = {value for value in values if isinstance(value, str)}
    # numbers are sorted rather than put into a set: a file may hold as many of the same hash as it likes
    numbers = sorted(value for value in values if not isinstance(value, str))
    if len(texts) + len(numbers) < len(values) or any(a == b for a, b in pairwise(numbers)):
        raise ValueError(f"categories[{feature}] must be distinct")
    return values


def _plain_category(value: Any) -> Any:
    """A category of Python's own types, if it is of one derived from them, as NumPy's numbers and enums are."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in (str, int, float, bool):
        return value
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, int):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, float) else value
