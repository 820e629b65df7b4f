"""Lists of entities: their help, and the columns that a terminal has room for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jsonschema import validate

from draftsman_testing.factories import Factory
from draftsman_tui.cli import lists
from draftsman_tui.cli.app import ListCommand
from draftsman_tui.cli.jobs import jobs
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.commands import commands


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


async def test_each_list_counts_its_rows(cli: Cli, make: Factory) -> None:
    for _ in range(2):
        await make.worker_row()
        await make.dead(notify=("log",))
    lists = 0
    for words, command in commands():
        if not isinstance(command, ListCommand) or words == ("stats",):
            continue
        lists += 1
        limit = ["--limit", "1"] if any(param.name == "limit" for param in command.params) else []
        rows = (await cli(*words, "--json")).json
        expected = len(rows["people"] if isinstance(rows, dict) else rows)
        counted = await cli(*words, *limit, "--count")
        assert (counted.code, counted.out) == (0, f"{expected}\n"), words
        document = (await cli(*words, *limit, "--count", "--json")).json
        assert document == {"count": expected, "capped": False}, words
    assert lists > 15
    for options in (["--count"], ["--where", "kind:type"], ["--sort", "kind"]):
        refused = f"{options[0]} requires --people"
        (await cli("stats", *options)).refused(2, refused)


async def test_a_limit_counts_the_rows_that_conditions_and_the_order_leave(
    cli: Cli, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    refunds = [await make.completed(title="refund", notify=("log",)) for _ in range(2)]
    queued = [await make.queued(title="mail", notify=("log",)) for _ in range(3)]

    async def numbers(*options: object) -> list[int]:
        return [job["number"] for job in (await cli("jobs", "--json", *options)).json]

    assert await numbers("--sort", "-finished", "--limit", 2) == refunds[::-1]
    assert await numbers("--sort", "job", "--limit", 1) == refunds[:1]
    assert await numbers("--where", "title:refund", "--limit", 1) == refunds[1:]
    cut = await cli("jobs", "--where", "title:refund", "--limit", 1)
    assert cut.err == "1 of 2 jobs; for more, use --limit, at most 1,000\n"
    first = (await cli("deliveries", "--sort", "job", "--limit", 1, "--json")).json
    assert [delivery["job"] for delivery in first] == refunds[:1]
    for module in (lists, jobs):
        monkeypatch.setattr(module, "COUNT_LIMIT", 3)
    assert await numbers("--where", "title:refund") == []
    err = (await cli("jobs", "--where", "title:refund", "--limit", 1)).err
    older = f"draftsman jobs --limit 1 --where title:refund --before D-{queued[0]}"
    assert f"jobs; to search older jobs: {older}\n" in err
    assert "--where and --sort looked at the first" in err


async def test_jobs_are_counted_with_each_filter(
    cli: Cli, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for title in "refund", "refund", "other":
        await make.dead(title=title, key=title if title == "other" else None)
    newest = await make.queued()

    async def count(*options: object) -> str:
        return (await cli("jobs", *options, "--count")).out

    assert await count() == "4\n"
    assert await count("--status", "dead") == "3\n"
    assert await count("--failures", "--where", "title:refund") == "2\n"
    assert await count("--before", f"D-{newest}") == "3\n"
    assert await count("--key", "other") == "1\n"
    assert await count("--status", "running") == "0\n"
    assert await count("--queued") == "1\n"
    monkeypatch.setattr(lists, "COUNT_LIMIT", 4)
    assert await count() == "4+\n"


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


async def test_a_list_that_is_cut_says_so_on_stderr(cli: Cli, make: Factory) -> None:
    """Stdout is no terminal here: it is as in a pipe."""
    for _ in range(3):
        await make.queued(queue="default", notify=("log",))
    for command, options, says in (
        ("jobs", (), "2 of 3 jobs; to list older jobs: draftsman jobs --limit 2 --before D-2"),
        ("jobs", ("--json",), "2 of 3 jobs; to list older jobs: draftsman jobs"),
        ("jobs", ("--queued",), "the first 2 are listed; for more, use --limit"),
        ("jobs", ("--queued", "--json"), "the first 2 are listed; for more, use --limit"),
    ):
        done = await cli(command, "--limit", "2", *options)
        assert says in done.err, (command, options, done)
        assert (await cli(command, "--limit", "3", *options)).err.count("listed") == 0
    assert len((await cli("jobs", "--queued", "--limit", "2", "--json")).json) == 2
