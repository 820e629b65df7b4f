"""The `events` and `logs` commands: complete output, cursors and following."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from draftsman.domain.outcome import Done
from draftsman.runtime import Runtime
from draftsman.services.jobs.submissions import invocation
from tests.factories import Factory
from tests.support.event_history import wait_for_feed
from tests.support.waits import background
from tests.tui.cli.cli_runner import Cli, Terminal


async def test_events_of_a_job_are_printed(cli: Cli, make: Factory) -> None:
    work = await make.asked()
    await make.queued()
    events_shown = (await cli("events", work.name, "--json")).lines
    kinds = ["job_created", "job_claimed", "job_started", "needs_input"]
    assert [event["kind"] for event in events_shown] == kinds
    assert {event["job"] for event in events_shown} == {work.number}
    output = (await cli("events", work.name)).out.splitlines()
    assert "needs_input → waiting for input" in output[3]
    assert "text=Which one?" in output[3]
    after = (await cli("events", work.name, "--json", "--after", events_shown[1]["cursor"])).lines
    assert after == events_shown[2:]
    after = (await cli("events", work.name, "--json", "--after", events_shown[1]["id"])).lines
    assert after == events_shown[2:]


async def test_a_cursor_reads_all_events_without_a_gap(
    cli: Cli, rt: Runtime, make: Factory
) -> None:
    for _ in range(3):
        await make.completed()
    await wait_for_feed(rt)
    events = (await cli("events", "--json")).lines
    assert len(events) == 3 * 4
    events_read = [events[0]]
    while more := (await cli("events", "--json", "--after", events_read[-1]["cursor"])).lines:
        events_read.append(more[0])
    assert events_read == events
    done = await cli("events", "--after", events[-1]["cursor"])
    assert (done.out, done.err) == ("", "no new events\n")


async def test_more_than_a_page_of_one_transaction_is_shown_whole(
    cli: Cli, rt: Runtime, make: Factory
) -> None:
    many = [invocation(type="noop", key=f"k{n}") for n in range(1001)]
    numbers = {submitted.number for submitted in await rt.submissions.submit_many(many, make.owner)}
    await wait_for_feed(rt)
    events_shown = (await cli("events", "--json")).lines
    assert len(events_shown) == 1001
    assert {event["job"] for event in events_shown} == numbers


async def test_following_one_job_ends_with_it(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.running()
    async with background(cli("events", "-f", work.name, "--json")) as following:
        await rt.checkpoints.event(work.lease, "noted", {"n": 1})
        await rt.settlement.outcome(work, Done({}))
        done = await following
    assert [event["kind"] for event in done.lines][-2:] == ["noted", "job_completed"]


async def test_following_all_jobs_starts_with_new_events(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    old = await make.queued()
    screen = terminal("events", "-f", "--json")
    new = 0
    while not screen.screen:  # it may begin a moment later than we do
        new = await make.queued()
        screen.read()
    screen.type("\x03")
    assert screen.end() == 130
    first = json.loads(screen.plain.splitlines()[0])
    assert old < first["job"] <= new


@pytest.mark.parametrize("cursor", ["x", "1.2", "1.2.3.4", "-1", "9" * 30, "1..2", "5"])
async def test_an_invalid_cursor_is_refused(cli: Cli, cursor: str) -> None:
    (await cli("events", "--after", cursor)).refused(2, "cursor")


async def test_logs_are_printed_unchanged(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.running()
    result = await cli("logs", work.name)
    assert (result.out, result.err.count("\n")) == ("", 1)
    await rt.checkpoints.log(work.lease, 1, "one \x1b[31mred\x1b[0m\n")
    async with background(cli("logs", "-f", work.name)) as following:
        await rt.checkpoints.log(work.lease, 2, "two\n")
        await rt.settlement.outcome(work, Done({}))
        done = await following
    assert done.out == "one \x1b[31mred\x1b[0m\ntwo\n"
    assert done.err == f"-- run {work.number}.1 --\n"
    events_shown = (await cli("logs", work.name, "--json")).lines
    assert [(event["run"], event["seq"], event["text"][:3]) for event in events_shown] == [
        (1, 1, "one"),
        (1, 2, "two"),
    ]


async def test_logs_cannot_control_a_terminal_and_events_take_one_line(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.log(work.lease, 1, "one \x1b[2Jgone\n")
    await rt.checkpoints.event(work.lease, "noted", {"output": "wide " * 100})
    screen = terminal("logs", work.name)
    assert screen.end() == 0
    assert "one \\x1b[2Jgone" in screen.screen
    screen = terminal("events", work.name)
    assert screen.end() == 0
    assert len(screen.plain.splitlines()) == 4
    assert max(map(len, screen.plain.splitlines())) <= 80
