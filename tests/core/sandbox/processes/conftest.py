"""Guards of these tests are started as in production."""

from __future__ import annotations

import pytest

from tests.support.guard_forks import NEW_GUARD


@pytest.fixture(autouse=True)
def _new_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no guard by a fork."""
    monkeypatch.setenv(NEW_GUARD, "1")
