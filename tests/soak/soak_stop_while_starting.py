"""A signal at all stages of starting: `make test` signals at some stages of a command."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import _patience, installation, installations
from tests.acceptance.test_stop_while_starting import (
    Choice,
    test_a_bot,
    test_a_demo_is_interrupted,
    test_a_soak_is_interrupted,
    test_a_worker,
    test_other_commands_end_by_the_signal,
    test_the_dashboard,
    test_up_on_a_terminal,
    test_up_without_a_terminal,
)

__all__ = [
    "_patience",
    "installation",
    "installations",
    "test_a_bot",
    "test_a_demo_is_interrupted",
    "test_a_soak_is_interrupted",
    "test_a_worker",
    "test_other_commands_end_by_the_signal",
    "test_the_dashboard",
    "test_up_on_a_terminal",
    "test_up_without_a_terminal",
]


@pytest.fixture
def choose() -> Choice:
    """Choose all stages."""
    return lambda stages, every=5: stages
