"""What surrounds the runs of declared types: resources of their worker, and middleware.

@lifespan
async def database() -> AsyncIterator[Pool]:
    async with Pool() as pool:
        yield pool

In a job type, `database()` is the pool.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import update_wrapper
from typing import Any, Final, Generic, TypeVar, cast

from draftsman.errors import ConfigError, UsageError
from draftsman.jobs.runs.run import ClaimedJob

T = TypeVar("T")
M = TypeVar("M", bound=Callable[[ClaimedJob], Iterator[None] | AsyncIterator[None]])
_CLOSED: Final = object()


class Lifespan(Generic[T]):
    """A resource that is open while its worker runs, from before its first run to after its last.

    Call it for the resource.
    """

    def __init__(self, function: Callable[[], AsyncIterator[T]]) -> None:
        self._open = asynccontextmanager(function)
        self._value: Any = _CLOSED
        self.place = f"{function.__module__}:{function.__qualname__}"
        update_wrapper(cast(Any, self), function)

    def __call__(self) -> T:
        """Return what the function yielded; raises UsageError where it is not open."""
        if self._value is _CLOSED:
            raise UsageError(
                f"{self.place} is open in the process of a worker only; a run in a process of its"
                f" own opens its own, and a test has `with {self.place.rpartition(':')[2]}"
                ".replaced(value)`"
            )
        return cast(T, self._value)

    @contextmanager
    def replaced(self, value: T) -> Iterator[None]:
        """Let this be the resource inside the block, in a test."""
        before, self._value = self._value, value
        try:
            yield
        finally:
            self._value = before

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open the resource for the block; raises ConfigError if that fails."""
        async with AsyncExitStack() as stack:
            try:
                value = await stack.enter_async_context(self._open())
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                raise ConfigError(f"the lifespan {self.place} cannot start: {reason}") from error
            with self.replaced(value):
                yield


_lifespans: Final[list[Lifespan[Any]]] = []
_middleware: Final[list[Callable[[ClaimedJob], AbstractContextManager[None]]]] = []
_async_middleware: Final[list[Callable[[ClaimedJob], AbstractAsyncContextManager[None]]]] = []


def lifespan(function: Callable[[], AsyncIterator[T]]) -> Lifespan[T]:
    """Declare a resource of the worker by an async generator function that yields it once.

    Those of several declarations are opened in their order, and closed in the reverse order.
    """
    declared = Lifespan(function)
    _lifespans.append(declared)
    return declared


@asynccontextmanager
async def opened_lifespans() -> AsyncIterator[None]:
    """Open all declared resources for the block; raises ConfigError."""
    async with AsyncExitStack() as stack:
        for each in _lifespans:
            await stack.enter_async_context(each.opened())
        yield


def middleware(function: M) -> M:
    """Declare what surrounds each run of a declared type: a generator function that yields once.

    It gets the job. Of several declarations the first is the outermost. One that is not async runs
    where the function of the type runs: in its thread, its process, or its task.
    """
    if inspect.isasyncgenfunction(function):
        _async_middleware.append(asynccontextmanager(function))
    else:
        _middleware.append(contextmanager(cast(Any, function)))
    return function


@contextmanager
def surrounded(job: ClaimedJob) -> Iterator[None]:
    """Run the block inside the middleware that is not async."""
    error: BaseException | None = None
    with ExitStack() as stack:
        for each in _middleware:
            stack.enter_context(each(job))
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
    if error is not None:  # a middleware dropped it, and the run ended with it all the same
        raise error


@asynccontextmanager
async def surrounded_by_async(job: ClaimedJob) -> AsyncIterator[None]:
    """Run the block inside the async middleware."""
    error: BaseException | None = None
    async with AsyncExitStack() as stack:
        for each in _async_middleware:
            await stack.enter_async_context(each(job))
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
    if error is not None:
        raise error
