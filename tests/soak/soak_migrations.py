"""Ten processes that migrate at once while workers of two versions run; `make test` has fewer."""

from __future__ import annotations

import pytest

from tests.upgrade.conftest import database, release
from tests.upgrade.test_side_by_side import (
    _patience,
    test_no_job_is_lost_or_run_twice_while_processes_migrate,
    upgrade,
)

__all__ = [
    "_patience",
    "database",
    "release",
    "test_no_job_is_lost_or_run_twice_while_processes_migrate",
    "upgrade",
]


@pytest.fixture
def processes() -> int:
    """Provide the number of concurrent migrations."""
    return 10
