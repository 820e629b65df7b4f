"""Fixtures: a bot that shows runs in a fake Slack."""

from __future__ import annotations

import pytest

from draftsman.runtime import Runtime
from tests.bots.slack.live.live_harness import LiveHarness
from tests.factories import Factory
from tests.support.clock import Clock
from tests.support.people import People
from tests.support.slack import FakeSlack


@pytest.fixture
def live(rt: Runtime, slack: FakeSlack, make: Factory, clock: Clock, people: People) -> LiveHarness:
    return LiveHarness(rt, slack, make, clock, people)
