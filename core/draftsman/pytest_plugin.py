"""The plugin of pytest: `draftsman_app`, which runs the declared jobs of a test in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from draftsman.testing.memory_app import MemoryApp


@pytest.fixture
def draftsman_app() -> Iterator[MemoryApp]:
    """Run the jobs that the test submits in memory, without a database, when it drains them."""
    from draftsman.testing.memory_app import memory_app

    with memory_app() as app:
        yield app
