"""A fake server: real HTTP on a free port of 127.0.0.1, and a state with its own clock."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from aiohttp import web

from draftsman_testing import waits

T = TypeVar("T")
CallT = TypeVar("CallT")


@dataclass
class ServerState(Generic[CallT]):
    """The recorded calls, the clock and the ids of a fake."""

    base: str = ""
    """URL of the server, without a path."""
    page_url: str = ""
    """URL of its page in the browser, once it was served."""
    offset: float = 0.0
    """Seconds by which the clock is ahead."""
    calls: list[CallT] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after every call."""
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _last: int = 0
    """The last timestamp: each is later than all before it."""
    on_change: Callable[[], object] = field(default=lambda: None, repr=False)
    """Stores the state after a change."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what a file keeps: the state without its calls."""
        state = vars(self) | {"calls": [], "_ids": next(self._ids)}
        del state["called"], state["on_change"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        vars(self).update(state, _ids=itertools.count(state["_ids"]), called=asyncio.Event())
        self.on_change = lambda: None

    def now(self) -> float:
        """Return the clock, in seconds since 1970."""
        return time.time() + self.offset

    def record(self, call: CallT) -> None:
        """Record a call of the app."""
        self.calls.append(call)
        self.changed()

    def changed(self) -> None:
        """Store a change before the app or a person is told of it."""
        self.on_change()
        self.called.set()


class FakeServer(Generic[CallT]):
    """Serves the routes of a fake, and waits for calls of the app."""

    def __init__(self, state: ServerState[CallT]) -> None:
        self._state = state
        self._runner: web.AppRunner | None = None

    async def start(self, routes: Iterable[web.RouteDef], max_body: int) -> None:
        """Listen; a state that was restored has its port."""
        app = web.Application(client_max_size=max_body)
        app.add_routes(routes)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        port = urlsplit(self._state.base).port or 0
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self._state.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Stop listening and disconnect."""
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def state(self) -> ServerState[CallT]:
        """The state of the fake."""
        return self._state

    def keep_in(self, path: Path) -> None:
        """Store the state in a file, now and after each change."""
        self._state.on_change = partial(_write, self._state, path)
        self._state.on_change()

    @property
    def calls(self) -> list[CallT]:
        """Every call of the app, in order."""
        return self._state.calls

    async def wait_for_call(self) -> None:
        """Wait for the next call of the app."""
        self._state.called.clear()
        await self._state.called.wait()

    async def until(self, look: Callable[[], T], what: str) -> T:
        """Call `look` after every call until it returns a true value; return that."""
        try:
            async with asyncio.timeout(waits.DEADLINE):
                while not (result := look()):
                    await self.wait_for_call()
        except TimeoutError:
            raise AssertionError(f"{what}: not within {waits.DEADLINE:.0f} s") from None
        return result

    def later(self, seconds: float) -> None:
        """Advance the clock."""
        self._state.offset += seconds


def _write(state: ServerState[Any], path: Path) -> None:
    written = path.with_suffix(".new")
    written.touch(0o600)
    written.write_bytes(pickle.dumps(state))
    written.replace(path)


def read_state(path: Path) -> Any:
    """Return the state that a fake stored in a file of this user."""
    return pickle.loads(path.read_bytes())
