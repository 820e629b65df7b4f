"""`move`, `priority` and `jobs --queued`."""

from __future__ import annotations

import json

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.limits import set_limits
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
    assert done.out == f"D-{c} moved to the top of the queue q, with priority 0\n"
    assert await listed(cli) == [c, a, b]
    done = await cli("move", f"D-{c}", "--after", f"D-{a}")
    assert done.out == f"D-{c} moved after D-{a}, with priority 0\n"
    assert await listed(cli) == [a, c, b]
    done = await cli("move", b, "--before", c, "--json")
    assert done.json == {"number": b, "place": "before", "anchor": c, "priority": 0}
    await cli("move", a, "--bottom")
    assert await listed(cli) == [b, c, a]
    assert (await cli("priority", a, "5")).out == f"D-{a} set to priority 5\n"
    assert (await cli("priority", b, "--json", "--", "-5")).json == {"number": b, "priority": -5}
    lines = (await cli("jobs", "--queued")).out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["JOB", "QUEUE", "PRIORITY"],
        [f"D-{a}", "q", "5"],
        [f"D-{c}", "q", "0"],
        [f"D-{b}", "q", "-5"],
    ]
    await cli("queues", "pause", "q", "--reason", "r")
    held = await cli("jobs", "--queued")
    assert "3 held in the queue q; draftsman queues" in held.err
    await cli("move", c, "--top")
    assert await listed(cli) == [c, a, b]
    lines = (await cli("jobs", "--queued")).out.splitlines()[1:]
    assert {line.split("  ")[-1] for line in lines} == {"its paused queue"}
    await cli("queues", "resume", "q")
    await make.rt.reservations.submit(invocation(type="noop", queue="q"), make.owner, 60)
    assert (await listed(cli))[1:] == [c, a, b]
    lines = (await cli("jobs", "--queued")).out.splitlines()[1:]
    assert [line.split("  ")[-1] for line in lines[:2]] == [
        "a worker for queue q",
        "its reserved queue",
    ]


async def test_a_job_waits_for_a_worker_by_the_same_conditions_everywhere(
    cli: Cli, make: Factory, rt: Runtime, conn: Connection
) -> None:
    jobs = {
        await make.queued(queue=queue, type=type): (reason, text)
        for queue, type, reason, text in (
            ("served", "noop", "next", "a free slot"),
            ("served", "other", "unknown_type", "a worker with the type other"),
            ("draining", "noop", "no_worker", "a worker for queue draining"),
            ("dead", "noop", "no_worker", "a worker for queue dead"),
        )
    }
    await make.worker_row(queues=["served"])
    draining, dead = [await make.worker_row(queues=[queue]) for queue in ("draining", "dead")]
    change = "UPDATE draftsman.workers SET {} WHERE id = %s"
    await conn.execute(change.format("draining = true"), (draining,))
    await conn.execute(change.format("heartbeat_at = draftsman.now() - interval '1 hour'"), (dead,))
    for arguments in (("jobs",), ("jobs", "--queued")):
        lines = (await cli(*arguments)).out.splitlines()[1:]
        shown = {line.split()[0]: line.split("  ")[-1] for line in lines}
        assert shown == {f"D-{number}": text for number, (_, text) in jobs.items()}
    for number, (reason, _) in jobs.items():
        reasons = {reason} | ({"behind"} if reason == "next" else set())
        assert (await rt.read_model.why(number)).reason in reasons
    rows = {job["number"]: job["hold"] for job in (await cli("jobs", "--queued", "--json")).json}
    assert list(rows.values()).count(None) == 1


async def test_jobs_that_wait_for_a_place_or_a_key_are_listed_in_queue_order(
    cli: Cli, make: Factory, rt: Runtime, conn: Connection
) -> None:
    await make.worker_row(queues=["q"], types=["noop", "other"])
    await set_limits(rt, conn, type={"noop": {"running": 1}})
    first, a, b = [await make.queued(queue="q") for _ in range(3)]
    holder, key = [
        await make.queued(queue="q", type="other", concurrency_key="k") for _ in range(2)
    ]
    await cli("move", b, "--before", a)
    child = await make.queued(queue="q", type="other", after=(first,))
    lines = (await cli("jobs", "--queued")).out.splitlines()
    assert [(line.split()[0], line.split("  ")[-1]) for line in lines[1:]] == [
        (f"D-{first}", "a free slot"),
        (f"D-{holder}", "a free slot"),
        (f"D-{b}", "a place: type noop"),
        (f"D-{a}", "a place: type noop"),
        (f"D-{key}", "its concurrency key"),
    ]
    assert await listed(cli) == [first, holder, b, a, key]
    await rt.job_control.pause(holder, make.owner, "r")
    waits = dict(line.split("  ", 1) for line in (await cli("jobs")).out.splitlines()[1:])
    assert waits[f"D-{child}"].endswith(f"D-{first} (queued)")
    assert waits[f"D-{holder}"].endswith("paused by root: r")


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
    assert "is not in the range -1000 to 1000" in (await cli("priority", other, "1001")).refused(2)
    assert "is not a whole number" in (await cli("priority", other, "high")).refused(2)
    assert "--queued can only be combined with --queue and --limit" in (
        await cli("jobs", "--queued", "--status", "queued")
    ).refused(2)
    text = (await as_("anna")("move", other, "--top")).refused(1)
    assert "may not change the order of jobs (needs the role operator)" in text


async def test_held_jobs_of_many_queues_are_a_single_line(cli: Cli, make: Factory) -> None:
    for queue in ("q1", "q2", "q3", "q4", "q5"):
        await make.queued(queue=queue)
        await cli("queues", "pause", queue, "--reason", "r")
    held = (await cli("jobs", "--queued")).err
    assert "1 held in the queue q3; draftsman queues" in held
    assert "2 held in 2 other queues; draftsman queues" in held
    assert "queue q4" not in held

    only = await cli("jobs", "--queued", "--queue", "q4")
    assert [row.split()[1] for row in only.out.splitlines()[1:]] == ["q4"]
    assert only.err == "no job can be claimed\n1 held in the queue q4; draftsman queues\n"
    assert "no queue 'q6'" in (await cli("jobs", "--queued", "--queue", "q6")).err
    await cli("queues", "resume", "q4")
    only = await cli("jobs", "--queued", "--queue", "q4", "--json")
    assert [job["queue"] for job in json.loads(only.out)] == ["q4"]
