"""Tools for tests of draftsman and its plugins: fakes of other services, jobs in any state."""

from __future__ import annotations

from typing import Final

TEST_URL: Final = "DRAFTSMAN_TEST_URL"
"""Variable with the URL of the PostgreSQL of the tests, as a superuser; by default the embedded."""
