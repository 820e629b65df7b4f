"""`dashboard`: the real command, on a terminal and without one."""

from __future__ import annotations

from collections.abc import Callable

from draftsman.domain.job import Status
from draftsman.runtime import Runtime
from tests.factories import Factory
from tests.tui.cli.running import Cli, Terminal

Terminals = Callable[..., Terminal]


async def test_without_a_terminal_it_says_what_else_there_is(cli: Cli) -> None:
    (await cli("dashboard")).refused(2, "needs a terminal", "draftsman jobs")
    (await cli("dashboard", "--json")).refused(2, "prints no JSON")
    (await cli("dashboard", "--view", "nonsense")).refused(2, "nonsense")


async def test_a_job_is_canceled_on_a_terminal(
    terminal: Terminals, make: Factory, rt: Runtime
) -> None:
    number = await make.queued()
    shown = terminal("dashboard", TERM="xterm-256color")
    shown.expect(f"D-{number}")
    shown.type("c")
    shown.expect(f"Cancel D-{number}?")
    shown.type("y")
    shown.expect(f"D-{number} canceled")
    shown.type("q")
    assert shown.end() == 0
    assert (await rt.inspect.job(number)).status is Status.CANCELED
    assert "Traceback" not in shown.screen


async def test_draftsman_alone_on_a_terminal_is_the_dashboard(cli: Cli) -> None:
    shown = Terminal(TERM="xterm-256color", NO_COLOR="1", DRAFTSMAN_CONFIG=str(cli.config))
    try:
        shown.expect("No jobs yet")
        shown.type("q")
        assert shown.end() == 0
    finally:
        shown.close()
