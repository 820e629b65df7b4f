"""Two connections: at least one is open while the other is replaced, dropped or silent."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.runtime import Runtime
from draftsman_bots.slack.transport import socket_mode
from draftsman_testing.waits import until
from tests.bots.slack.transport.conftest import JobTexts
from tests.bots.slack.transport.service_harness import ANNA, ServiceHarness, over_sockets


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_refreshed_connection_loses_no_event(
    socket: ServiceHarness, jobs: JobTexts, reason: str
) -> None:
    slack = socket.slack
    for round_ in range(2):
        deliveries = [
            asyncio.create_task(slack.say(ANNA, socket.general, f"{round_}.{n}", retries=3))
            for n in range(5)
        ]
        await slack.sockets.disconnect(reason, round_)
        acks = await asyncio.gather(*deliveries)
        assert [ack.attempts for ack in acks] == [1] * 5
        await slack.sockets.wait(2, opened=3 + round_)
    assert sorted(await jobs.texts()) == sorted(f"{r}.{n}" for r in range(2) for n in range(5))
    assert socket.health.ready


async def test_dropped_connection_loses_no_event(socket: ServiceHarness, jobs: JobTexts) -> None:
    slack = socket.slack
    for n in range(4):
        slack.sockets.drop(0)
        assert (await slack.say(ANNA, socket.general, f"{n}", retries=3)).acked
    await slack.sockets.wait(2, opened=6)
    assert await jobs.texts() == [str(n) for n in range(4)]


async def test_disabled_socket_mode_stops_reconnecting(socket: ServiceHarness) -> None:
    slack = socket.slack
    await slack.sockets.disconnect("link_disabled")
    await socket.problem("disabled in the app's settings (link_disabled)")
    await slack.sockets.wait(0)
    opened = [call for call in slack.calls if call.method == "apps.connections.open"]
    assert len(opened) == socket_mode.CONNECTIONS


async def test_too_many_connections_is_reported(patient: Runtime) -> None:
    async with over_sockets(patient) as first:
        await first.slack.sockets.disconnect("too_many_websockets", 0)
        await first.problem("(too_many_websockets)")
        await first.slack.sockets.wait(1)


async def test_silent_connection_is_replaced(patient: Runtime, jobs: JobTexts) -> None:
    async with over_sockets(patient, ping=0.2) as rig:
        rig.slack.sockets.silence()
        ack = await rig.slack.say(ANNA, rig.general, "fix it", retries=5)
        assert ack.acked
        await rig.slack.sockets.wait(2, opened=4)
        assert rig.health.as_json()["last_request_seconds_ago"] is not None
    assert await jobs.texts() == ["fix it"]


async def test_connection_without_hello_is_replaced(patient: Runtime) -> None:
    async with over_sockets(patient, hello_timeout=0.3) as rig:
        rig.slack.sockets.mute = 1
        rig.slack.sockets.drop(0)
        await rig.slack.sockets.wait(2, opened=4)
        assert (await rig.slack.say(ANNA, rig.general, "fix it", retries=3)).acked


async def test_uninstalled_app_is_reported(either: ServiceHarness) -> None:
    tokens = {"type": "tokens_revoked", "tokens": {"oauth": ["U1"], "bot": []}}
    assert (await either.slack.event(tokens)).acked
    assert either.health.ready
    tokens = {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": ["U1"]}}
    assert (await either.slack.event(tokens)).acked
    await either.problem("Slack revoked draftsman's tokens")
    assert (await either.slack.event({"type": "app_uninstalled"})).acked
    await either.problem("was uninstalled from the workspace")


async def test_app_rate_limit_is_a_health_note(either: ServiceHarness) -> None:
    limited = {"type": "app_rate_limited", "minute_rate_limited": 1, "api_app_id": "A1"}
    assert (await either.slack.event(limited)).acked
    assert "over 30,000" in str(either.health.as_json()["notes"])
    assert either.health.ready


async def test_rejected_token_is_reported_as_a_problem(socket: ServiceHarness) -> None:
    async def check() -> bool:
        return len(socket.slack.calls) > call_count

    call_count = len(socket.slack.calls)
    socket.slack.world.app_token = "xapp-another"
    socket.slack.sockets.drop()
    await until(check, "another try")
    await socket.problem("Slack rejected a Socket Mode connection")
