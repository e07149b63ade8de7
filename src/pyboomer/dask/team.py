"""A team is the workers that learn together; they exchange messages by Dask's own connections, worker to worker.

These have whatever `Security` says, and no port is opened. One worker leads. Each fit has a name and, on each worker,
threads of its own, so that several fits at once do not wait for each other. The client receives rules as they are
learned: if a worker is lost, the rules learned so far are kept.
"""

import asyncio
import time
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

from pyboomer.engine.cluster.engine import ClusterEngine, make_shard
from pyboomer.engine.cluster.leader import Updates
from pyboomer.engine.cluster.shard import Learned, SampledRows, Shard
from pyboomer.engine.cluster.task import ClusterTask
from pyboomer.engine.protocol import Chunk
from pyboomer.learning.parallel import count_threads

OPERATION = "pyboomer"  # what messages between workers are called
LEAST_BYTES = 2**21  # of samples in a message; smaller ones would take longer to handle than to send
CONNECTING = 10  # seconds; a worker that cannot be reached by then is lost
NOTICING = 5  # seconds in which the scheduler notices, too
CHECKING = 5  # seconds after which the client asks whether all workers are still there
SILENCE = 20  # seconds; a worker that the scheduler has not heard of for as long is lost: it may be frozen


@dataclass
class Member:
    """What a worker has of a fit.

    One thread answers messages, and another learns bodies, so that a worker that learns still sends samples to others.
    The leader has a third one.
    """

    fit: str
    worker: Worker
    shard: Shard
    addresses: Sequence[str]  # of all workers of the team
    threads: dict[str, ThreadPoolExecutor] = field(default_factory=dict)
    comms: set[Comm] = field(default_factory=set)  # by which an answer is expected
    engine: ClusterEngine | None = None  # of the leader

    async def run(self, thread: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Let a thread work, while the worker goes on exchanging messages."""
        if thread not in self.threads:
            self.threads[thread] = ThreadPoolExecutor(1, f"pyboomer-{thread}")
        return await asyncio.get_running_loop().run_in_executor(self.threads[thread], work, *arguments)

    async def answer(self, updates: Updates, name: str, arguments: Sequence[Any]) -> Any:
        """Answer a message of the leader, or of another worker."""
        if name == "learn_bodies":
            return await self.learn_bodies(updates, *arguments)
        return await self.run("answers", self.shard.answer, updates, name, arguments)

    async def learn_bodies(self, updates: Updates, rules: Sequence[int]) -> Learned:
        """Gather samples from all shards, and learn bodies: from the first samples while others are on their way."""
        size = self.shard.task.count_bytes()
        count = max(self.shard.learning.n_threads, -(-LEAST_BYTES * len(self.addresses) // size))
        batches = [rules[begin : begin + count] for begin in range(0, len(rules), count)]
        gathered = [asyncio.ensure_future(self.gather(updates, batch, i)) for i, batch in enumerate(batches)]
        try:
            parts = [
                await self.run("bodies", self.shard.learn_bodies, batch, await samples)
                for batch, samples in zip(batches, gathered, strict=True)
            ]
        finally:
            for samples in gathered:
                samples.cancel()
        return Learned([body for part in parts for body in part.bodies], max(part.largest for part in parts))

    async def gather(self, updates: Updates, rules: Sequence[int], number: int) -> list[SampledRows]:
        """What all shards have of some samples; the number tells apart what is gathered at the same time."""

        async def draw() -> SampledRows:
            await self.answer(updates, "update", ())
            return await self.run("bodies", self.shard.draw, rules)

        own = self.worker.address
        others = [address for address in self.addresses if address != own]
        asked = [self.ask_one(address, updates, "gather", (rules, (own, number))) for address in others]
        return await asyncio.gather(*asked, draw())

    async def ask_one(self, address: str, *message: Any) -> Any:
        """What one shard answers."""
        if address == self.worker.address:
            return await self.answer(*message)
        pool = self.worker.rpc
        try:
            comm = await pool.connect(address, timeout=CONNECTING)
        except (TimeoutError, OSError) as error:
            raise _describe_loss(address, error) from None
        self.comms.add(comm)
        try:
            return _unwrap(await send_recv(comm, op=OPERATION, fit=self.fit, message=ToPickle(message)))
        except (TimeoutError, OSError) as error:
            raise _describe_loss(address, error) from None
        finally:
            self.comms.discard(comm)
            pool.reuse(address, comm)

    def close(self) -> None:
        """End the threads, and give up on answers."""
        for comm in self.comms:
            comm.abort()
        for thread in self.threads.values():
            thread.shutdown(wait=False)
        self.shard.close()


MEMBERS: dict[tuple[str, str], Member] = {}  # by fit and address: workers may share a process


def _describe_loss(address: str, error: BaseException) -> ConnectionError:
    return ConnectionError(f"worker {address} was lost ({type(error).__name__})")


def _unwrap(content: Any) -> Any:
    """What was sent: workers of one process receive it as it was wrapped."""
    return content.data if isinstance(content, ToPickle) else content


def _make_handler(address: str) -> Callable[..., Any]:
    """How the worker at an address answers others."""

    async def answer(fit: str, message: Any) -> Any:
        member = MEMBERS.get((fit, address))
        if member is None:
            raise RuntimeError("this worker is no longer part of the fit")
        return ToPickle(await member.answer(*_unwrap(message)))

    return answer


class WorkerTeam:
    """The team as the thread of its leader sees it, see `engine.cluster.leader.Team`.

    `threads` says how many threads each worker has, by address; the leader is the first, so that the body of a round of
    one rule is learned where it is needed next.
    """

    def __init__(self, leader: Member, threads: Mapping[str, int]) -> None:
        self.leader, self.addresses, self.n_threads = leader, list(threads), list(threads.values())

    def ask(self, updates: Updates, name: str, arguments: Sequence[Any]) -> list[Any]:
        """What all shards answer."""
        return self._wait([(address, (updates, name, arguments)) for address in self.addresses])

    def learn_bodies(self, updates: Updates, shares: Mapping[int, Sequence[int]]) -> list[Learned]:
        """Let workers learn the bodies of their shares of the rules."""
        return self._wait([(self.addresses[i], (updates, "learn_bodies", (share,))) for i, share in shares.items()])

    def _wait(self, messages: Sequence[tuple[str, Any]]) -> list[Any]:
        async def ask() -> list[Any]:
            return await asyncio.gather(*(self.leader.ask_one(address, *message) for address, message in messages))

        return asyncio.run_coroutine_threadsafe(ask(), self.leader.worker.loop.asyncio_loop).result()


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
    fit: str,
    keys: Mapping[str, tuple[list[str], list[str]]],
    task: ClusterTask,
    n_jobs: int | str | None,
    dask_worker: Worker,
) -> tuple[int, int]:
    """Make a shard of some blocks, those learned from and those held out; returns its size and its threads."""
    blocks, held_out = [await fetch(some, dask_worker) for some in keys[dask_worker.address]]
    with parallel_config(backend="threading"):  # the process is a daemon, of which joblib believes that it has one
        n_threads = dask_worker.state.nthreads if n_jobs in ("auto", None) else count_threads(n_jobs, much=True)
    shard = await asyncio.get_running_loop().run_in_executor(None, make_shard, blocks, held_out, task, n_threads)
    MEMBERS[fit, dask_worker.address] = Member(fit, dask_worker, shard, sorted(keys))
    dask_worker.handlers[OPERATION] = _make_handler(dask_worker.address)
    return shard.n, n_threads


async def lead(fit: str, threads: Mapping[str, int], task: ClusterTask, dask_worker: Worker) -> list[Chunk]:
    """Become the leader; returns the rules that there are at the beginning."""
    member = MEMBERS[fit, dask_worker.address]
    member.engine = await member.run("leader", ClusterEngine, WorkerTeam(member, threads), task)
    return member.engine.take_rules()


async def learn(fit: str, count: int, dask_worker: Worker) -> list[Chunk]:
    """Learn further rules."""
    member = MEMBERS[fit, dask_worker.address]
    assert member.engine is not None
    await member.run("leader", member.engine.learn, count)
    return member.engine.take_rules()


async def measure(fit: str, held_out: bool, dask_worker: Worker) -> float:
    """The mean loss."""
    member = MEMBERS[fit, dask_worker.address]
    engine = member.engine
    assert engine is not None
    return float(await member.run("leader", engine.held_out_loss if held_out else engine.training_loss))


async def leave(fit: str, dask_worker: Worker) -> None:
    """Forget a fit."""
    member = MEMBERS.pop((fit, dask_worker.address), None)
    if member is not None:
        member.close()


# --- The client -------------------------------------------------------------------------------------------------------


class TeamEngine:
    """The engine as the client sees it, see `engine.protocol.Engine`: rules are here as soon as they are learned."""

    def __init__(
        self,
        client: Client,
        keys: Mapping[str, tuple[list[str], list[str]]],
        task: ClusterTask,
        n_jobs: int | str | None,
    ) -> None:
        self.client, self.fit, self.addresses = client, uuid4().hex, sorted(keys)
        self.n_rules, self.loss = task.n_rules, float("nan")
        self.chunks: list[Chunk] = []
        self.failed = self.lost = False
        try:
            joined = self._call(self.addresses, join, dict(keys), task, n_jobs)
            self.leader = min(joined, key=lambda address: (joined[address][0], address))  # it has more to do
            order = [self.leader, *(address for address in self.addresses if address != self.leader)]
            self._add(self._ask(lead, {address: joined[address][1] for address in order}, task))
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
