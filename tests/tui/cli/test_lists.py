"""Lists of entities: their help, and the columns that a terminal has room for."""

from __future__ import annotations

from collections.abc import Callable

from jsonschema import validate

from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli, Terminal


async def test_the_help_of_a_list_says_what_its_columns_mean(cli: Cli) -> None:
    text = " ".join((await cli("workers", "--help")).out.split())
    assert "Columns: WORKER Name of the worker." in text
    assert "STARTED Time since the start. Examples:" in text
    text = " ".join((await cli("costs", "--help")).out.split())
    assert "Columns: NAME Whose figures these are." in text, "KIND is only in the dashboard"


async def test_each_list_is_sorted_and_filtered_by_its_columns(cli: Cli, make: Factory) -> None:
    busy = await make.worker_row(host="busy-host")
    idle = await make.worker_row(host="an-idle-host")
    listed = (await cli("workers", "--sort", "host", "--json")).json
    assert [worker["id"] for worker in listed] == [str(idle), str(busy)]
    listed = (await cli("workers", "--sort", "-host", "--json")).json
    assert [worker["id"] for worker in listed] == [str(busy), str(idle)]
    assert "busy-host" not in (await cli("workers", "--where", "host:idle")).out
    assert (await cli("workers", "--where", "host:none")).err == "nothing matches --where\n"
    with_schema = (await cli("workers", "--json-schema")).json
    validate(listed, with_schema)


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
