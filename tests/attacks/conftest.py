"""Fixtures of the acceptance tests for processes."""

from __future__ import annotations

from tests.acceptance.conftest import _patience, database, installation, installations

__all__ = ["_patience", "database", "installation", "installations"]
