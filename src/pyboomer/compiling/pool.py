"""A pool is some threads that run compiled code side by side: it releases the interpreter lock.

A thread needs memory of its own: a stack, and what libraries keep for each thread, when it first calls them. If there
is none, the C library ends the process, or the thread dies unheard while others wait for it. So threads begin before
there is work for them, and only where there is room for them; where there is not, that is a MemoryError like any other.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
from llvmlite.binding import parse_assembly
from numba.core.compiler_lock import global_compiler_lock

from pyboomer.compiling.room import claim_room

FOR_A_THREAD = 2**24  # bytes: the usual stack of 8 MiB, and as much for what libraries keep


def start_pool(n_threads: int) -> ThreadPoolExecutor:
    """A pool of threads, all of which have begun."""
    claim_room(n_threads * FOR_A_THREAD, f"{n_threads} threads (n_jobs)")
    all_there = Barrier(n_threads)

    def begin(_: int) -> None:
        np.sort(np.zeros(2**10))  # NumPy keeps something for each thread, which is made now; so does LLVM
        with global_compiler_lock:
            parse_assembly("define void @nothing() { ret void }").verify()
        all_there.wait()

    pool = ThreadPoolExecutor(n_threads)
    try:
        list(pool.map(begin, range(n_threads)))
    except BaseException as error:  # Ctrl-C, too: threads that have begun must not wait for the others for ever
        all_there.abort()
        pool.shutdown(cancel_futures=True)
        if isinstance(error, RuntimeError | MemoryError):  # Python's word for it: "can't start new thread"
            raise MemoryError(f"no memory is left for {n_threads} threads (n_jobs)") from None
        raise
    return pool
