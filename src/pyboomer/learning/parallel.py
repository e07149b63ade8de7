"""How many threads of this process learn and predict: what `n_jobs` asks for, as joblib counts it."""

from multiprocessing import parent_process
from threading import current_thread, main_thread

from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend


def count_threads(n_jobs: int | str | None, much: bool) -> int:
    """The threads of this process that `n_jobs` asks for, as joblib counts them.

    "auto" asks for one if there is not `much` to do, and in one of several parallel jobs: of joblib, of a process that
    another one has made, or of threads. Joblib's Dask backend counts the cores of the cluster instead, and every fit of
    a grid search would start as many.
    """
    backend, given = get_active_backend()
    on_dask = type(backend).__name__ == "DaskDistributedBackend"  # known by name, as to import it takes a second
    if n_jobs == "auto":
        is_a_job = backend.nesting_level or parent_process() is not None or current_thread() is not main_thread()
        if on_dask or is_a_job or not much:
            return 1
        return int(effective_n_jobs(-1 if given is None else given))
    if not on_dask:
        return int(effective_n_jobs(n_jobs))
    with parallel_config(backend="threading"):
        return int(effective_n_jobs(n_jobs))
