"""A change is another value of one feature with which the model would predict something else.

Only values on the other side of a threshold, or other categories, can make a difference, and of these only the ones in
rules whose other conditions are all met. Features have different units; so the size of a change is the share of the
model's conditions on the feature that come out differently. Thresholds lie where the training data do, which makes this
a distance in terms of the data, whatever the unit. The smallest change of all is found, and confirmed by a prediction.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.columns.categories import encode, find_fill, list_categories
from pyboomer.explore.outcome import Decide
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.digits import MOST_DIGITS, add_digits
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import ABOVE, EQUAL
from pyboomer.rules.schema import Category
from pyboomer.rules.text import format_threshold, show_line

Vector = NDArray[np.uint8]

BATCH = 64  # changes that are tried at once, the smallest first
SHOWN_DIGITS = 6  # of the value that an example has


@dataclass(frozen=True, eq=False)
class Change:
    """Another value of a feature, and the label vector that the model would predict then.

    `value` is the nearest value that makes the difference (a category, if the feature is nominal). `wanted` says which
    other values do, too: ``<= 0.31``. `current` is the value of the example; None if it is missing or an unknown
    category. `size` is the share of the model's conditions on the feature that come out differently.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> (explanation,) = clf.explain(X[3:4])
    >>> print(explanation.change)
    if pixel_3_2 were > 5.5 (is 2)
    >>> explanation.describe(explanation.change.prediction)
    'a, c, d, f, g'
    """

    feature: int
    name: str
    value: Category
    wanted: str
    current: Category | None
    current_text: str
    size: float
    prediction: Vector

    def __str__(self) -> str:
        return show_line(f"if {self.name} were {self.wanted} (is {self.current_text})")


class Demand(NamedTuple):
    """The conditions of all rules on one feature, rule by rule."""

    feature: int
    operators: NDArray[np.int8]
    values: Array
    digits: NDArray[np.int8]
    rules: NDArray[np.int64]  # which have such a condition
    starts: NDArray[np.int64]  # of the conditions of each of these


class Candidates(NamedTuple):
    """Values of a feature that may make a difference, ascending; a code stands for a category."""

    demand: Demand
    values: Array  # of each interval (low, high] the one nearest to the present value
    low: Array
    high: Array
    sizes: Array
    scores: Array  # (candidates, K)


def list_demands(rules: RuleEnsemble) -> list[Demand]:
    """What rules demand of each feature that they mention."""
    if len(rules.condition_features) == 0:
        return []
    rule = np.repeat(np.arange(len(rules)), np.diff(rules.condition_offsets))
    order = np.lexsort((rule, rules.condition_features))
    features, starts = np.unique(rules.condition_features[order], return_index=True)
    demands = []
    for feature, own in zip(features.tolist(), np.split(order, starts[1:]), strict=True):
        arrays = rules.condition_operators[own], rules.condition_values[own], rules.condition_digits[own]
        demands.append(Demand(feature, *arrays, *np.unique(rule[own], return_index=True)))
    return demands


def read_rows(X: Matrix, rules: RuleEnsemble) -> Iterator[Array]:
    """The examples, one by one: numbers, and codes of categories."""
    if not sp.issparse(X):
        yield from X
        return
    coded = encode(X.tocsc(), rules.categories).tocsr()
    fill = find_fill(X.shape[1], list_categories(rules.categories))
    for n in range(X.shape[0]):
        own = slice(coded.indptr[n], coded.indptr[n + 1])
        row = fill.copy()
        row[coded.indices[own]] = coded.data[own]
        yield row


def find_change(
    rules: RuleEnsemble,
    demands: list[Demand],
    heads: Array,
    row: Array,
    scores: Array,
    winner: Vector,
    decide: Decide,
) -> Change | None:
    """The smallest change of one feature of an example that changes its prediction; None if no such change does.

    `demands` and `heads` are those of the rules, `scores` and `winner` those of the example.
    """
    candidates = _list_candidates(rules, demands, heads, row, scores)
    if not candidates:
        return None
    lengths = [len(c.values) for c in candidates]
    owner, place = np.repeat(np.arange(len(lengths)), lengths), np.concatenate([np.arange(n) for n in lengths])
    order = np.argsort(np.concatenate([c.sizes for c in candidates]), kind="stable")
    all_scores = np.concatenate([c.scores for c in candidates])
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        for i in batch[(decide(all_scores[batch]) != winner).any(axis=1)].tolist():
            chosen, j = candidates[owner[i]], int(place[i])
            outcome = _predict(rules, row, chosen.demand.feature, chosen.values[j], decide)
            if (outcome != winner).any():  # it is not a matter of rounding
                return _describe_change(rules, chosen, j, float(row[chosen.demand.feature]), outcome, decide)
    return None


def _predict(rules: RuleEnsemble, row: Array, feature: int, value: float, decide: Decide) -> Vector:
    """What is predicted for an example if it has another value."""
    changed = row[None].copy()
    changed[0, feature] = value
    scores = np.zeros((1, len(rules.label_names)))
    add_scores(rules, changed, scores)
    return decide(scores)[0]


def _meets(x: Array, demand: Demand) -> NDArray[np.bool_]:
    """Which conditions each of some values meets, (values, conditions); a missing one meets none."""
    x, operators = x[:, None], demand.operators
    low, equal = x <= demand.values, x == demand.values
    chosen = np.where(operators >= EQUAL, equal, low)
    negated = (operators == ABOVE) | (operators == EQUAL + 1)
    return (chosen ^ negated) & (x == x)


def _list_candidates(
    rules: RuleEnsemble, demands: list[Demand], heads: Array, row: Array, scores: Array
) -> list[Candidates]:
    met = [_meets(row[[demand.feature]], demand)[0] for demand in demands]
    met_by_rule = [np.logical_and.reduceat(m, demand.starts) for m, demand in zip(met, demands, strict=True)]
    failed = np.zeros(len(rules), dtype=np.int64)  # features that keep a rule from covering the example
    for demand, fine in zip(demands, met_by_rule, strict=True):
        failed[demand.rules] += ~fine
    candidates = []
    for demand, now, fine in zip(demands, met, met_by_rule, strict=True):
        ready = failed[demand.rules] == ~fine  # all that matters to these rules is this feature
        if ready.any():
            low, high, values = _list_values(rules, demand, ready, float(row[demand.feature]))
            then = _meets(values, demand)
            covered = np.logical_and.reduceat(then, demand.starts, axis=1)[:, ready]
            gained = covered.astype(np.float64) - fine[ready]
            changed = scores + gained @ heads[demand.rules[ready]]
            sizes = (then != now).mean(axis=1)
            candidates.append(Candidates(demand, values, low, high, sizes, changed))
    return candidates


def _list_values(rules: RuleEnsemble, demand: Demand, ready: NDArray[np.bool_], x: float) -> tuple[Array, Array, Array]:
    """Intervals (low, high] in which some rules do not tell values apart, but for that of x, and a value of each."""
    if demand.feature in rules.categories:
        codes = np.arange(len(rules.categories[demand.feature]), dtype=np.float64)
        codes = codes[codes != x]
        return codes, codes, codes
    lengths = np.diff(np.append(demand.starts, len(demand.values)))
    matters = np.repeat(ready, lengths) | np.isnan(x)  # a missing value has no nearest one: all intervals are compared
    cuts = np.unique(demand.values[matters])
    low, high = np.append(-np.inf, cuts), np.append(cuts, np.inf)
    if not np.isnan(x):
        elsewhere = (x <= low) | (x > high)
        low, high = low[elsewhere], high[elsewhere]
    from_below = (x <= low) | (high == np.inf)
    return low, high, np.where(from_below, np.nextafter(low, np.inf), high)


def _describe_change(
    rules: RuleEnsemble, chosen: Candidates, j: int, x: float, outcome: Vector, decide: Decide
) -> Change:
    demand = chosen.demand
    facts = demand.feature, rules.feature_names[demand.feature]
    if demand.feature in rules.categories:
        categories = rules.categories[demand.feature]
        current = None if np.isnan(x) or x >= len(categories) else categories[int(x)]
        text = "missing" if np.isnan(x) else "another category" if current is None else str(current)
        value = categories[int(chosen.values[j])]
        return Change(*facts, value, str(value), current, text, float(chosen.sizes[j]), outcome)
    low, high = _widen(chosen, j, x, outcome, decide)
    wanted, text = _describe_interval(demand, low, high, x)
    current = None if np.isnan(x) else x
    return Change(*facts, float(chosen.values[j]), wanted, current, text, float(chosen.sizes[j]), outcome)


def _widen(chosen: Candidates, j: int, x: float, outcome: Vector, decide: Decide) -> tuple[float, float]:
    """The interval of a candidate and of those behind it, as long as the outcome is the same."""
    same = (decide(chosen.scores) == outcome).all(axis=1)
    first = last = j
    while x > chosen.high[j] and first > 0 and same[first - 1]:
        first -= 1
    while x <= chosen.low[j] and last + 1 < len(same) and same[last + 1]:
        last += 1
    return float(chosen.low[first]), float(chosen.high[last])


def _describe_interval(demand: Demand, low: float, high: float, x: float) -> tuple[str, str]:
    """The interval, and x, in as many digits as it takes to see that it is outside."""
    digits = {value: int(demand.digits[demand.values == value].max()) for value in (low, high) if np.isfinite(value)}
    for extra in range(MOST_DIGITS + 1):
        texts = {value: format_threshold(value, add_digits(n, extra)) for value, n in digits.items()}
        current = "missing" if np.isnan(x) else format_threshold(x, add_digits(SHOWN_DIGITS, extra))
        if np.isnan(x) or all((float(current) <= float(text)) == (x <= value) for value, text in texts.items()):
            break
    parts = [f"{sign} {texts[value]}" for sign, value in ((">", low), ("<=", high)) if value in texts]
    return " and ".join(parts), current
