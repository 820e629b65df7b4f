"""Fixtures of the acceptance tests for processes."""

from __future__ import annotations

from tests.acceptance.conftest import _patience, database, place, places

__all__ = ["_patience", "database", "place", "places"]
