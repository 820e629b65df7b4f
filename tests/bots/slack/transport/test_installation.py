"""An installation that is revoked and restored, over the whole service."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind, File
from draftsman.runtime import Runtime
from draftsman_bots.slack.deliveries.channel import SlackChannel, client
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.service import Service
from draftsman_bots.slack.transport import installation
from draftsman_bots.slack.transport.installation import Installation
from draftsman_testing.factories import Factory
from draftsman_testing.slack import FakeSlack
from draftsman_testing.waits import until
from tests.bots.slack.channel_fixtures import message
from tests.bots.slack.transport.service_harness import serving

REVOKED = {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": ["U1"]}}
POST = "chat.postMessage"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "BACKOFF", (0.02, 0.05))


@pytest.fixture
async def service(patient: Runtime, slack: FakeSlack) -> AsyncIterator[Service]:
    async with serving(patient, slack) as service:
        yield service


async def red(service: Service, part: str) -> None:
    async def look() -> bool:
        return part in service.health.as_json()["problems"].get(installation.INSTALLATION, "")

    await until(look, f"the problem {part!r}")


async def paused(conn: Connection) -> bool:
    cursor = await conn.execute(
        "SELECT paused_until > draftsman.now() FROM draftsman.channel_limits WHERE bucket = 'slack'"
    )
    return (await cursor.fetchone() or (False,))[0] is True


def posts(slack: FakeSlack) -> list[str]:
    return [call.outcome for call in slack.calls if call.method == POST]


@pytest.mark.parametrize(
    ("event", "problem"),
    [(REVOKED, "revoked draftsman's tokens"), ({"type": "app_uninstalled"}, "was uninstalled")],
)
async def test_pending_messages_are_sent_after_reinstall(
    service: Service,
    slack: FakeSlack,
    make: Factory,
    conn: Connection,
    general: str,
    event: dict[str, object],
    problem: str,
) -> None:
    slack.revoke()
    assert (await slack.event(event)).acked
    await red(service, problem)
    await until(lambda: paused(conn), "the pause")
    await make.queued(notify=(f"slack:{general}",))
    call_count = len(slack.calls)
    await slack.until(lambda: len(slack.calls) > call_count + 1, "another look at the token")
    assert posts(slack) == [], "it was known before a call could fail"
    slack.revoke(None)
    await slack.until(lambda: slack.messages(general), "what waited")
    assert service.health.ready
    assert not await paused(conn)


async def test_channel_resumes_when_the_token_works_again(
    service: Service, slack: FakeSlack, make: Factory, conn: Connection, general: str
) -> None:
    slack.revoke("account_inactive")
    await make.queued(notify=(f"slack:{general}",))
    await red(service, "account_inactive (chat.postMessage)")
    await until(lambda: paused(conn), "the pause")
    call_count = len(slack.calls)
    await slack.until(lambda: len(slack.calls) > call_count + 1, "another look at the token")
    assert posts(slack) == ["account_inactive"], "a hot retry"
    slack.revoke(None)
    await slack.until(lambda: slack.messages(general), "what waited")
    assert service.health.ready


async def test_restart_releases_a_pause_of_another_process(
    patient: Runtime, slack: FakeSlack, make: Factory, conn: Connection, general: str
) -> None:
    async with serving(patient, slack):
        slack.revoke()
        await make.queued(notify=(f"slack:{general}",))
        await until(lambda: paused(conn), "the pause")
    slack.revoke(None)
    async with serving(patient, slack):
        await slack.until(lambda: slack.messages(general), "what waited")


async def test_missing_scope_is_reported_until_its_method_works(
    rt: Runtime, slack: FakeSlack, general: str
) -> None:
    health = BotHealth()
    web = client(slack.bot_token, slack.api_url, 5)
    installation = Installation(health, web, rt.delivery_sender)
    channel = SlackChannel(web, timeout=5, account=installation)
    file = message(DeliveryKind.FILE, general, payload={"name": "a"})
    for scope in ("files:write", "channels:history"):
        slack.world.scopes.discard(scope)
    await channel.find(file)
    assert health.ready, "nobody has to let us look"
    await channel.upload(file, File("a", b"a"))
    assert "needs files:write" in str(health.as_json()["problems"])
    slack.world.scopes.add("files:write")
    await channel.upload(file, File("a", b"a"))
    assert health.ready
