"""Needless conditions by sets: which conditions of a rule examples violate, and what follows.

The kernels look at the examples, see `kernels/needless.cu`; to decide takes no more than a few numbers of each rule.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.columns.device import copy_to_host
from pyboomer.columns.needless import find_heirs
from pyboomer.compiling.device import Device, Launch

LONGEST = 64  # conditions, a bit of a word for each
MOST = 10  # conditions of a rule of which nothing is proven by an example that violates no other
PATTERN_WORDS = 2**MOST // 64
THREADS = 256


def list_arrays(rules: int) -> dict[str, tuple[Any, Any]]:
    """The arrays that the kernels need: shape and dtype."""
    return {
        "proven": (rules, np.uint64),
        "unproven": (rules, np.uint64),
        "patterns": ((rules, PATTERN_WORDS), np.uint64),
        "heirs": ((rules, LONGEST), np.int32),
    }


def find_heirs_of(
    device: Device, arrays: dict[str, Any], fit: Any, columns: Any, sizes: NDArray[np.int64], conditions: Any
) -> NDArray[np.int64]:
    """`columns.needless.find_heirs` for the rules that were learned last, of so many conditions."""
    n, rules = columns.codes.shape[1], len(sizes)
    offsets = np.append(0, np.cumsum(sizes))
    blocks = max(1, min(-(-n // THREADS), 4 * device.n_processors))

    def run(kernel: str) -> None:
        device.launch(Launch(kernel, (blocks, rules), THREADS), fit)

    def clear(name: str) -> None:
        shape, dtype = list_arrays(len(arrays["proven"]))[name]
        device.write(arrays[name], np.zeros(shape, dtype=dtype))

    heirs = np.arange(len(conditions))
    if sizes.max(initial=0) < 2:
        return heirs
    clear("proven")
    run("find_proven")
    proven = device.read(arrays["proven"])[:rules]
    unproven = [_list_unproven(int(word), int(size)) for word, size in zip(proven, sizes, strict=True)]
    if sizes.max() > LONGEST or max(map(len, unproven)) > MOST:
        return find_heirs(columns._replace(codes=copy_to_host(columns.codes)), n, conditions, offsets)
    if not any(unproven):
        return heirs
    words = np.zeros(len(arrays["unproven"]), dtype=np.uint64)
    words[:rules] = [_mark(some) for some in unproven]
    device.write(arrays["unproven"], words)
    clear("patterns")
    run("find_patterns")
    patterns = device.read(arrays["patterns"])[:rules]
    dropped = [_find_dropped(some, own) for some, own in zip(unproven, patterns, strict=True)]
    words[:rules] = [_mark(some) for some in dropped]
    device.write(arrays["unproven"], words)
    clear("heirs")
    run("find_heirs")
    found = device.read(arrays["heirs"])
    for rule, some in enumerate(dropped):
        for i in some:
            heirs[offsets[rule] + i] = offsets[rule] + max(int(found[rule, i]), i + 1)
    return heirs


def _list_unproven(proven: int, size: int) -> list[int]:
    """The conditions of which no example has proven that they are needed; the last one always is."""
    return [i for i in range(min(size, LONGEST) - 1) if not proven >> i & 1]


def _mark(conditions: list[int]) -> int:
    return sum(1 << i for i in conditions)


def _find_dropped(unproven: list[int], words: NDArray[np.uint64]) -> list[int]:
    """Those that can be dropped, in their order: no example violates them and else only some that are dropped."""
    patterns = [p for p in range(1, 1 << len(unproven)) if int(words[p >> 6]) >> (p & 63) & 1]
    dropped = 0
    for place in range(len(unproven)):
        own = 1 << place
        needed = any(p >= own and p < 2 * own and not (p - own) & ~dropped for p in patterns)
        dropped |= 0 if needed else own
    return [i for place, i in enumerate(unproven) if dropped >> place & 1]
