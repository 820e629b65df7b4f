"""Traces of a process, from its start to its end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from draftsman.settings.tracing import TracingSettings

_log = logging.getLogger(__name__)


@asynccontextmanager
async def tracing(settings: TracingSettings | None) -> AsyncIterator[None]:
    """Record the traces of this process during the block, if the configuration wants them."""
    if settings is None or not settings.is_on:
        yield
        return
    try:
        from draftsman.tracing.open_telemetry.export import exporting
    except ImportError as error:
        _log.warning("no traces are recorded without the extra otel of draftsman: %s", error)
        yield
        return
    async with exporting(settings.own_endpoint):
        yield
