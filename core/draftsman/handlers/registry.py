"""Which handler runs which job type: the built-in ones and those of the configuration."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module

from draftsman.domain.outcome import Outcome
from draftsman.errors import ConfigError
from draftsman.handlers.context import RunContext
from draftsman.handlers.run_agent.run import run_agent

Handler = Callable[[RunContext], Awaitable[Outcome]]


def _later(name: str) -> Handler:
    """Return a handler that is imported by its first job: it brings an HTTP client along."""

    async def handle(ctx: RunContext) -> Outcome:
        module = import_module(f"draftsman.handlers.builtin.{name}")
        handler: Handler = getattr(module, name)
        return await handler(ctx)

    return handle


BUILT_IN: dict[str, Handler] = {
    "run_agent": run_agent,
    "http_request": _later("http_request"),
    "webhook_dispatch": _later("webhook_dispatch"),
    "llm_generate": _later("llm_generate"),
    "execute_tool": _later("execute_tool"),
    "send_notification": _later("send_notification"),
}


def load(configured: Mapping[str, str]) -> dict[str, Handler]:
    """Return every handler by its type.

    `configured` maps a type to `package.module:function`. Raises ConfigError, naming the key, for
    what cannot be imported or is no coroutine function.
    """
    return BUILT_IN | {name: _import(name, path) for name, path in configured.items()}


def _import(name: str, path: str) -> Handler:
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise ConfigError(f"handlers.{name} is {path!r}; give package.module:function")
    try:
        found = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # whatever the user's module raises on import
        why = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"handlers.{name}: {path} cannot be imported: {why}") from None
    if not inspect.iscoroutinefunction(found):
        raise ConfigError(f"handlers.{name}: {path} must be an async function that takes a context")
    return found  # type: ignore[no-any-return]
