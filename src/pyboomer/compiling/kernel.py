"""A kernel is a compiled function that works on the arrays it is given and makes none of its own.

It therefore needs no count of who holds an array: Numba keeps one, atomically, at every slice and every field of a
tuple, which took more time than a sweep over a few examples. Functions that do allocate are compiled by `njit` itself.
"""

from functools import partial
from typing import Any

from numba import njit

kernel: Any = partial(njit, cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=False)
