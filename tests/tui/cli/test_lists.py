"""Lists of entities: their help, and the columns that a terminal has room for."""

from __future__ import annotations

from collections.abc import Callable

from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli, Terminal


async def test_the_help_of_a_list_says_what_its_columns_mean(cli: Cli) -> None:
    text = " ".join((await cli("workers", "--help")).out.split())
    assert "Columns: WORKER Name of the worker." in text
    assert "STARTED Time since the start. Examples:" in text
    text = " ".join((await cli("costs", "--help")).out.split())
    assert "Columns: NAME Whose figures these are." in text, "KIND is only in the dashboard"


async def test_a_narrow_terminal_leaves_columns_out_unless_all_fit(
    cli: Cli, make: Factory, terminal: Callable[..., Terminal]
) -> None:
    await make.worker_row(host="here")
    screen = terminal("workers")
    assert screen.end() == 0
    heads = ["WORKER", "HEALTH", "BUSY", "HEARTBEAT", "LEADER", "HOST", "PID", "QUEUES"]
    assert screen.plain.split("\n")[0].split() == [*heads, "STARTED"]
    await make.worker_row(host="a-host-with-a-long-name", queues=["a-long-list", "of-queues"])
    screen = terminal("workers")
    assert screen.end() == 0
    assert screen.plain.split("\n")[0].split() == [*heads[:-2], "STARTED"]
    assert "VERSION" in (await cli("workers")).out.split("\n")[0]
