"""`draftsman doctor --live`: its options, its output, and its end by a signal."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.faults import Fault
from draftsman_testing.trello import FakeTrello
from tests.support.distributions import Distribution, channel_source, installed
from tests.tui.cli.cli_runner import COMMAND, Cli, Terminal

CONFIG: Final = """
[trello]
api_url = "{trello}"
key = {{ env = "LIVE_KEY" }}
token = {{ env = "LIVE_TOKEN" }}

[slack]
api_url = "{slack}"
bot_token = {{ env = "LIVE_BOT" }}
app_token = {{ env = "LIVE_APP" }}
"""
FAX: Final = """
from draftsman.deliveries.channels.live_check import LiveCheck, LiveChecks, require


class Machine:
    plan = "Send a page to the fax machine?"
    facts = {"paper": "A4"}
    pages = []

    async def begin(self):
        self.pages.append("test")

    async def close(self):
        self.pages.clear()


async def connect(session):
    return Machine()


async def prints(machine):
    require(machine.pages == ["test"], "nothing was printed")
    return "a page was printed"


LIVE = LiveChecks(
    connect=connect,
    checks=(LiveCheck(name="prints", assumption="It prints", otherwise="Nothing", run=prints),),
)
"""


@pytest.fixture
async def trello() -> AsyncIterator[FakeTrello]:
    async with FakeTrello() as trello:
        yield trello


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as slack:
        yield slack


@pytest.fixture
def live(
    trello: FakeTrello,
    slack: FakeSlack,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Cli:
    """Give a command line without a database, with Trello and Slack."""
    secrets = {"KEY": trello.key, "TOKEN": trello.token}
    secrets |= {"BOT": slack.bot_token, "APP": slack.app_token}
    for name, value in secrets.items():
        monkeypatch.setenv(f"LIVE_{name}", value)
    config = tmp_path / "draftsman.toml"
    config.write_text(CONFIG.format(trello=trello.api_url, slack=slack.api_url))
    return Cli(config, capsys)


async def test_the_results_are_shown_and_written(
    live: Cli, trello: FakeTrello, tmp_path: Path
) -> None:
    report = tmp_path / "report.md"
    done = await live("doctor", "--live", "trello", "--yes", "--report", report)
    assert done.code == 1
    assert "ok    due-removed               the card has no due date\n" in done.out
    assert "warn  line-breaks               its question was not answered" in done.out
    assert done.out.endswith("trello: 10 held, 3 could not be tried\n")
    assert "draftsman: trello: 10 held, 3 could not be tried\n" in done.err
    text = report.read_text()
    assert text.startswith("# Live check of `trello`\n")
    assert f"- Trello: `{trello.api_url}`\n" in text
    assert "| `line-breaks` | could not be tried | A single line break in a comment" in text
    assert trello.token not in text
    assert trello.world.boards == {}


async def test_json_has_each_check(live: Cli) -> None:
    done = await live("doctor", "--live", "trello", "--yes", "--json")
    document: dict[str, Any] = json.loads(done.out)
    assert (document["ok"], document["service"], document["left"]) == (False, "trello", [])
    assert {check["outcome"] for check in document["checks"]} == {"held", "could not be tried"}


async def test_nothing_is_written_without_a_confirmation(live: Cli, trello: FakeTrello) -> None:
    done = await live("doctor", "--live", "trello")
    done.refused(2, "Create a board as @draftsmanbot", "--yes")
    assert [call for call in trello.calls if call.method != "GET"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--live", "slak"], ["is no configured service; configured: slack, trello;", "[mail]"]),
        (["--live", "slack", "--yes"], ["--in C012ABCDEF"]),
        (["--live", "trello", "--in", "https://trello.com/c/abcdefgh"], ["is a card"]),
        (["--live", "trello", "--yes", "--report", "/nowhere/r.md"], ["--report /nowhere/r.md:"]),
        (["--live", "trello", "--invariants"], ["either --live or --invariants"]),
        (["--in", "C1"], ["--in needs --live"]),
        (["--quick"], ["--quick needs --live"]),
    ],
)  # fmt: skip
async def test_wrong_options_are_refused(
    live: Cli, trello: FakeTrello, arguments: list[str], words: list[str]
) -> None:
    (await live("doctor", *arguments)).refused(2, *words)
    assert [call for call in trello.calls if call.method != "GET"] == []


async def test_the_channel_of_another_package_has_live_checks(live: Cli, tmp_path: Path) -> None:
    source = channel_source("fax", "Fax", live_checks="acme_fax_live:LIVE")
    source += "\nobject.__setattr__(CHANNEL, 'missing', lambda *_: None)\n"  # it needs no table
    modules = {"acme_fax": source, "acme_fax_live": FAX}
    distribution = Distribution("acme-fax", "1.2", {"fax": "acme_fax:CHANNEL"}, modules)
    with installed(tmp_path / "site", distribution):
        done = await live("doctor", "--live", "fax", "--yes")
    assert done.code == 0, done.err
    assert done.out == "ok    prints                    a page was printed\nfax: 1 held\n"


def _slack_channel(slack: FakeSlack) -> str:
    return slack.channel("live", [slack.user("anna")])


def _written(slack: FakeSlack) -> list[str]:
    return [ts for channel in slack.world.channels.values() for ts in channel.messages]


@pytest.mark.slow(
    fast="testing/draftsman_testing/channel/live_contract.py::"
    "test_an_interruption_removes_what_was_created"
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_removes_what_was_created(
    live: Cli, slack: FakeSlack, tmp_path: Path, number: signal.Signals
) -> None:
    channel = _slack_channel(slack)
    report = tmp_path / "report.md"
    slack.faults.next("assistant.threads.setStatus", Fault.SLOW(20))
    arguments = ("--live", "slack", "--in", channel, "--yes", "--report", str(report))
    running = await asyncio.create_subprocess_exec(
        *COMMAND, "--config", str(live.config), "doctor", *arguments, stderr=asyncio.subprocess.PIPE
    )
    await slack.until(lambda: _written(slack), "a message")
    running.send_signal(number)
    _, errors = await running.communicate()
    assert (running.returncode, b"Traceback" in errors) == (130, False)
    assert _written(slack) == []
    assert "the checks were interrupted" in report.read_text()


async def test_questions_are_asked_on_a_terminal(live: Cli, slack: FakeSlack) -> None:
    """And the interrupt key at a question removes what was created."""
    channel = _slack_channel(slack)

    def at_terminal() -> str:
        terminal = Terminal("--config", live.config, "doctor", "--live", "slack", "--in", channel)
        try:
            terminal.expect("remove them? [y/N]")
            terminal.type("y\n")
            terminal.expect("running in this thread.\u201d? (yes, no, skip)")
            terminal.type("yes\n")
            terminal.expect("gone from both? (yes, no, skip)")
            terminal.type("no\n")
            terminal.expect("with these signs?")
            terminal.type("\x03")
            assert terminal.end() == 130
            return terminal.plain
        finally:
            terminal.close()

    screen = await asyncio.to_thread(at_terminal)
    assert "ok    session-stop              the person saw" in screen
    assert "fail  status-removed            no: Open the threads" in screen
    assert "Traceback" not in screen
    assert _written(slack) == []
