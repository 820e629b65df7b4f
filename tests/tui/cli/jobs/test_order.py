"""`move`, `priority` and `jobs --queued`."""

from __future__ import annotations

import pytest

from tests.factories import Factory
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As


async def listed(cli: Cli) -> list[int]:
    """Return the jobs that `jobs --queued` lists."""
    return [job["number"] for job in (await cli("jobs", "--queued", "--json")).json]


async def test_jobs_are_listed_in_the_order_of_the_claim_and_moved(cli: Cli, make: Factory) -> None:
    assert (await cli("jobs", "--queued")).err == "no job can be claimed\n"
    assert await listed(cli) == []
    a, b, c = [await make.queued(queue="q") for _ in range(3)]
    done = await cli("move", c, "--top")
    assert done.out == f"D-{c}: moved to the top of the queue q, with priority 0\n"
    assert await listed(cli) == [c, a, b]
    done = await cli("move", f"D-{c}", "--after", f"D-{a}")
    assert done.out == f"D-{c}: moved after D-{a}, with priority 0\n"
    assert await listed(cli) == [a, c, b]
    done = await cli("move", b, "--before", c, "--json")
    assert done.json == {"number": b, "place": "before", "anchor": c, "priority": 0}
    await cli("move", a, "--bottom")
    assert await listed(cli) == [b, c, a]
    assert (await cli("priority", a, "5")).out == f"D-{a}: priority 5\n"
    assert (await cli("priority", b, "--json", "--", "-5")).json == {"number": b, "priority": -5}
    lines = (await cli("jobs", "--queued")).out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["JOB", "QUEUE", "PRIORITY"],
        [f"D-{a}", "q", "5"],
        [f"D-{c}", "q", "0"],
        [f"D-{b}", "q", "-5"],
    ]
    await cli("queues", "pause", "q", "--reason", "r")
    assert "3 held in the queue q; draftsman queues" in (await cli("jobs", "--queued")).err


@pytest.mark.parametrize(
    "options", [(), ("--top", "--bottom"), ("--top", "--before", "1"), ("--after", "")]
)
async def test_a_move_needs_one_place(cli: Cli, make: Factory, options: tuple[str, ...]) -> None:
    number = await make.queued(queue="q")
    done = await cli("move", number, *options)
    assert done.code == 2
    assert "Traceback" not in done.err


async def test_a_move_that_is_not_possible_is_one_line(as_: As, cli: Cli, make: Factory) -> None:
    work = await make.running(queue="q")
    other = await make.queued(queue="q")
    text = (await cli("move", work.number, "--top")).refused(1)
    assert f"{work.name} is running; only queued jobs have a place" in text
    assert "there is no job D-99" in (await cli("move", other, "--before", "99")).refused(3)
    assert "allowed are -1000 to 1000" in (await cli("priority", other, "1001")).refused(2)
    assert "is not a valid integer" in (await cli("priority", other, "high")).refused(2)
    assert "--queued can only be combined with --limit" in (
        await cli("jobs", "--queued", "--status", "queued")
    ).refused(2)
    text = (await as_("anna")("move", other, "--top")).refused(1)
    assert "may not change the order of jobs (needs the role operator)" in text
