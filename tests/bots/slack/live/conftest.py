"""Fixtures: a bot that shows runs in a fake Slack."""

from __future__ import annotations

import pytest

from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_testing.slack import FakeSlack
from tests.bots.slack.live.live_harness import LiveHarness
from tests.support.clock import Clock


@pytest.fixture
def live(rt: Runtime, slack: FakeSlack, make: Factory, clock: Clock, people: People) -> LiveHarness:
    return LiveHarness(rt, slack, make, clock, people)
