"""A session that holds its transaction, for tests of workflows."""

from __future__ import annotations

from tests.core.races.conftest import first as first
