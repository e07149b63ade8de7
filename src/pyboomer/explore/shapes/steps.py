"""Steps are the values of a feature that rules tell apart: a rule covers all values of a step, or none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from pyboomer.arrays import Array, Matrix, is_missing
from pyboomer.columns.categories import encode
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import AT_MOST, EQUAL
from pyboomer.rules.schema import Category, Schema
from pyboomer.rules.text import format_threshold, show_line

MISSING, UNSEEN = "missing", "unseen"
NAMED = 3  # categories without a rule that are named, rather than counted


@dataclass(frozen=True, eq=False, repr=False)
class Steps:
    """The values of a feature that rules tell apart: intervals, levels or categories, and a missing value.

    Attributes
    ----------
    feature, name : int and str
        Index and name of the feature.
    kind : {"numeric", "ordinal", "nominal"}
    edges : array of shape (m,)
        Thresholds (of an ordinal feature, positions of levels), ascending: step i holds the values above edge i - 1, up
        to edge i and with it; step m those above all. Of a nominal feature codes of categories: step i is category i
        of them, step m any other. Step m + 1 is for a missing value.
    digits : array of shape (m,)
        How many digits of a threshold are printed, see `pyboomer.rules.digits`.
    categories : tuple
        All categories or levels of the feature, by their codes.
    span : pair of float
        The least and the largest value among the examples; NaN if there are none.
    """

    feature: int
    name: str
    kind: str
    edges: Array
    digits: NDArray[np.int8]
    categories: tuple[Category, ...] = ()
    span: tuple[float, float] = (np.nan, np.nan)

    def __len__(self) -> int:
        return len(self.edges) + 2

    def __repr__(self) -> str:
        return show_line(f"<Steps of {self.name}: {', '.join(self.describe())}>")

    def find(self, codes: Array) -> NDArray[np.intp]:
        """The step of each value of the feature, as rules read it: nominal ones as codes, ordinal ones as positions."""
        found = np.searchsorted(self.edges, codes, side="left")
        if self.kind == "nominal" and len(self.edges):
            named = self.edges[np.minimum(found, len(self.edges) - 1)] == codes
            found = np.where(named, found, len(self.edges))
        return np.where(np.isnan(codes), len(self.edges) + 1, found)

    def meet(self, operator: int, value: float) -> NDArray[np.bool_]:
        """The steps that meet a condition whose value is one of the edges."""
        edge, places = int(np.searchsorted(self.edges, value)), np.arange(len(self))
        if operator >= EQUAL:
            met = (places == edge) == (operator == EQUAL)
        else:
            met = places <= edge if operator == AT_MOST else places > edge
        met[-1] = False  # a missing value meets none
        return met

    def read(self, values: ArrayLike) -> Array:
        """Values as people have them, numbers or categories, as `find` takes them."""
        if self.kind == "numeric":
            return np.asarray(values, dtype=np.float64)
        given = np.asarray(values, dtype=object)
        codes = {category: float(code) for code, category in enumerate(self.categories)}
        unseen = np.nan if self.kind == "ordinal" else float(len(self.categories))  # what is no level meets nothing
        read = [np.nan if is_missing(value) else codes.get(value, unseen) for value in given.ravel().tolist()]
        return np.array(read, dtype=np.float64).reshape(given.shape)

    def describe_edges(self) -> list[str]:
        """The edges as text: thresholds, levels or categories."""
        if self.kind == "numeric":
            return [format_threshold(e, d) for e, d in zip(self.edges.tolist(), self.digits.tolist(), strict=True)]
        return [str(self.categories[int(code)]) for code in self.edges.tolist()]

    def describe(self) -> tuple[str, ...]:
        """The steps as text."""
        edges = self.describe_edges()
        if self.kind == "nominal":
            others = np.setdiff1d(np.arange(len(self.categories)), self.edges)
            names = ", ".join(str(self.categories[code]) for code in others.tolist()[:NAMED])
            other = UNSEEN if len(others) == 0 else names if len(others) <= NAMED else f"{len(others)} others"
            return (*edges, other, MISSING)
        if self.kind == "ordinal":
            bounds = np.concatenate([[-1], self.edges, [len(self.categories) - 1]]).astype(int).tolist()
            runs = [self.categories[low + 1 : high + 1] for low, high in pairwise(bounds)]
            return (*(_name_run(run) for run in runs), MISSING)
        inner = [f"{low} to {high}" for low, high in pairwise(edges)]
        return (*([f"<= {edges[0]}", *inner, f"> {edges[-1]}"] if edges else ["any"]), MISSING)


def _name_run(run: Sequence[Category]) -> str:
    """Levels that follow each other."""
    return str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" if run else "none"


def find_steps(rules: RuleEnsemble, features: Sequence[int]) -> list[Steps]:
    """The steps of some features: their edges are all values in the conditions of the rules."""
    schema = rules.schema
    order = np.argsort(rules.condition_features, kind="stable")
    bounds = np.searchsorted(rules.condition_features[order], features, side="left")
    ends = np.searchsorted(rules.condition_features[order], features, side="right")
    found = []
    for feature, begin, end in zip(features, bounds.tolist(), ends.tolist(), strict=True):
        own = order[begin:end]
        edges, places = np.unique(rules.condition_values[own] + 0.0, return_inverse=True)  # -0 is 0
        digits = np.zeros(len(edges), dtype=np.int8)
        np.maximum.at(digits, places, rules.condition_digits[own])
        categories = schema.categories.get(feature, ())
        kind = "numeric" if feature not in schema.categories else "ordinal" if schema.is_ordinal(feature) else "nominal"
        found.append(Steps(feature, schema.names[feature], kind, edges, digits, categories))
    return found


def cover_steps(rules: RuleEnsemble, steps: Steps) -> Array:
    """Which steps of a feature each rule covers, as far as its conditions on that feature go: 1 or 0."""
    covered = np.ones((len(rules), len(steps)), dtype=bool)
    numbers = np.repeat(np.arange(len(rules)), np.diff(rules.condition_offsets))
    for c in np.flatnonzero(rules.condition_features == steps.feature).tolist():
        covered[numbers[c]] &= steps.meet(int(rules.condition_operators[c]), float(rules.condition_values[c]))
    return covered.astype(np.float64)


def list_columns(schema: Schema, features: NDArray[np.int64], matrix: Matrix) -> Iterator[Array]:
    """The values of some features, one by one, as rules read them: nominal ones as codes."""
    if not sp.issparse(matrix):
        yield from (matrix[:, feature] for feature in features.tolist())
        return
    by_column = matrix[:, features].tocsc()
    for i, feature in enumerate(features.tolist()):
        yield encode(by_column[:, [i]].toarray(), schema.pick_categories([feature]))[:, 0]
