"""Stops a process at the points of `tests.kill.kill_points`, until the test decides.

The product knows nothing of it: functions that execute a query, run git, touch files or talk to an
agent are wrapped by name, in the process that the test forked.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from psycopg import AsyncConnection, AsyncCopy, AsyncCursor, AsyncTransaction
from psycopg.pq import TransactionStatus

from draftsman.agent_runs import run as _run  # noqa: F401 - imports all that is wrapped
from draftsman.agent_runs.clones import git as running
from draftsman.agent_runs.protocol.codec import parse_line
from draftsman.agent_runs.session import agent_session
from draftsman.database.pinned_connection import PinnedConnection, Statement
from draftsman.sandbox.processes.process import AgentProcess, MalformedLine
from draftsman_bots.forge_kinds.gitea import Gitea
from draftsman_bots.forge_kinds.github import GitHub
from draftsman_bots.forge_kinds.gitlab import GitLab
from tests.kill import kill_points

GO_ON: Final = b"g"
LOSE_REPLY: Final = b"l"
"""Continue, and let the last request fail as if its reply had been lost."""
_place: ContextVar[str] = ContextVar("place")
EXCHANGE: Final = "claim.exchange"
SETTLING: Final = "claim.exchange of runs"
"""The exchange that settles runs; most of them only claim."""
ENDS: Final = ("after", "committed")


class Probe:
    """The points at which this process still has to stop; it reports each point it reaches.

    Points that it reaches without a stop are reported, too, once.
    """

    def __init__(self, channel: socket.socket, pending: set[str]) -> None:
        self._channel = channel
        self._pending = pending
        self._told: set[str] = set()
        self._connections: dict[int, AsyncConnection[Any]] = {}
        self._uncommitted: dict[int, list[str]] = {}

    def at(self, *names: str) -> bool:
        """Stop here, with every task and connection as they are; return whether to lose a reply.

        Several names may be the same instant: that of a transaction's end is of all its queries.
        """
        new = [name for name in names if name not in self._told]
        if not new:
            return False
        self._told.update(new)
        stop = not self._pending.isdisjoint(new)
        backends = [pid for pid, conn in self._connections.items() if not conn.closed]
        report = {"points": new, "stop": stop, "backends": backends}
        self._channel.sendall(json.dumps(report).encode() + b"\n")
        return stop and self._wait()

    def install(self) -> None:
        """Wrap all functions with points."""
        self._wrap_queries()
        self._wrap_copies()
        self._wrap_transactions()
        self._wrap_git()
        self._wrap_files()
        self._wrap_agent()
        self._wrap_forges()

    def _wait(self) -> bool:
        order = self._channel.recv(1)
        if not order:  # the test has ended
            sys.exit(1)
        return order == LOSE_REPLY

    def _wrap_queries(self) -> None:
        execute = AsyncCursor.execute
        names = kill_points.texts()
        probe = self

        async def wrapped(self: AsyncCursor[Any], query: Any, *args: Any, **more: Any) -> Any:
            name = names.get(query) if isinstance(query, str) else None
            if name is None:
                return await execute(self, query, *args, **more)
            call = partial(execute, self, query, *args, **more)
            return await probe._around_query(name, self.connection, call, args[0] if args else None)

        AsyncCursor.execute = wrapped  # type: ignore[method-assign]
        fetch = PinnedConnection.fetch

        async def fetching(self: PinnedConnection, statement: Statement, params: Any) -> Any:
            call = partial(fetch, self, statement, params)
            return await probe._around_query(names[statement.query], self, call, params)

        PinnedConnection.fetch = fetching  # type: ignore[method-assign]

    async def _around_query(
        self,
        name: str,
        conn: AsyncConnection[Any],
        call: Callable[[], Awaitable[Any]],
        values: Any = None,
    ) -> Any:
        self._connections[conn.info.backend_pid] = conn
        names = [name, SETTLING] if name == EXCHANGE and values["jobs"] != "{}" else [name]
        self.at(*(f"{name} before" for name in names))
        result = await call()
        if kill_points.is_read(name):
            return result
        if conn.info.transaction_status is not TransactionStatus.IDLE:
            self.at(*(f"{name} after" for name in names))
            self._uncommitted.setdefault(id(conn), []).extend(names)
        elif self.at(*(f"{name} {moment}" for name in names for moment in ENDS)):
            await AsyncCursor(conn).execute("SELECT 1")
        return result

    def _wrap_copies(self) -> None:
        copy = AsyncCursor.copy
        names = kill_points.texts()
        reads = kill_points.is_read
        probe = self

        @asynccontextmanager
        async def wrapped(
            self: AsyncCursor[Any], query: Any, *args: Any
        ) -> AsyncIterator[AsyncCopy]:
            name = names[query]
            conn = self.connection
            probe._connections[conn.info.backend_pid] = conn
            probe.at(f"{name} before")
            async with copy(self, query, *args) as lines:
                yield lines
            if not reads(name):
                probe.at(f"{name} after")
                probe._uncommitted.setdefault(id(conn), []).append(name)

        AsyncCursor.copy = wrapped  # type: ignore[method-assign, assignment]

    def _wrap_transactions(self) -> None:
        leave = AsyncTransaction.__aexit__
        probe = self

        async def wrapped(self: AsyncTransaction, *error: Any) -> bool:
            conn = self.connection
            swallowed = await leave(self, *error)
            if conn.info.transaction_status is not TransactionStatus.INTRANS:
                names = probe._uncommitted.pop(id(conn), [])
                if error[0] is None and probe.at(*(f"{name} committed" for name in names)):
                    await AsyncCursor(conn).execute("SELECT 1")
            return swallowed

        AsyncTransaction.__aexit__ = wrapped  # type: ignore[method-assign, assignment]

    def _wrap_git(self) -> None:
        git = running.git
        talk = running._communicate

        def wrapped(*command: str, **more: Any) -> Awaitable[bytes]:
            word = kill_points.subcommand(list(command))
            caller = sys._getframe(1)
            module = Path(caller.f_code.co_filename).stem
            if caller.f_code.co_name in kill_points._relays(module) and caller.f_back is not None:
                caller = caller.f_back
            return self._around(f"git {_where(caller)} {word}", lambda: git(*command, **more))

        async def talking(*args: Any) -> Any:
            if place := _place.get(""):
                self.at(f"{place} during")
            return await talk(*args)

        running._communicate = talking  # type: ignore[assignment]
        for name, module in list(sys.modules.items()):
            if name.rpartition(".")[2] not in kill_points.modules():
                continue
            if not kill_points.drives_agents(name):
                continue
            if getattr(module, "git", None) is git and module is not running:
                module.git = wrapped  # type: ignore[attr-defined]

    def _wrap_files(self) -> None:
        to_thread = asyncio.to_thread

        def wrapped(call: Callable[..., Any], *args: Any, **more: Any) -> Awaitable[Any]:
            place = f"files {_where(sys._getframe(1))} {call.__name__}"
            return self._around(place, lambda: to_thread(call, *args, **more))

        asyncio.to_thread = wrapped  # type: ignore[assignment]

    def _wrap_agent(self) -> None:
        post = AgentProcess.post
        hear = agent_session.AgentSession._receive

        def told(process: AgentProcess, line: bytes) -> None:
            name = f"agent is told {json.loads(line)['type']}"
            self._around_call(name, lambda: post(process, line))

        async def heard(talk: Any, process: AgentProcess, line: bytes | MalformedLine) -> None:
            message = line if isinstance(line, MalformedLine) else parse_line(line)
            kind = "nonsense" if isinstance(message, MalformedLine) else message.type
            await self._around(f"agent says {kind}", lambda: hear(talk, process, line))

        AgentProcess.post = told  # type: ignore[method-assign, assignment]
        agent_session.AgentSession._receive = heard  # type: ignore[method-assign, assignment]
        for name in kill_points.process_methods():
            self._wrap_method(name)

    def _wrap_forges(self) -> None:
        for name in kill_points.forge_calls():
            for kind in (GitHub, GitLab, Gitea):
                setattr(kind, name, self._forge_call(name, getattr(kind, name)))

    def _forge_call(self, name: str, method: Callable[..., Awaitable[Any]]) -> Any:
        def wrapped(*args: Any, **more: Any) -> Any:
            return self._around(f"forge {name}", lambda: method(*args, **more))

        return wrapped

    def _wrap_method(self, name: str) -> None:
        method = vars(AgentProcess)[name]
        place = f"agent process {name}"
        if isinstance(method, classmethod):
            inner = method.__func__
            wrapped: Any = classmethod(
                lambda cls, *args, **more: self._around(place, lambda: inner(cls, *args, **more))
            )
        elif asyncio.iscoroutinefunction(method):

            def wrapped(process: AgentProcess) -> Any:
                return self._around(place, lambda: method(process))
        else:

            def wrapped(process: AgentProcess) -> Any:
                return self._around_call(place, lambda: method(process))

        setattr(AgentProcess, name, wrapped)

    def _around_call(self, place: str, call: Callable[[], Any]) -> Any:
        self.at(f"{place} before")
        result = call()
        self.at(f"{place} after")
        return result

    async def _around(self, place: str, call: Callable[[], Awaitable[Any]]) -> Any:
        self.at(f"{place} before")
        token = _place.set(place)
        try:
            result = await call()
        finally:
            _place.reset(token)
        self.at(f"{place} after")
        return result


def _where(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}"
