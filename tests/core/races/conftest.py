"""Two sessions for races: the first holds its work uncommitted."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from draftsman.runtime import Runtime
from tests.support.races import FirstSession, hold_commits


@pytest.fixture
async def first(rt: Runtime) -> AsyncIterator[FirstSession]:
    """Give the session that works first and commits when the test requests it."""
    async with hold_commits(rt) as first:
        yield first


@pytest.fixture(autouse=True)
async def _check_invariants(rt: Runtime) -> AsyncIterator[None]:
    """Check the invariants after every race."""
    yield
    broken = {
        name: violations
        for name, violations in (await rt.read_model.invariants()).items()
        if violations
    }
    assert broken == {}
