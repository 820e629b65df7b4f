"""The fixtures of the kill tests."""

from __future__ import annotations

import pytest

from tests.kill.fault_points import place as place


@pytest.fixture
def database(own_database: str) -> str:
    """Give a database on the test's server, to which no process of another test can come back."""
    return own_database
