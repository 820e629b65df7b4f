"""The `pause` and `resume` commands."""

from __future__ import annotations

from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As


async def test_a_job_is_paused_explained_and_resumed(cli: Cli, make: Factory) -> None:
    work = await make.running()
    done = await cli("pause", work.name, "--reason", "the API is down")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"{work.name} paused; its worker parks it; to resume it: draftsman resume {work.name}\n"
    )
    assert "paused since" in (await cli("why", work.name)).out
    assert "the API is down" in (await cli("show", work.name)).out
    document = (await cli("resume", work.name, "--json")).json
    assert document == {"number": work.number, "status": "running"}
    (await cli("resume", work.name)).refused(1, f"{work.name} is not paused")


async def test_a_job_that_ended_before_its_pause_is_not_resumed(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    await cli("pause", work.name, "--reason", "the API is down")
    await rt.settlement.outcome(work, Done({}))
    done = await cli("resume", work.name)
    assert (done.code, done.out) == (0, f"{work.name} completed; nothing to resume\n")


async def test_a_pause_needs_a_reason_and_the_role(cli: Cli, as_: As, make: Factory) -> None:
    number = await make.queued()
    (await cli("pause", number)).refused(2, "--reason")
    (await as_("ben")("pause", number, "--reason", "r")).refused(1, "may not pause or resume jobs")


async def test_a_paused_job_is_shown_as_paused_in_every_state(cli: Cli, make: Factory) -> None:
    waiting = await make.asked()
    retrying = await make.retrying()
    scheduled = await make.scheduled()
    other = await make.asked()
    running = await make.running()
    numbers = [waiting.number, retrying, scheduled, running.number]
    for number in numbers:
        await cli("pause", number, "--reason", "the API is down")
    listed = {line.split()[0]: line for line in (await cli("jobs")).out.splitlines()[1:]}
    for number in numbers[:3]:
        assert listed[f"D-{number}"].split()[1] == "paused"
        assert listed[f"D-{number}"].endswith("paused by root: the API is down")
    assert listed[running.name].split()[1] == "running"
    assert listed[running.name].endswith("paused by root: the API is down")
    assert "waiting for input" in listed[other.name]
    paused = (await cli("jobs", "--status", "paused", "--json")).json
    assert [job["number"] for job in paused] == numbers[::-1]
    assert {(job["hold"], job["job_paused"], job["pause_reason"]) for job in paused} == {
        ("paused", True, "the API is down")
    }
    (row,) = (await cli("jobs", "--status", "paused", "--limit", "1", "--json")).json
    assert row["number"] == running.number
    for command in ("why", "show"):
        out = (await cli(command, waiting.name)).out
        assert "by root: the API is down" in out
    assert (
        (await cli("show", waiting.name)).out.splitlines()[0].endswith("paused; waiting for input")
    )
    assert (await cli("why", waiting.name)).out.startswith(f"{waiting.name} paused since ")
    assert (await cli("why", retrying)).out.startswith(f"D-{retrying} paused since ")
    assert (await cli("show", retrying)).out.splitlines()[0].split()[-1] == "paused"
    assert (await cli("show", waiting.name, "--json")).json["wait_reason"]["paused"] is True
    await cli("resume", waiting.name)
    rest = (await cli("jobs", "--status", "paused", "--json")).json
    assert [job["number"] for job in rest] == numbers[:0:-1]
    refused = await cli("jobs", "--status", "paused,failed")
    refused.refused(2, "--status paused cannot be combined with other statuses")
    (await cli("cancel", "--status", "paused", "--yes")).refused(2, "unknown status 'paused'")


async def test_an_answer_to_a_paused_job_names_the_pause(cli: Cli, as_: As, make: Factory) -> None:
    for item, who, command, outcome in (
        (QUESTION, cli, ("answer", "red"), "answered: red"),
        (GATE, as_("carol"), ("approve",), "approved"),
    ):
        work = await make.asked(item)
        await cli("pause", work.name, "--reason", "the API is down")
        out = (await who(command[0], f"{work.name}/1", *command[1:])).out
        assert out.startswith(f"{work.name}/1 {outcome}; stored, but {work.name} is paused since ")
        assert out.endswith(
            f" by root: the API is down; to resume it: draftsman resume {work.name}\n"
        )


async def test_commands_that_wait_for_a_paused_job_say_so_once(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.asked(type="ask_people", payload={"text": "Which?"})
    await cli("pause", work.name, "--reason", "noon")
    hint = f"by root: noon; {work.name}/1 needs an answer: Which one?; to resume it: draftsman"
    done = await cli("ask", "--continue", work.name, "--wait", "0.3s")
    assert done.code == 5
    assert done.err.count(f"{work.name} is paused since") == 1
    assert hint in done.err
    done = await cli("wait", work.name, "--timeout", "0.3s")
    assert done.err.count(f"{work.name} is paused since") == 1
    assert hint in done.err
    await cli("resume", work.name)
    assert "paused" not in (await cli("wait", work.name, "--timeout", "0.1s")).err
    key = ("--type", "noop", "--queue", "q", "--key", "k", "--wait", "--timeout", "0.3s")
    number = await make.queued(queue="q", key="k")
    await cli("pause", number, "--reason", "noon")
    done = await cli("submit", *key)
    assert done.err.count(f"D-{number} is paused since") == 1, done
