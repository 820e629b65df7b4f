"""A command line over the test's database, for each of its people."""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.sandbox import mode_detection
from draftsman.sandbox.processes import agent_check as command_check
from draftsman_testing.people import GROUPS, PEOPLE
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.webhook_receiver import WebhookReceiver, receive_webhooks
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.terminal_screen import TerminalScreen
from tests.tui.cli.trello_board import CliBoard

choose_mode_once = functools.cache(mode_detection.choose_mode)
find_escape_once = functools.cache(mode_detection.find_escape)
find_problem = command_check._find_problem_inside
PROBLEMS: dict[str, tuple[str, str] | None] = {}
"""Result of the check of a command, by its arguments and the current folder."""
EVERY_ROLE = ["invoker", "responder", "approver", "operator"]
As = Callable[[str | None], Cli]


@pytest.fixture(autouse=True)
def _probe_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probe each mode of the sandbox, and each command, for the first test that needs it."""

    def find_once(*args: Any) -> tuple[str, str] | None:
        key = repr((Path.cwd(), args))
        if key not in PROBLEMS:
            PROBLEMS[key] = find_problem(*args)
        return PROBLEMS[key]

    monkeypatch.setattr(mode_detection, "choose_mode", choose_mode_once)
    monkeypatch.setattr(mode_detection, "find_escape", find_escape_once)
    monkeypatch.setattr(command_check, "_find_problem_inside", find_once)


@pytest.fixture
async def me(rt: Runtime) -> Actor:
    """Give the identity of the current user."""
    return await rt.actor()


@pytest.fixture
def config(
    database_url: str, me: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str | None], Path]:
    """Provide a configuration by the name of its user; `root` has all roles, None has no person."""
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", database_url)
    monkeypatch.setenv("DRAFTSMAN_DATA_DIR", str(tmp_path / "data"))

    def write(name: str | None) -> Path:
        people: dict[str, dict[str, Any]] = PEOPLE | {"root": {"roles": EVERY_ROLE}}
        if name is not None:
            people |= {name: people[name] | {"login": me.id}}
        path = tmp_path / f"{name}.toml"
        lines = [f"types.{name} = {{}}" for name in ("noop", "report")]
        lines += [f"groups.{group} = {json.dumps(members)}" for group, members in GROUPS.items()]
        for person, fields in people.items():
            lines += [f"people.{person}.{key} = {json.dumps(fields[key])}" for key in fields]
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def as_(config: Callable[[str | None], Path], capsys: pytest.CaptureFixture[str]) -> As:
    """Provide a command line by the name of its user: `as_("carol")`."""
    return lambda name: Cli(config(name), capsys)


@pytest.fixture
def cli(as_: As) -> Cli:
    """Provide the command line of a user with all roles."""
    return as_("root")


@pytest.fixture
def terminal(cli: Cli) -> Iterator[Callable[..., Terminal]]:
    """Give terminals on which a command runs; none outlives the test."""
    opened: list[Terminal] = []

    def open_one(*args: object, **env: str) -> Terminal:
        env = {"DRAFTSMAN_QUESTIONS__UNDO": "0"} | env  # answers count at once
        opened.append(Terminal("--config", cli.config, *args, **env))
        return opened[-1]

    yield open_one
    for terminal_window in opened:
        terminal_window.close()


@pytest.fixture
def window(cli: Cli) -> Iterator[Callable[..., TerminalScreen]]:
    """Provide terminal emulators, closed at the end of the test."""
    opened: list[TerminalScreen] = []

    def open_one(*args: object, **env: str) -> TerminalScreen:
        opened.append(TerminalScreen("--config", cli.config, *args, **env))
        return opened[-1]

    yield open_one
    for terminal_window in opened:
        terminal_window.close()


@pytest.fixture
async def trello() -> AsyncIterator[FakeTrello]:
    """Give a fake Trello."""
    async with FakeTrello() as terminal_window:
        yield terminal_window


@pytest.fixture
def board(trello: FakeTrello, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> CliBoard:
    """Give a board, and a command line for it."""
    return CliBoard(trello, cli, monkeypatch)


@pytest.fixture
async def receiver(trello: FakeTrello) -> AsyncIterator[WebhookReceiver]:
    """Give a callback for webhooks."""
    async with receive_webhooks(trello) as terminal_window:
        yield terminal_window
