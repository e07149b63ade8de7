"""A run does the tasks that a store does not have yet, in parallel, and says how much time is left.

Tasks are started in the order given, so that a run stopped at any moment has done what comes first. Outcomes are kept
by the processes that find them; killing the run loses at most the tasks that were under way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from pyboomer.experiments.store import Store
from pyboomer.experiments.tasks import Task, do_task

WAIT = 2.0  # seconds between two looks at what another run is doing


def run_tasks(
    tasks: Sequence[Task],
    store: Store,
    *,
    n_jobs: int | None = None,
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
    progress : bool, default=False
        Whether to show how far it is and how much time is left.
    cost : callable
        The seconds that a task may take, up to a factor: for the time that is left.

    Returns
    -------
    int
        How many tasks this run did; others did the rest.
    """
    done = 0
    pending = [task for task in tasks if not store.has(task.key)]
    finished = len(tasks) - len(pending)
    total, left = sum(map(cost, tasks)), sum(map(cost, pending))
    form = "{l_bar}{bar}| {elapsed} spent, {remaining} left"
    with tqdm(total=total, initial=total - left, disable=not progress, bar_format=form, smoothing=0.02) as bar:
        bar.set_description(f"{finished:,} of {len(tasks):,} tasks")
        while pending:
            parallel = Parallel(n_jobs=n_jobs or cpu_count(), return_as="generator_unordered", batch_size=1)
            work = (delayed(_do_unless_taken)(task, store) for task in pending)
            taken = []
            for task, was_ours in parallel(work):
                done += was_ours
                if store.has(task.key):
                    bar.update(cost(task))
                    finished += 1
                    bar.set_description(f"{finished:,} of {len(tasks):,} tasks")
                else:
                    taken.append(task)  # another run is at it
            pending = taken
            if pending:
                time.sleep(WAIT)
    return done


def _do_unless_taken(task: Task, store: Store) -> tuple[Task, bool]:
    with store.claim(task.key) as is_ours:
        if is_ours:
            store.write(task.key, do_task(task))
        return task, is_ours
