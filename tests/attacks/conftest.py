"""Places for processes, as the acceptance tests have them."""

from __future__ import annotations

from tests.acceptance.conftest import _patience, database, place, places

__all__ = ["_patience", "database", "place", "places"]
