"""`draftsman bots` as a process: from a slash command to the job, and its startup errors."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from draftsman.errors import ConfigError
from draftsman.runtime import Runtime
from draftsman_bots.slack import credentials
from draftsman_bots.slack.settings import SlackSettings
from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.faults import Fault
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation
from tests.bots.slack.transport.conftest import JobTexts
from tests.bots.slack.transport.service_harness import ANNA
from tests.support.fork_server import children
from tests.support.statements import run

ANOTHERS = {
    "SLACK_BOT_TOKEN": "xoxb-another-app",
    "SLACK_SIGNING_SECRET": "another",
    "SLACK_CLIENT_ID": "1.2",
    "SLACK_CLIENT_SECRET": "another",
    "SLACK_VERIFICATION_TOKEN": "another",
}
"""Variables of another app that Bolt would read."""


@pytest.fixture
def place(folder: Path, database_url: str) -> Iterator[Installation]:
    place = Installation(folder / "place", database_url)
    yield place
    place.close()


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as slack:
        slack.user("anna", id=ANNA)
        yield slack


def configured(place: Installation, slack: FakeSlack, **more: Any) -> dict[str, str]:
    """Configure the bot for this Slack; return the variables with its secrets."""
    place.configure(
        people__anna__slack=ANNA,
        people__anna__roles=["invoker"],
        slack__api_url=slack.api_url,
        **{f"slack__{key}": value for key, value in more.items()},
    )
    with place.config.open("a") as config:
        for key, name in (("bot_token", "BOT"), ("app_token", "APP"), ("signing_secret", "SIGN")):
            if key != ("signing_secret" if "mode" not in more else "app_token"):
                config.write(f'slack.{key} = {{ env = "{name}" }}\n')
    return {"BOT": slack.bot_token, "APP": slack.app_token, "SIGN": slack.signing_secret}


async def test_command_through_a_socket_creates_a_job(
    place: Installation, slack: FakeSlack, jobs: JobTexts
) -> None:
    general = slack.channel("general", [ANNA])
    bots = place.start("bots", env=configured(place, slack))
    await slack.sockets.wait(2)
    ack = await slack.command(ANNA, general, "fix the parser", retries=3)
    assert ack.acked
    assert await jobs.texts() == ["the parser"]
    bots.signal(signal.SIGTERM)
    assert await bots.end() == 0
    await slack.sockets.wait(0)
    assert slack.bot_token not in bots.output_text
    assert "Traceback" not in bots.output_text
    assert "error" not in bots.output_text, "a start like any other is no trouble"


async def test_form_survives_a_killed_bot(
    place: Installation, slack: FakeSlack, jobs: JobTexts
) -> None:
    general = slack.channel("general", [ANNA])
    env = configured(place, slack)
    template = ("--type", "http_request", "--payload", '{"url": "https://example.org/"}')
    added = await place.run("templates", "add", "bump", "--parameter", "x", *template, "Do {x}")
    assert added.returncode == 0, added.stderr
    bots = place.start("bots", env=env)
    await slack.sockets.wait(2)
    assert (await slack.command(ANNA, general, "template bump", retries=3)).acked

    async def opened() -> bool:
        return bool(slack.views(ANNA))

    await until(opened, "the form")
    (view,) = slack.views(ANNA)
    bots.signal(signal.SIGKILL)
    await bots.end()
    await slack.sockets.wait(0)
    bots = place.start("bots", env=env)
    await slack.sockets.wait(2)
    await slack.submit(ANNA, view["id"], {"parameter:0": "it"}, copies=3)
    assert await jobs.texts() == ["Do it"]
    assert slack.views(ANNA) == []


async def test_the_file_of_a_request_survives_a_killed_bot(
    place: Installation, slack: FakeSlack, rt: Runtime
) -> None:
    general = slack.channel("general", [ANNA])
    env = configured(place, slack)
    bots = place.start("bots", env=env)
    await slack.sockets.wait(2)
    slack.faults.next("download", Fault.SLOW(3))
    file = slack.file(ANNA, "notes.md", b"use blue", "text/markdown")
    text = f"<@{slack.bot_user}> fix the colors"
    await slack.say(ANNA, general, text, more={"files": [file]}, retries=3)

    async def is_downloading() -> bool:
        return slack.faults.seen["slow"] > 0

    await until(is_downloading, "the download")
    bots.signal(signal.SIGKILL)
    await bots.end()
    await slack.sockets.wait(0)
    async with rt.db.connection() as conn:
        await run(
            conn, "UPDATE draftsman.attachments SET claimed_until = draftsman.now()"
        )  # a minute later
    bots = place.start("bots", env=env)
    (job,) = await rt.read_model.jobs()

    async def is_stored() -> bool:
        return [item.status for item in await rt.attachments.of_job(job.number)] == ["stored"]

    await until(is_stored, "the file")
    bots.signal(signal.SIGTERM)
    assert await bots.end() == 0
    assert slack.bot_token not in bots.output_text


async def test_up_supervises_the_bots_and_the_worker(
    place: Installation, slack: FakeSlack, jobs: JobTexts
) -> None:
    general = slack.channel("general", [ANNA])
    up = place.start("up", "--headless", env=configured(place, slack))
    await slack.sockets.wait(2)
    slack.sockets.acks.clear()
    assert (await slack.command(ANNA, general, "fix the parser", retries=3)).acked
    assert len(children(up.pid)) == 2
    up.signal(signal.SIGTERM)
    assert await up.end() == 0
    assert await jobs.texts() == ["the parser"]
    assert slack.sockets.count == 0


async def test_http_is_served_where_it_is_configured(
    place: Installation, slack: FakeSlack, jobs: JobTexts
) -> None:
    general = slack.channel("general", [ANNA])
    env = configured(place, slack, mode="http", listen="127.0.0.1:0") | ANOTHERS
    bots = place.start("bots", env=env)
    await bots.says("serving HTTP on 127.0.0.1:")
    port = bots.output_text.partition("serving HTTP on 127.0.0.1:")[2].split()[0]
    slack.request_url = f"http://127.0.0.1:{port}/slack/events"
    assert (await slack.command(ANNA, general, "fix the parser")).status == 200
    assert await jobs.texts() == ["the parser"]

    async def ready() -> bool:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/readyz") as reply,
        ):
            return bool((await reply.json())["ready"])

    await until(ready, "readiness")
    await slack.event_delivery.close()
    bots.signal(signal.SIGINT)
    assert await bots.end() == 0


async def test_bots_require_a_configured_channel(place: Installation) -> None:
    done = await place.run("bots")
    assert done.returncode == 2
    assert done.stderr.startswith("draftsman: no bot is configured; add events to [forges.NAME]")
    assert ", [slack] (draftsman help --page slack), [trello]" in done.stderr


def _slack(**more: Any) -> SlackSettings:
    base = {"bot_token": {"env": "BOT"}, "app_token": {"env": "APP"}}
    return SlackSettings.model_validate(base | more)


def test_http_and_socket_credentials_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT", "xoxb-1")
    monkeypatch.setenv("APP", "xapp-1")
    monkeypatch.setenv("SIGN", "s")
    signing = {"signing_secret": {"env": "SIGN"}}
    with pytest.raises(ConfigError, match="with mode 'socket', remove signing_secret"):
        credentials.read(_slack(**signing))
    with pytest.raises(ConfigError, match="with mode 'http', remove app_token"):
        credentials.read(_slack(mode="http", **signing))
    assert credentials.read(_slack()).app == "xapp-1"


@pytest.mark.parametrize(
    ("bot", "error"),
    [
        ("xapp-1-secret", "must begin with xoxb-; this value is app_token"),
        ("something", "must begin with xoxb-; this value is another kind of secret"),
        ("", "the variable BOT holds no secret"),
        ("xoxb-1\u00e9", "characters that are not allowed in a token"),
    ],
)
def test_invalid_token_is_refused(monkeypatch: pytest.MonkeyPatch, bot: str, error: str) -> None:
    monkeypatch.setenv("BOT", bot)
    monkeypatch.setenv("APP", "xapp-1")
    with pytest.raises(ConfigError, match=error) as caught:
        credentials.read(_slack())
    assert not bot or bot not in str(caught.value)
    assert "secret" not in repr(credentials.Credentials("secret", "secret", "secret"))
