"""`queues`: list, pause, resume, drain and history."""

from __future__ import annotations

import json

from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As

PAUSE = ("queues", "pause", "pay")


async def test_queues_are_paused_listed_and_resumed(cli: Cli, make: Factory) -> None:
    empty = await cli("queues")
    assert "to start a worker: draftsman up" in empty.err
    assert (await cli("queues", "--json")).json == []
    number = await make.queued(queue="pay")
    done = await cli(*PAUSE, "--reason", "disk is full")
    resume = "to resume it: draftsman queues resume pay"
    assert done.out == f"queue 'pay' paused; running jobs continue; {resume}\n"
    lines = (await cli("queues")).out.splitlines()
    heads = ["QUEUE", "STATUS", "QUEUED", "HELD", "RUNNING", "OLDEST", "BLOCKED"]
    assert lines[0].split() == heads
    assert lines[1].split()[:5] == ["pay", "paused", "0", "1", "0"]
    assert lines[1].endswith("disk is full")
    (row,) = (await cli("queues", "list", "--json")).json
    assert (row["name"], row["held"], row["pauses"][0]["reason"]) == ("pay", 1, "disk is full")
    assert "is paused since" in (await cli("why", number)).out
    assert "its paused queue" in (await cli("jobs")).out
    assert (await cli("jobs", "--json")).json[0]["hold"] == "paused"
    assert (await cli("stats")).out.endswith("1  paused queue or type: draftsman queues\n")
    assert (await cli("queues", "resume", "pay", "--json")).json == {
        "queue": "pay",
        "type": None,
        "paused": False,
        "released": 0,
    }
    output = (await cli("queues", "history", "pay")).out
    assert "resume" in output.splitlines()[1]
    assert "disk is full" in output.splitlines()[2]
    assert len((await cli("queues", "history", "--json")).json) == 2


async def test_a_type_is_paused_alone_and_a_resume_of_the_queue_names_it(
    cli: Cli, make: Factory
) -> None:
    await make.queued(queue="pay", type="report")
    done = await cli(*PAUSE, "--type", "report", "--reason", "r", "--json")
    assert done.json == {"queue": "pay", "type": "report", "paused": True, "held": 1}
    await cli(*PAUSE, "--reason", "s")
    done = await cli("queues", "resume", "pay")
    assert "the type 'report' in the queue 'pay' is still paused: r" in done.out
    done = await cli("queues", "resume", "pay", "--type", "report")
    assert done.out == "type 'report' in the queue 'pay' resumed\n"


async def test_a_drain_reports_what_runs_and_ends_with_it(cli: Cli, make: Factory) -> None:
    work = await make.running(queue="pay")
    late = await cli("queues", "drain", "pay", "--timeout", "1s")
    assert late.code == 1
    assert f"pay: 1 job still running: {work.name}" in late.err
    assert "is paused, but not drained after 1 s" in late.err
    await make.rt.job_control.cancel(work.number, make.owner, force=True)
    done = await cli("queues", "drain", "pay")
    assert done.out == "queue 'pay' drained; it stays paused, and none of its jobs runs\n"
    assert (await cli("queues", "drain", "pay", "--json")).json["drained"] is True
    (change,) = await make.rt.queues.changes()
    assert change.reason == "draining"


async def test_a_drain_without_time_is_not_drained(cli: Cli, make: Factory) -> None:
    await make.running(queue="pay")
    done = await cli("queues", "drain", "pay", "--timeout", "1s", "--json")
    assert done.code == 1
    assert json.loads(done.out) | {"running": None} == {
        "queue": "pay",
        "type": None,
        "drained": False,
        "running": None,
    }


async def test_wrong_requests_are_refused_in_one_line(
    as_: As, cli: Cli, rt: Runtime, make: Factory
) -> None:
    await make.queued(queue="pay")
    assert "Missing option '--reason'".lower() in (await cli(*PAUSE)).refused(2, "--reason").lower()
    assert "a pause needs a reason" in (await cli(*PAUSE, "--reason", " ")).refused(2)
    assert "is not paused" in (await cli("queues", "resume", "pay")).refused(1)
    denied = (await as_("anna")(*PAUSE, "--reason", "r")).refused(1)
    assert "may not pause or resume queues (needs the role operator)" in denied
    assert await rt.queues.changes() == []
    assert "did you mean pause?" in (await cli("queues", "pouse")).refused(2)
    assert "draftsman queues drain default" in (await cli("queues", "--help")).out


async def test_a_concurrency_key_is_submitted_shown_and_explained(cli: Cli) -> None:
    submit = ("submit", "--unchecked", "--type", "noop", "--concurrency-key", "deploy:pay")
    first, second = [(await cli(*submit, "--json")).json["number"] for _ in range(2)]
    assert "concurrency key deploy:pay" in (await cli("show", first)).out
    assert (await cli("show", second, "--json")).json["hold"] == "key"
    assert f"D-{first} holds the concurrency key 'deploy:pay'" in (await cli("why", second)).out
    assert "its concurrency key" in (await cli("jobs")).out
    assert "one runs at a time" in " ".join((await cli("submit", "--help")).out.split())


async def test_an_unknown_queue_or_type_is_refused_with_near_names(cli: Cli, make: Factory) -> None:
    why = ("--reason", "r")
    typo = await cli("queues", "pause", "defualt", *why)
    typo.refused(3, "unknown queue 'defualt'", "did you mean default?", "use --unchecked")
    (await cli("queues", "drain", "pya")).refused(3, "known queues: default")
    unknown = await cli("queues", "pause", "default", "--type", "http_requst", *why)
    unknown.refused(2, "unknown job type 'http_requst'", "http_request", "use --unchecked")
    await make.scheduled(queue="later", type="report")
    for arguments in (
        ("default",),
        ("later",),
        ("later", "--type", "report"),
        ("new", "--unchecked"),
    ):
        assert (await cli("queues", "pause", *arguments, *why)).code == 0
    assert (await cli("queues", "resume", "new")).code == 0
    assert (await cli("queues", "pause", "new", *why)).code == 0  # paused before
