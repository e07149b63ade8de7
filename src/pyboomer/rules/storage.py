"""The storage of rules is flat arrays, one rule after another: which arrays there are, of which dtypes, and their laws.

`RuleEnsemble` holds such arrays; whatever they come from, a file for instance, they are checked here.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyboomer.rules.digits import MOST_DIGITS
from pyboomer.rules.operators import EQUAL, OPERATORS
from pyboomer.rules.text import NO_DIGITS, ROUNDED_DOWN

if TYPE_CHECKING:
    from pyboomer.rules.ensemble import RuleEnsemble

DTYPES: dict[str, type[np.generic]] = {
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
    "condition_shares": np.float64,
}
PER_CONDITION = (
    *("condition_features", "condition_operators", "condition_values"),
    *("condition_digits", "condition_shares"),
)
ABOUT = ("condition_digits", "condition_shares")  # conditions: they make no other rules
PER_SCORE = ("head_labels", "head_scores")
PER_RULE = ("coverage", "gain")
OPTIONAL = (*ABOUT, "ordinal")  # the first models had no such thing
KEYS = (
    *(name for name in DTYPES if name not in OPTIONAL),
    *("feature_names", "label_names", "categories"),
    *OPTIONAL,
)  # of rules as a dict


def gather(offsets: NDArray[np.int64], rules: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the positions of the entries that belong to some rules, and the offsets of these rules among them."""
    lengths = np.diff(offsets)[rules]
    gathered = np.concatenate([[0], np.cumsum(lengths)])
    return gathered, np.repeat(offsets[rules] - gathered[:-1], lengths) + np.arange(gathered[-1])


def any_in_rule(offsets: NDArray[np.int64], marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rules have a marked entry."""
    counts = np.concatenate([[0], np.cumsum(marked)])[offsets]
    return np.diff(counts) > 0


def check_list(name: str, values: Any, allowed: set[type]) -> None:
    """Refuse what is no list of plain values of certain types."""
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name} must be a list, got {type(values).__name__}")
    if strange := set(map(type, values)) - allowed:
        kinds = " or ".join(sorted(kind.__name__ for kind in allowed))
        raise ValueError(f"{name} must hold {kinds} only, got {min(kind.__name__ for kind in strange)}")


def frozen_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """A read-only copy of the dtype that an array of this name has, or an error that says what does not fit."""
    wanted = np.dtype(DTYPES[name])
    try:
        given = np.asarray(values)
    except OverflowError:
        raise ValueError(f"{name} holds a number that is out of range") from None
    if given.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got {given.ndim}")
    if given.size and given.dtype.kind not in ("iu" if wanted.kind == "i" else "iuf"):
        raise ValueError(f"{name} must hold numbers that fit {wanted}, got {given.dtype}")
    array = np.array(given, dtype=wanted)
    if wanted.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    if given.dtype != wanted and not np.array_equal(array, given):
        raise ValueError(f"{name} holds a number that is out of range")
    array.flags.writeable = False
    return array


def check_arrays(e: "RuleEnsemble") -> None:
    """Check that the arrays fit each other and the names."""
    for first, *others in (PER_CONDITION, PER_SCORE, PER_RULE):
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
    digits = np.where(e.condition_digits > ROUNDED_DOWN, e.condition_digits - ROUNDED_DOWN, e.condition_digits)
    if ((digits < NO_DIGITS) | (digits > MOST_DIGITS)).any():
        raise ValueError(
            f"condition_digits must be from {NO_DIGITS} to {MOST_DIGITS}, and {ROUNDED_DOWN} more where rounded down"
        )
    if (e.condition_shares < 0).any():
        raise ValueError("condition_shares must not be negative")
    if (e.coverage < 0).any():
        raise ValueError("coverage must not be negative")
    falls = e.head_labels[1:] <= e.head_labels[:-1]
    starts = e.head_offsets[(e.head_offsets > 0) & (e.head_offsets < len(e.head_labels))]
    falls[starts - 1] = False  # from one rule to the next they may fall
    if falls.any():
        raise ValueError("head_labels must be ascending within a rule")


def check_nominal(e: "RuleEnsemble") -> None:
    """Check that operators suit their features and that codes are those of categories."""
    sizes = e.schema.n_categories[e.condition_features]
    is_ordinal = np.isin(e.condition_features, e.ordinal) if e.ordinal else np.zeros(len(sizes), dtype=bool)
    nominal = e.condition_operators >= EQUAL
    if (nominal != ((sizes >= 0) & ~is_ordinal)).any():
        raise ValueError("condition_operators must be == or != for nominal features, <= or > for all others")
    codes, sizes = e.condition_values[nominal | is_ordinal], sizes[nominal | is_ordinal]
    if ((codes < 0) | (codes >= sizes) | (codes != np.floor(codes))).any():
        raise ValueError("condition_values of nominal and ordinal features must be positions in their categories")
