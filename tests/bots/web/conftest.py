"""Fixtures of the web inbox."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from draftsman.runtime import Runtime
from tests.bots.web.web_side import Inbox, serving


@pytest.fixture
async def inbox(rt: Runtime) -> AsyncIterator[Inbox]:
    """Provide a running server."""
    async with serving(rt) as inbox:
        yield inbox
