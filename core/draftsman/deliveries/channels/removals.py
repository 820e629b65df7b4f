"""What live checks created in a service, to be removed at their end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from draftsman.errors import Failure

TIMEOUT: Final = 30.0
"""Seconds for each removal."""
LOST: Final = (None, "no_reply", "timeout")
"""Codes of a failure without a status whose call may have taken effect."""
T = TypeVar("T")
Remove = Callable[[], Awaitable[object]]


class Removals:
    """A stack of removals, of which each is tried."""

    def __init__(self) -> None:
        self._pending: list[tuple[str, Remove]] = []
        self._failed: list[str] = []

    def add(self, name: str, remove: Remove) -> None:
        """Remember what was created, by a name with which a person finds it."""
        self._pending.append((name, remove))

    async def created(
        self, what: str, create: Awaitable[T], removal: Callable[[T], tuple[str, Remove]]
    ) -> T:
        """Create something, and remember it; an interruption waits for the response.

        `removal` returns its name and how to remove it. What may exist after a lost response is in
        `left`.
        """
        task = asyncio.ensure_future(create)
        try:
            result = await asyncio.shield(task)
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(TIMEOUT):
                    self.add(*removal(await task))
            raise
        except Exception as error:
            if _may_exist(error):
                self._failed.append(f"{what} may exist: {error}")
            raise
        self.add(*removal(result))
        return result

    async def run(self) -> None:
        """Remove everything, the newest first; failures are in `left`."""
        while self._pending:
            name, remove = self._pending[-1]
            try:
                async with asyncio.timeout(TIMEOUT):
                    await remove()
            except Exception as error:
                self._failed.append(f"{name}: {type(error).__name__}: {error}")
            self._pending.pop()

    @property
    def left(self) -> list[str]:
        """What was not removed, and why: an interruption or the answer of the service."""
        return [*self._failed, *(f"{name}: interrupted" for name, _ in self._pending)]


def _may_exist(error: Exception) -> bool:
    """Return whether a call may have taken effect, by its error."""
    is_lost = isinstance(error, Failure) and error.http_status is None and error.code in LOST
    return is_lost or isinstance(error, TimeoutError)
