"""The fixtures of the kill tests."""

from __future__ import annotations

import pytest

from tests.kill.fault_points import environment as environment


@pytest.fixture
def database(own_database: str) -> str:
    """Give a database that no process of another test uses, on the test's server."""
    return own_database
