"""A team is the workers that learn together: one of them leads, and asks the others by Dask's own messages.

These go from worker to worker by the connections that Dask has already, with whatever `Security` says; no port is
opened. Each fit has a name and, on each worker, a thread of its own, so that several fits at once do not wait for each
other. The client hears of rules as they come, and keeps them: nothing but time is lost with a worker.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Thread
from typing import Any
from uuid import uuid4

from distributed import Client, Scheduler, Worker
from distributed.comm import Comm
from distributed.core import send_recv
from distributed.metrics import time as now
from distributed.protocol import ToPickle
from distributed.utils_comm import gather_from_workers
from joblib import parallel_config

from pyboomer.engine.cluster.learner import ClusterLearner, Course, make_shard
from pyboomer.engine.cluster.shard import Duty, Shard
from pyboomer.engine.cluster.steps import Order
from pyboomer.engine.promise import Chunk
from pyboomer.learning.parallel import count_threads

OPERATION = "pyboomer"  # what messages between workers are called
CONNECTING = 10  # seconds; who cannot be reached by then is lost
NOTICING = 5  # seconds in which the scheduler notices, too
CHECKING = 5  # seconds after which the client asks whether all workers are still there
SILENCE = 20  # seconds; a worker that the scheduler has not heard of for as long is lost: it may be frozen


@dataclass
class Member:
    """What a worker has of a fit."""

    shard: Shard
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "pyboomer"))
    team: "WorkerTeam | None" = None  # of the leader
    learner: ClusterLearner | None = None


MEMBERS: dict[tuple[str, str], Member] = {}  # by fit and address: workers may share a process


async def _do(member: Member, work: Callable[..., Any], *arguments: Any) -> Any:
    """Let the member's thread work, so that the worker can go on exchanging messages."""
    return await asyncio.get_running_loop().run_in_executor(member.thread, work, *arguments)


def _unwrap(content: Any) -> Any:
    """What was sent: workers of one process receive it as it was wrapped."""
    return content.data if isinstance(content, ToPickle) else content


def _make_handler(address: str) -> Callable[..., Any]:
    """How the worker at an address answers its leader."""

    async def answer(fit: str, orders: Sequence[Order]) -> Any:
        member = MEMBERS.get((fit, address))
        if member is None:
            raise RuntimeError("this worker is no longer part of the fit")
        return ToPickle(await _do(member, member.shard.obey, _unwrap(orders)))

    return answer


class WorkerTeam:
    """The team as its leader sees it, see `engine.cluster.steps.Team`."""

    def __init__(self, fit: str, worker: Worker, shard: Shard, others: Sequence[str]) -> None:
        self.fit, self.worker, self.shard, self.others = fit, worker, shard, others
        self.comms: dict[str, Comm] = {}  # kept, so that a worker is lost as soon as its connection is
        self.turns = {address: asyncio.Lock() for address in others}  # of messages: the next one when one is answered
        self.own: deque[tuple[Sequence[Order], Future[Any]]] = deque()  # orders to the shard that is here
        self.closed = False

    def ask(self, orders: Sequence[Order]) -> Callable[[], list[Any]]:
        """Let every shard obey some orders; returns who waits for the answers.

        Others obey at once. The shard that is here obeys when its answer is waited for: until then, the leader has
        something better to do.
        """
        loop = self.worker.loop.asyncio_loop
        asked = [asyncio.run_coroutine_threadsafe(self._ask_one(address, orders), loop) for address in self.others]
        own: Future[Any] = Future()
        self.own.append((orders, own))

        def wait() -> list[Any]:
            while not own.done():  # what was ordered first comes first
                first, answer = self.own.popleft()
                answer.set_result(self.shard.obey(first))
            return [answer.result() for answer in (own, *asked)]

        return wait

    async def _ask_one(self, address: str, orders: Sequence[Order]) -> Any:
        async with self.turns[address]:
            try:
                if self.closed:
                    raise ConnectionError("the fit has ended")
                if address not in self.comms:
                    self.comms[address] = await self.worker.rpc.connect(address, timeout=CONNECTING)
                message = {"op": OPERATION, "fit": self.fit, "orders": ToPickle(list(orders))}
                return _unwrap(await send_recv(self.comms[address], **message))
            except (TimeoutError, OSError) as error:
                raise ConnectionError(f"worker {address} was lost ({type(error).__name__})") from None

    def close(self) -> None:
        """Give the connections back, but for those that an answer may still come by."""
        self.closed = True
        while self.comms:
            address, comm = self.comms.popitem()
            if self.turns[address].locked():
                comm.abort()
            self.worker.rpc.reuse(address, comm)


# --- What the client lets workers do ----------------------------------------------------------------------------------


async def fetch(keys: Sequence[str], worker: Worker) -> list[Any]:
    """Blocks that the worker has, or others have.

    It is not Dask that moves them: its memory manager may drop a copy at any time, and refuses those for a worker that
    is short of memory.
    """
    blocks = {key: worker.data[key] for key in keys if key in worker.data}
    missing = [key for key in keys if key not in blocks]
    has = await worker.scheduler.who_has(keys=missing) if missing else {}
    for key in missing:  # one by one, so that messages stay small
        blocks |= (await gather_from_workers({key: has[key]}, worker.rpc, who=worker.address))[0]
        if key not in blocks:
            raise ConnectionError(f"worker {next(iter(has[key]), 'that had a block')} was lost")
    return [blocks[key] for key in keys]


async def join(
    fit: str, keys: Mapping[str, tuple[list[str], list[str]]], duty: Duty, n_jobs: int | str | None, dask_worker: Worker
) -> int:
    """Make a shard of some blocks, those learned from and those held out; returns its size."""
    blocks, held_out = [await fetch(some, dask_worker) for some in keys[dask_worker.address]]
    with parallel_config(backend="threading"):  # the process is a daemon, of which joblib believes that it has one
        n_threads = dask_worker.state.nthreads if n_jobs in ("auto", None) else count_threads(n_jobs, much=True)
    shard = await asyncio.get_running_loop().run_in_executor(None, make_shard, blocks, held_out, duty, n_threads)
    MEMBERS[fit, dask_worker.address] = Member(shard)
    dask_worker.handlers[OPERATION] = _make_handler(dask_worker.address)
    return shard.n


async def lead(fit: str, others: Sequence[str], course: Course, dask_worker: Worker) -> list[Chunk]:
    """Become the leader; returns the rules that there are at the beginning."""
    member = MEMBERS[fit, dask_worker.address]
    member.team = team = WorkerTeam(fit, dask_worker, member.shard, others)
    member.learner = await _do(member, ClusterLearner, team, course, member.shard.threads.n_threads)
    return member.learner.take_rules()


async def learn(fit: str, count: int, dask_worker: Worker) -> list[Chunk]:
    """Learn further rules."""
    member = MEMBERS[fit, dask_worker.address]
    assert member.learner is not None
    await _do(member, member.learner.learn, count)
    return member.learner.take_rules()


async def measure(fit: str, held_out: bool, dask_worker: Worker) -> float:
    """The mean loss."""
    member = MEMBERS[fit, dask_worker.address]
    assert member.learner is not None
    learner = member.learner
    return float(await _do(member, learner.held_out_loss if held_out else learner.training_loss))


async def leave(fit: str, dask_worker: Worker) -> None:
    """Forget a fit."""
    member = MEMBERS.pop((fit, dask_worker.address), None)
    if member is not None:
        member.thread.shutdown(wait=False)
        member.shard.close()
        if member.team is not None:
            member.team.close()
        if member.learner is not None:
            member.learner.close()


# --- The client -------------------------------------------------------------------------------------------------------


class TeamEngine:
    """The engine as the client sees it, see `engine.promise.Engine`: rules are here as soon as they are learned."""

    def __init__(
        self,
        client: Client,
        keys: Mapping[str, tuple[list[str], list[str]]],
        course: Course,
        n_jobs: int | str | None,
    ) -> None:
        self.client, self.fit, self.addresses = client, uuid4().hex, sorted(keys)
        self.n_rules, self.loss = course.n_rules, float("nan")
        self.chunks: list[Chunk] = []
        self.failed = self.lost = False
        try:
            sizes = self._call(self.addresses, join, dict(keys), course.duty, n_jobs)
            self.leader = min(sizes, key=lambda address: (sizes[address], address))  # who leads has more to do
            self._add(self._ask(lead, [address for address in self.addresses if address != self.leader], course))
        except BaseException:
            self.close()
            raise

    def _call(self, workers: Sequence[str], function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Let some workers do something; returns what each has to say."""
        try:
            return self._wait(lambda: dict(self.client.run(function, self.fit, *arguments, workers=workers)))
        except OSError as error:
            self.failed = self.lost = True
            what = str(error)
            if not isinstance(error, ConnectionError):
                gone = sorted({*workers} - {*self._await_loss()}) or workers
                what = f"worker {gone[0]} was lost ({type(error).__name__})"
            kept = "No rule had been learned: fit again"
            if self.n_rules > 0:
                kept = (
                    f"The {self.n_rules} rules learned so far are kept: set warm_start=True and fit again to go on "
                    "with them"
                )
            raise RuntimeError(f"training on the cluster ended: {what}. {kept}") from error
        except BaseException:
            self.failed = True
            raise

    def _wait(self, call: Callable[[], Any]) -> Any:
        """What a call returns, as long as all workers are there: it would wait for one that is frozen for ever."""
        answer: Future[Any] = Future()

        def work() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)

        self._refuse_loss()
        Thread(target=work, daemon=True).start()
        while not wait([answer], CHECKING).done:
            self._refuse_loss()
        return answer.result()

    def _refuse_loss(self) -> None:
        if lost := sorted({*self.addresses} - {*self._list_left()}):
            raise ConnectionError(f"worker {lost[0]} was lost")

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Let the leader do something."""
        return self._call([self.leader], function, *arguments)[self.leader]

    def _list_left(self) -> list[str]:
        """The workers that are still there."""

        def list_silence(dask_scheduler: Scheduler) -> dict[str, float]:
            return {address: now() - worker.last_seen for address, worker in dask_scheduler.workers.items()}

        silence = self.client.run_on_scheduler(list_silence)
        return [address for address in self.addresses if silence.get(address, SILENCE) < SILENCE]

    def _add(self, chunks: list[Chunk]) -> None:
        self.chunks += chunks
        self.n_rules += len(chunks)

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        self._add(self._ask(learn, count))

    def take_rules(self) -> list[Chunk]:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return chunks

    def training_loss(self) -> float:
        """The mean loss of the training examples; the last one known, if the team is no more."""
        if not self.failed:
            self.loss = self._ask(measure, False)
        return self.loss

    def held_out_loss(self) -> float:
        """The mean loss of the examples held out."""
        return float(self._ask(measure, True))

    def _await_loss(self) -> list[str]:
        """The workers that are still there, once it is known that one is lost, if one is."""
        end = time.monotonic() + NOTICING * self.lost
        while (left := self._list_left()) == self.addresses and time.monotonic() < end:
            time.sleep(0.02)
        return left

    def close(self) -> None:
        """Let the workers forget."""
        if left := self._await_loss():  # to ask a worker that is lost would take long
            self.client.run(leave, self.fit, workers=left, on_error="ignore")
