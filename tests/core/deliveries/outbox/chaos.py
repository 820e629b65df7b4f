"""Many deliveries through a proxy that fails, by processes that are killed."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind, DeliveryStatus
from draftsman.processes.shutdown import blocked
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.http_server import serving
from draftsman_testing.waits import until
from tests.support.chat import FAULT_RATES, Chat, Proxy
from tests.support.statements import rows, value

ROOT = Path(__file__).resolve().parents[4]
POSTED = (
    "SELECT count(*) FROM draftsman.deliveries"
    " WHERE job = %s AND kind = 'question' AND status = 'sent'"
)
LIVE = (
    "SELECT count(*) FROM draftsman.deliveries WHERE status IN ('pending','sending','unconfirmed')"
)


class VisibleMessage(NamedTuple):
    """A message that people can see."""

    thread: str
    marker: str
    text: str


class ChaosBackend(Protocol):
    """A delivery backend with random faults."""

    fault_counts: Counter[str]
    """Counts of the faults, by name."""
    known: set[str]
    """The number of all faults."""

    async def open(self, stack: AsyncExitStack) -> Sequence[str]:
        """Start; return the module that delivers to it, and its address."""
        ...

    def target(self, n: int) -> str:
        """Return the target of a job."""
        ...

    async def reach(self, count: int) -> None:
        """Return once this number of messages were posted."""
        ...

    def seen(self) -> list[VisibleMessage]:
        """Return the visible messages, in order of arrival."""
        ...


class ChatBackend:
    """A chat behind a proxy that fails."""

    def __init__(self, seed: int, channels: int = 5) -> None:
        self.known = set(FAULT_RATES)
        self._chat = Chat()
        self._seed = seed
        self._channels = channels
        self.fault_counts: Counter[str] = Counter()

    async def open(self, stack: AsyncExitStack) -> Sequence[str]:
        """Serve the chat and the proxy."""
        proxy = Proxy(await stack.enter_async_context(serving(self._chat.answer)), self._seed)
        stack.push_async_callback(proxy.close)
        self.fault_counts = proxy.fault_counts
        return "tests.core.deliveries.outbox.dispatch", await stack.enter_async_context(
            serving(proxy.answer)
        )

    def target(self, n: int) -> str:
        """Return a random channel."""
        return f"slack:C{n % self._channels}"

    async def reach(self, count: int) -> None:
        """Wait for the post."""
        reached = asyncio.Event()
        self._chat.on_change = lambda now: reached.set() if now >= count else None
        await reached.wait()

    def seen(self) -> list[VisibleMessage]:
        """Return the posts by thread."""
        return [
            VisibleMessage(thread, post.marker, post.text)
            for thread, posts in self._chat.threads.items()
            for post in posts
        ]


@dataclass
class ChaosRun:
    """A run: number of jobs, faults and kills."""

    backend: ChaosBackend

    jobs: int
    notices: int
    processes: int
    kills: int
    deadline: float
    timeout: float = 1.5
    """Seconds of a call; a killed dispatcher holds its claims four times as long."""
    killed: int = 0
    watch: Connection = field(init=False)

    async def run(self, make: Factory, conn: Connection) -> None:
        """Deliver all messages; up to twenty jobs ask questions, which are answered."""
        rt = make.rt
        self.watch = conn
        async with AsyncExitStack() as stack:
            module, *address = await self.backend.open(stack)
            processes = DispatcherProcesses(module, [rt.db.url, *address, str(self.timeout)])
            stack.push_async_callback(processes.stop)
            for _ in range(self.processes):
                await processes.start()
            async with asyncio.timeout(self.deadline), asyncio.TaskGroup() as group:
                group.create_task(self._kill(processes))
                await self._cause(make)
                await until(self._all_delivered, "all deliveries", self.deadline)

    async def _cause(self, make: Factory) -> None:
        asking = []
        numbers = []
        for n in range(self.jobs):
            fields: dict[str, Any] = {"notify": (self.backend.target(n),)}
            if n % max(5, self.jobs // 20):  # each run of a test holds a session
                numbers.append(await make.queued(**fields))
            else:
                asking.append((await make.asked(**fields)).number)
                numbers.append(asking[-1])
        for n in range(self.notices):
            for number in numbers:
                await make.rt.outbox.notice(number, str(n), f"notice {n}")
            if n == self.notices // 2:
                for number in asking[::2]:
                    await make.answer(number, "red")
        for number in asking[1::2]:  # once people can see it
            await until(partial(self._posted, number), f"D-{number}/1", self.deadline)
            await make.answer(number, "red")

    async def _posted(self, number: int) -> bool:
        return bool(await value(self.watch, POSTED, (number,)))

    async def _all_delivered(self) -> bool:
        return not await value(self.watch, LIVE)

    async def _kill(self, processes: DispatcherProcesses) -> None:
        """Kill a process at a fixed number of posts, and start another."""
        total = self.jobs * self.notices
        for n in range(1, self.kills + 1):
            await self.backend.reach(total * n // (self.kills + 1))
            await processes.kill_one()
            self.killed += 1
            await processes.start()

    async def check(self, rt: Runtime, conn: Connection) -> Counter[str]:
        """Check that each message is visible once, in order, and edited if necessary."""
        counts = await rows(
            conn,
            "SELECT id::text, seq, kind, status, thread_key, in_doubt FROM draftsman.deliveries",
        )
        kinds = Counter(str(kind) for _, _, kind, *_ in counts)
        assert kinds["notice"] == self.jobs * self.notices
        assert kinds["question_closed"] > 0, "no copy was edited"
        posts = self.backend.seen()
        counts_by_marker = Counter(post.marker for post in posts)
        assert max(counts_by_marker.values()) == 1, "a message is visible twice"
        for marker, seq, kind, status, *_ in counts:
            if kind is DeliveryKind.NOTICE:
                assert (status, counts_by_marker[marker]) == (DeliveryStatus.SENT, 1), seq
            elif kind is DeliveryKind.QUESTION:
                assert counts_by_marker[marker] == (status is DeliveryStatus.SENT), seq
        order = {marker: seq for marker, seq, *_ in counts}
        threads: defaultdict[str, list[int]] = defaultdict(list)
        for post in posts:
            threads[post.thread].append(order[post.marker])
        assert all(seqs == sorted(seqs) for seqs in threads.values())
        markers = {marker for marker, _, kind, *_ in counts if kind is DeliveryKind.QUESTION}
        question_posts = [post for post in posts if post.marker in markers]
        assert all("was answered by" in post.text for post in question_posts)
        assert {name: bad for name, bad in (await rt.read_model.invariants()).items() if bad} == {}
        return kinds


class DispatcherProcesses:
    """Processes that deliver."""

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._running: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        """Start another process."""
        with blocked():  # until it can handle them: a stop may follow at once
            process = await asyncio.create_subprocess_exec(*self._command, cwd=ROOT)
        self._running.append(process)

    async def kill_one(self) -> None:
        """Kill the oldest with SIGKILL."""
        process = self._running.pop(0)
        process.kill()
        await process.wait()

    async def stop(self) -> None:
        """Stop the other processes; each must exit by itself."""
        for process in self._running:
            if process.returncode is None:
                process.terminate()
        ends = [await process.wait() for process in self._running]
        assert ends == [0] * len(ends), "a dispatcher failed"
