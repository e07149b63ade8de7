"""A name is what people call a feature or a label by; where it is looked up, a number does as well."""

import reprlib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np


def plain_names(what: str, names: Iterable[Any]) -> tuple[str, ...]:
    """Names as plain strings."""
    names = tuple(names)
    if set(map(type, names)) <= {str}:
        return names
    if strange := [value for value in names if not isinstance(value, str)]:
        raise ValueError(f"{what} must be strings, got {reprlib.repr(strange[0])}")
    return tuple(map(plain_text, names))


def plain_text(text: str) -> str:
    """Text as a plain string: one of a class of its own, such as an enum, may compare, print and save as anything."""
    return str.__str__(text)


def find_name(what: str, name: str, names: Sequence[str], index: int = -1) -> int:
    """The index of a name; one that is given decides between equal names."""
    if 0 <= index < len(names) and names[index] == name:
        return index
    if names.count(name) > 1:
        raise ValueError(f"there are several {what}s named {name!r}; give the number of one of them")
    if name not in names:
        raise ValueError(f"there is no {what} {name!r}{suggest(name, names)}")
    return names.index(name)


def find_all(what: str, wanted: Any, names: Sequence[str]) -> list[int]:
    """The indices of what is wanted: a name, an index (from the end, if negative), or a list of those."""
    several = np.iterable(wanted) and not isinstance(wanted, str)
    return [_find(what, one, names) for one in (wanted if several else [wanted])]


def _find(what: str, wanted: Any, names: Sequence[str]) -> int:
    if isinstance(wanted, str):
        return find_name(what, wanted, names)
    if isinstance(wanted, bool) or not isinstance(wanted, int | np.integer):
        raise TypeError(f"a {what} is given by its name or its number, got {wanted!r}")
    if not -len(names) <= wanted < len(names):
        raise ValueError(f"there is no {what} {wanted}; they are numbered from 0 to {len(names) - 1}")
    return int(wanted) % len(names)


def suggest(name: str, names: Sequence[str]) -> str:
    """What may have been meant, as the end of a complaint."""
    close = get_close_matches(name, names, cutoff=0.5) or [n for n in names if n.lower() == name.lower()]
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    return f"; there are {', '.join(map(repr, names[:5]))}{', ...' if len(names) > 5 else ''}"
