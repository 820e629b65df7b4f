"""Bots killed at each moment of a story; `make test` kills those of Slack at every other."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import _patience, installation, installations
from tests.acceptance.test_slack import (
    test_every_message_is_posted_once_although_each_process_is_killed as test_in_slack,
)
from tests.soak.trello_story import (
    test_every_message_is_posted_once_although_each_process_is_killed as test_on_trello,
)

__all__ = ["_patience", "installation", "installations", "test_in_slack", "test_on_trello"]


@pytest.fixture
def every() -> int:
    """Provide one moment for each kill of bots."""
    return 1
