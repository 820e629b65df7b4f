"""Components of a process: loops and servers that start, stop and fail together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from draftsman.processes.lifecycle import StopSignal

_log = logging.getLogger(__name__)


class Component(Protocol):
    """A loop or a server of a process."""

    @property
    def stop(self) -> StopSignal:
        """The signal to accept nothing new; `run` returns after the work in progress."""

    async def run(self) -> None:
        """Work until stopped; an error stops all components of the process."""


class Routine:
    """A component whose work is a function of its stop signal."""

    def __init__(self, work: Callable[[StopSignal], Awaitable[None]]) -> None:
        self.stop = StopSignal()
        self._work = work

    async def run(self) -> None:
        """Run the function."""
        await self._work(self.stop)


class ComponentGroup:
    """Components that run together; a group is a component itself.

    The components of a stage stop together. A stage stops when all of the stage before it have
    ended, so that work in progress can use what its end needs: a listener with a session lock, say.
    """

    def __init__(self, *stages: Sequence[Component]) -> None:
        self.stop = StopSignal(self._stop_first_stage)
        self._stages = stages
        self._errors: list[Exception] = []

    async def run(self) -> None:
        """Run all until the first stage has ended, then stop the others; raise the first error.

        When a component fails, all stop: a bot must not receive without sending.
        """
        async with asyncio.TaskGroup() as tasks:
            running = [
                [tasks.create_task(self._run(component)) for component in stage]
                for stage in self._stages
            ]
            for stage, stage_tasks in zip(self._stages, running, strict=True):
                if stage is not self._stages[0]:
                    _stop(stage)
                if stage_tasks:
                    await asyncio.wait(stage_tasks)
        if self._errors:
            raise self._errors[0]

    async def _run(self, component: Component) -> None:
        try:
            await component.run()
        except Exception as error:
            _log.error("%s failed: %s", type(component).__name__, error)
            self._errors.append(error)
            self.stop.set()

    def _stop_first_stage(self) -> None:
        _stop(self._stages[0])


def _stop(components: Sequence[Component]) -> None:
    for component in components:
        component.stop.set()
