"""A rule by which a person may not see a repository."""

from __future__ import annotations

import pytest

from draftsman.people import visibility
from draftsman.people.visibility import Viewer

SECRET = "secret"
"""The repository that the person may not see."""


def hide(monkeypatch: pytest.MonkeyPatch, person: str) -> None:
    """Let a person see the repository `pay` only."""

    def visible_repos(viewer: Viewer | None) -> list[str] | None:
        return ["pay"] if viewer is not None and viewer.voter == person else None

    monkeypatch.setattr(visibility, "visible_repos", visible_repos)
