"""A run does the jobs that a store does not have yet, in parallel, and says how much time is left.

Jobs are started in the order given, so that a run stopped at any moment has done what comes first. An outcome is kept
as soon as it is found; killing the run loses at most the jobs that were under way. The processes of this machine do the
jobs, or the workers of a Dask cluster. These see nothing of the store: it is here, and so are its locks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from pyboomer import __version__
from pyboomer.datasets import load_dataset
from pyboomer.experiments.store import Outcome, Store
from pyboomer.experiments.tasks import Task, do_task

WAIT = 2.0  # seconds between two looks at what another run is doing
FEWEST, MOST = 32, 400  # jobs sent ahead: enough for a cluster to grow by; each has a file open, and systems allow 1024


class Job(NamedTuple):
    """A task, the name of its outcome in a store, and the function that does it.

    Jobs may share a function that holds much data, as a `partial` does: a cluster is sent it once.
    """

    key: str
    do: Callable[[Any], Outcome]
    task: Any


def run_tasks(
    tasks: Sequence[Task],
    store: Store,
    *,
    n_jobs: int | None = None,
    client: Any = None,
    progress: bool = False,
    cost: Callable[[Task], float] = lambda _: 1.0,
) -> int:
    """Do all tasks that are not in the store.

    Parameters
    ----------
    tasks : sequence of Task
        The most important first.
    store : Store
    n_jobs : int, optional
        Processes; None for one per core.
    client : dask.distributed.Client, optional
        Let the workers of its cluster do the tasks. They need no data sets: they are sent.
    progress : bool, default=False
        Whether to show how far it is and how much time is left.
    cost : callable
        The seconds that a task may take, up to a factor: for the time that is left.

    Returns
    -------
    int
        How many tasks this run did; others did the rest.
    """
    pending = [task for task in tasks if not store.has(task.key)]
    finished, done = len(tasks) - len(pending), 0
    names = {task.data for task in pending} if client is not None else ()
    sent = {name: partial(do_task, data=load_dataset(name)) for name in names}
    jobs = [Job(task.key, sent.get(task.data, do_task), task) for task in pending]
    total, left = sum(map(cost, tasks)), sum(map(cost, pending))
    form = "{l_bar}{bar}| {elapsed} spent, {remaining} left"
    with tqdm(total=total, initial=total - left, disable=not progress, bar_format=form, smoothing=0.02) as bar:
        bar.set_description(f"{finished:,} of {len(tasks):,} tasks")
        here = cpu_count() if n_jobs is None and client is None else n_jobs
        for job, outcome in run_jobs(jobs, store, n_jobs=here, client=client):
            done += outcome is not None
            finished += 1
            bar.update(cost(job.task))
            bar.set_description(f"{finished:,} of {len(tasks):,} tasks")
    return done


def run_jobs(
    jobs: Sequence[Job], store: Store | None = None, *, n_jobs: int | None = None, client: Any = None
) -> Iterator[tuple[Job, Outcome | None]]:
    """Do all jobs, and give each as it gets done: with its outcome, or None if that was in the store or others did it.

    Parameters
    ----------
    jobs : sequence of Job
        The most important first.
    store : Store, optional
        Where outcomes are kept.
    n_jobs : int, optional
        Processes, as joblib understands it.
    client : dask.distributed.Client, optional
        Let the workers of its cluster do the jobs.
    """
    pending = []
    for job in jobs:
        if store is not None and store.has(job.key):
            yield job, None
        else:
            pending.append(job)
    if client is not None and pending:
        _check_client(client, n_jobs)
    while pending:
        taken = []
        for job, outcome in _do_here(pending, store, n_jobs) if client is None else _do_there(pending, store, client):
            if outcome is None and store is not None and not store.has(job.key):
                taken.append(job)  # another run is at it
            else:
                yield job, outcome
        pending = taken
        if pending:
            time.sleep(WAIT)


# --- On this machine --------------------------------------------------------------------------------------------------


def _do_here(jobs: Sequence[Job], store: Store | None, n_jobs: int | None) -> Iterator[tuple[Job, Outcome | None]]:
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    for number, outcome in parallel(delayed(_do_numbered)(i, job, store) for i, job in enumerate(jobs)):
        yield jobs[number], outcome


def _do_numbered(number: int, job: Job, store: Store | None) -> tuple[int, Outcome | None]:
    if store is None:
        return number, job.do(job.task)
    with store.claim(job.key) as is_ours:
        if not is_ours:
            return number, None
        outcome = job.do(job.task)
        store.write(job.key, outcome)
        return number, outcome


# --- On a cluster -----------------------------------------------------------------------------------------------------


def _check_client(client: Any, n_jobs: int | None) -> None:
    if not hasattr(client, "submit") or getattr(client, "asynchronous", True):
        raise TypeError(f"client must be a dask.distributed.Client that is not asynchronous, got {client!r}")
    if n_jobs is not None:
        raise ValueError("n_jobs is about the processes of this machine; give client or n_jobs, not both")
    found = client.run(_tell_version, on_error="return")
    for address, version in found.items():
        if isinstance(version, Exception):
            raise ImportError(f"the worker {address} cannot import pyboomer ({version}); install it there") from version
        if version != __version__:
            raise ImportError(f"the worker {address} has pyboomer {version}, and this is {__version__}")
    if not found:
        logging.getLogger("pyboomer").warning("The cluster has no workers yet; jobs wait for them.")


def _do_there(jobs: Sequence[Job], store: Store | None, client: Any) -> Iterator[tuple[Job, Outcome | None]]:
    from dask import config
    from distributed import as_completed

    # Sent as a task of its own, a function is made anew when the worker that holds it dies; what is scattered is lost.
    functions = {id(job.do): job.do for job in jobs}
    with config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):  # it is meant to be large
        sent = {number: client.submit(_give, function, pure=False) for number, function in functions.items()}
    under_way: dict[Any, tuple[Job, ExitStack]] = {}
    finished, queue = as_completed(loop=client.loop), list(reversed(jobs))
    try:
        while queue or under_way:
            ahead = min(max(2 * sum(client.nthreads().values()), FEWEST), MOST)
            while queue and len(under_way) < ahead:
                job, claim = queue.pop(), ExitStack()
                if store is not None and not claim.enter_context(store.claim(job.key)):
                    claim.close()
                    yield job, None
                    continue
                future = client.submit(_call, sent[id(job.do)], job.task, pure=False)
                under_way[future] = job, claim
                finished.add(future)
            if under_way:
                future = next(finished)
                job, claim = under_way.pop(future)
                with claim:
                    outcome = _take_outcome(future, job)
                    if store is not None:
                        store.write(job.key, outcome)
                yield job, outcome
    finally:
        client.cancel([*under_way, *sent.values()])
        for _, claim in under_way.values():
            claim.close()


def _take_outcome(future: Any, job: Job) -> Outcome:
    from distributed import CancelledError, KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise ConnectionError(
            f"{job.key}: {error.allowed_failures + 1} workers died while they were at it, the last at "
            f"{error.last_worker.address}; they may need more memory. What is finished is kept"
        ) from error
    except CancelledError as error:
        reason = getattr(error, "reason", "cancelled")
        raise ConnectionError(f"{job.key}: the cluster lost it ({reason}). What is finished is kept") from error
    except Exception as error:
        error.add_note(f"This was {job.key}, on a worker of the cluster.")
        raise


def _tell_version() -> str:
    return __version__


def _give(function: Callable[[Any], Outcome]) -> Callable[[Any], Outcome]:
    return function


def _call(function: Callable[[Any], Outcome], task: Any) -> Outcome:
    return function(task)
