"""Registry of handlers by job type: built-in and configured handlers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Protocol, runtime_checkable

from draftsman.errors import ConfigError
from draftsman.handlers.context import RunContext
from draftsman.jobs.runs.outcome import Outcome

Handler = Callable[[RunContext], Awaitable[Outcome]]


@runtime_checkable
class DeclaredType(Protocol):
    """A job type that its module declares with `@job`."""

    def handler(self) -> Handler:
        """Return its handler."""


def _lazy_handler(name: str, module: str | None = None) -> Handler:
    """Return a handler that is imported at its first job: its imports are slow and large."""
    path = f"draftsman.{module or f'handlers.job_types.{name}'}"

    async def handle(ctx: RunContext) -> Outcome:
        handler: Handler = getattr(import_module(path), name)
        return await handler(ctx)

    return handle


BUILT_IN: dict[str, Handler] = {
    "run_agent": _lazy_handler("run_agent", "agent_runs.run"),
    "http_request": _lazy_handler("http_request"),
    "webhook_dispatch": _lazy_handler("webhook_dispatch"),
    "llm_generate": _lazy_handler("llm_generate"),
    "execute_tool": _lazy_handler("execute_tool"),
    "send_notification": _lazy_handler("send_notification"),
    "ask_people": _lazy_handler("ask_people"),
    "merge_pull_request": _lazy_handler("merge_pull_request"),
}


def load(configured: Mapping[str, str]) -> dict[str, Handler]:
    """Return every handler by its job type.

    `configured` maps a job type to `package.module:function`. Raises ConfigError, which names the
    key, for a path that cannot be imported or is not a coroutine function.
    """
    return BUILT_IN | {name: _import(name, path) for name, path in configured.items()}


def _import(name: str, path: str) -> Handler:
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise ConfigError(
            f"handlers.{name}: {path!r} is not a handler path; use package.module:function"
        )
    try:
        handler = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # a user's module may raise anything on import
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"handlers.{name}: cannot import {path}: {reason}") from None
    if isinstance(handler, DeclaredType):
        return handler.handler()
    if not inspect.iscoroutinefunction(handler):
        raise ConfigError(
            f"handlers.{name}: {path} must be an async function with one parameter, the context, or"
            " a type that @job declares"
        )
    return handler  # type: ignore[no-any-return]
