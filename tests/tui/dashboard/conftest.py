"""Nothing of this terminal reaches a dashboard of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "COLORTERM", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let no test see what another one left in the state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
