"""Each odd value in each field of each payload of Slack, Trello, forges and pagers.

Needs nothing but the embedded server; takes three minutes.
"""

from __future__ import annotations

import pytest

from tests.bots.slack.transport import test_fuzz
from tests.bots.slack.transport.recorded import PAYLOADS
from tests.bots.slack.transport.test_fuzz import Send
from tests.bots.slack.transport.test_fuzz import send as send
from tests.bots.test_odd_webhooks import Post, refused_by_forges
from tests.bots.test_odd_webhooks import receivers as receivers
from tests.bots.trello.conftest import trello as trello
from tests.bots.trello.inbound import test_webhook
from tests.bots.trello.inbound.conftest import TrelloBotHarness
from tests.bots.trello.inbound.conftest import bench as bench
from tests.support.odd_json import oddities


@pytest.mark.timeout(3600)
def test_slack(send: Send) -> None:
    assert test_fuzz.refused(send, oddities(PAYLOADS, None)) == []


@pytest.mark.timeout(3600)
async def test_trello(bench: TrelloBotHarness) -> None:
    assert await test_webhook.refused(bench, None) == []


@pytest.mark.timeout(3600)
async def test_forges(receivers: tuple[Post, Post]) -> None:
    assert await refused_by_forges(receivers[0], None) == []
