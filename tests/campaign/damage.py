"""Damage is what happens to a good file: bytes are flipped, cut, repeated or spliced, and values become strange."""

import json
import re
from copy import deepcopy
from typing import Any

import numpy as np

NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
NUMBERS = (
    *(b"0", b"-0", b"1", b"-1", b"2", b"0.5", b"-0.5", b"1e308", b"1e309", b"-1e999", b"5e-324", b"1e-400", b"NaN"),
    *(b"nan", b"inf", b"-inf", b"Infinity", b"0x10", b"1_000", b"+1", b".5", b"5.", b"1e", b"--1", b"\xd9\xa1", b"?"),
    *(str(number).encode() for number in (2**31, 2**31 - 1, 2**53 + 1, 2**63, 2**64, -(2**63), 10**18, 10**400)),
    b"9" * 5_000,
)
WORDS = (
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x99\x82", b"\xe2\x80\xa8", b"\xe2\x80\xae"),
    *(b"\\", b"'", b'"', b"{", b"}", b"[", b"]", b",", b";", b":", b"\n", b"\r", b"\t", b"%", b"@", b"<", b">", b"&"),
    *(b"\\u0000", b"\\ud800", b"null", b"true", b"[]", b"{}", b"@data\n", b"@attribute a numeric\n", b" " * 300),
    *(b"''", b"IF ", b" THEN ", b" AND ", b"<=", b"==", b"&lt;", b"<!DOCTYPE a>", b"<!ENTITY a 'b'>", b"<![CDATA["),
    *(b"[" * 2_000, b"{" * 2_000, b'{"a":' * 1_200, b"<a>" * 2_000, b"'" * 500, b'"' * 501, b"\\" * 999, b"(" * 300),
)
STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -1, -0.0, 0.5, 1e308, -1e308, 5e-324, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63)),
    *(10**18, 10**400, "", "0", "\0", "\ud800", "<U999999", "<U999", "|V8", "O", "<f2", ">i4", "object", "matrix"),
    *("regressor", "classifier", "log2", "label-wise-logistic", "top-2", "x" * 20_000, [], {}, [0], [0, 0], [[]]),
    *([None], ["a", "a"], {"": 0}, {"0": [1, 2]}, {"0": []}, ["01", "10"], [1, 2, 3], [0.5, 0.5], {"a": {"b": []}}),
)


def damage(content: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    """A file with one to four faults."""
    for _ in range(int(rng.integers(1, 5))):
        content = _harm(content, others, rng)
    return content[:300_000]


def _harm(content: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    size = len(content)
    if size == 0:
        return WORDS[rng.integers(len(WORDS))]
    a, b = sorted(int(place) for place in rng.integers(size + 1, size=2))
    b = min(b, a + int(2 ** rng.uniform(0, 10)))
    kind = rng.integers(12)
    if kind == 0:  # a bit
        place = int(rng.integers(size))
        return content[:place] + bytes([content[place] ^ (1 << int(rng.integers(8)))]) + content[place + 1 :]
    if kind == 1:
        return content[:a]
    if kind == 2:
        return content[:a] + content[b:]
    if kind == 3:
        return content[:b] + content[a:b] * int(rng.integers(1, 50)) + content[b:]
    if kind == 4:
        other = others[rng.integers(len(others))]
        c, d = sorted(int(place) for place in rng.integers(len(other) + 1, size=2))
        return content[:a] + other[c : min(d, c + 2_000)] + content[b:]
    if kind in (5, 6, 7):
        places = list(NUMBER.finditer(content))
        if places:
            place = places[rng.integers(len(places))]
            return content[: place.start()] + NUMBERS[rng.integers(len(NUMBERS))] + content[place.end() :]
    if kind == 8:
        return content.replace(b"\n", [b"\r\n", b"\r", b"\n\n", b"\x0b", b" "][rng.integers(5)])
    if kind == 9:  # lines change their order
        lines = content.splitlines(keepends=True)
        i, j = rng.integers(len(lines), size=2)
        lines[i], lines[j] = lines[j], lines[i]
        return b"".join(lines)
    if kind == 10:
        return content[:a] + rng.bytes(min(b - a, 30)) + content[b:]
    return content[:a] + WORDS[rng.integers(len(WORDS))] + content[a:]


def damage_json(text: bytes, rng: np.random.Generator) -> bytes:
    """A JSON document with a few values replaced, removed, repeated or exchanged."""
    content = json.loads(text)
    for _ in range(int(rng.integers(1, 4))):
        where, key = _choose_place(content, rng)
        kind = rng.integers(8)
        if kind == 0 and isinstance(where, dict):
            del where[key]
        elif kind == 1 and isinstance(where, list):
            where.insert(int(rng.integers(len(where) + 1)), deepcopy(where[key]))
        elif kind == 2 and isinstance(where, list):
            del where[key]
        elif kind == 3 and isinstance(where[key], list) and where[key]:
            where[key] = where[key] * int(rng.integers(2, 5))
        elif kind == 4:
            other, other_key = _choose_place(content, rng)
            if not _is_within(other[other_key], where) and not _is_within(where[key], other):
                where[key], other[other_key] = other[other_key], where[key]
        elif kind == 5 and isinstance(where[key], int | float):
            where[key] = where[key] * int(rng.integers(-3, 4)) + int(rng.integers(-2, 3))
        else:
            where[key] = deepcopy(STRANGE[rng.integers(len(STRANGE))])
        if not isinstance(content, dict) or not content:
            break
    return json.dumps(content).encode("utf-8", "surrogatepass")


def _choose_place(content: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Somewhere in the document: a list or dict, and a key of it."""
    where = content
    while True:
        keys = list(where) if isinstance(where, dict) else range(len(where))
        key = keys[rng.integers(len(keys))]
        if not isinstance(where[key], list | dict) or not where[key] or rng.random() < 0.15:
            return where, key
        where = where[key]


def _is_within(value: Any, place: Any) -> bool:
    """Whether a place is part of a value, so that the value cannot move there."""
    if value is place:
        return True
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_is_within(each, place) for each in inside)
