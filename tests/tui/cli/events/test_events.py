"""The `events` and `logs` commands: complete output, cursors and following."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from click import Context

from draftsman.agent_runs.activity.activity import (
    Activity,
    ActivityKind,
    ActivityState,
    of_usage,
)
from draftsman.formats import times
from draftsman.jobs.details.service import log_feed
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.waits import background
from draftsman_tui.cli.events.events import KINDS_PARAM, events
from tests.support.event_history import wait_for_feed
from tests.tui.cli.cli_runner import Cli, Terminal


async def test_events_of_a_job_are_printed(cli: Cli, make: Factory) -> None:
    work = await make.asked()
    await make.queued()
    events_shown = (await cli("events", work.name, "--json")).lines
    kinds = ["job_created", "job_claimed", "job_started", "needs_input"]
    assert [event["kind"] for event in events_shown] == kinds
    assert {event["job"] for event in events_shown} == {work.number}
    output = (await cli("events", work.name)).out.splitlines()
    assert f"The job waits for an answer to {work.name}/1: Which one?" in output[3]
    detailed = (await cli("events", work.name, "--details", "--kind", "needs_input")).out
    assert {line.split()[0] for line in detailed.splitlines()[1:]} >= {"kind", "actor", "text"}
    after = (await cli("events", work.name, "--json", "--after", events_shown[1]["cursor"])).lines
    assert after == events_shown[2:]
    after = (await cli("events", work.name, "--json", "--after", events_shown[1]["id"])).lines
    assert after == events_shown[2:]


async def test_questions_that_are_asked_at_once_are_shown_as_text(cli: Cli, make: Factory) -> None:
    keys = ("color", "size", "shape")
    work = await make.asked_at_once(
        *(QuestionSpec(key=key, text=f"Which {key}?", freeform=True) for key in keys)
    )
    output = (await cli("events", work.name)).out
    assert "waits for 3 answers: Which color? · Which size? · Which shape?" in output


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
    assert done.err == ""
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  "
    stamped = (await cli("logs", "-t", work.name)).out
    assert re.fullmatch(f"{stamp}one .*\n{stamp}two\n", stamped), stamped
    events_shown = (await cli("logs", work.name, "--json")).lines
    assert [(event["run"], event["seq"], event["text"][:3]) for event in events_shown] == [
        (1, 1, "one"),
        (1, 2, "two"),
    ]


def said(text: str, *, continues: bool = False) -> Activity:
    return Activity(ActivityKind.MESSAGE, text, continues=continues)


async def store(rt: Runtime, work: ClaimedJob, first: int, *items: Activity) -> None:
    await rt.activity.append(work.lease, first, items, QuotaLimit(100))


async def test_activity_is_printed_between_the_output_until_the_job_ends_over_its_runs(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.running(on_lost="resume")
    plan = Activity(
        ActivityKind.PLAN, "", detail={"entries": [{"text": "read", "state": "running"}]}
    )
    await rt.checkpoints.log(work.lease, 0, "no newline")
    await store(rt, work, 1, said("Fix"), said("ing \x1b[2J\n", continues=True), plan)
    async with background(cli("logs", "-f", work.name)) as following:
        await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
        second = await make.running(work.number)
        call = Activity(ActivityKind.TOOL, "npm\ntest", ActivityState.FAILED, "1")
        await store(rt, second, 1, call)
        await rt.checkpoints.log(second.lease, 0, "output\n")
        await store(rt, second, 2, said("Done"))
        await rt.settlement.outcome(second, Done({}))
        done = await following
    heads = [f"-- run {run} of {work.name} --" for run in (1, 2)]
    (lost, _) = await rt.read_model.runs(work.number)
    assert lost.finished_at is not None
    ended_at = times.clock(lost.finished_at, lost.finished_at)
    end = f"-- run 1 was interrupted: the worker was lost, {ended_at} --"
    lines = [
        *("no newline", "Fixing \\u{1b}[2J", "[plan] 0 of 1 step: read", end, heads[1]),
        *("✗ npm test", "output", "Done"),
    ]
    # the first head is there if the second run began before the command
    printed = done.out.removeprefix(f"{heads[0]}\n")
    assert (printed.splitlines(), done.err) == (lines, "")
    stored = (await cli("logs", work.name)).out.splitlines()
    assert stored == [heads[0], *lines], "all runs of several have a head"
    assert (await cli("logs", "--activity", work.name)).out.splitlines() == [
        line for line in stored if line not in ("no newline", "output")
    ]
    assert (await cli("logs", "--output", work.name)).out.splitlines() == [
        *(heads[0], "no newline", end, heads[1], "output")
    ]
    assert (await cli("logs", "--run", 2, work.name)).out.splitlines() == stored[5:]
    assert (await cli("logs", "--tail", 4, work.name)).out.splitlines() == [
        *(heads[0], "[plan] 0 of 1 step: read", end),
        *stored[5:],
    ]
    assert (await cli("logs", "--run", 2, "--tail", 1, work.name)).out.splitlines() == [
        *(heads[1], "Done")
    ]
    assert (await cli("logs", "--run", 1, "--tail", 1, work.name)).out.splitlines()[1:] == [
        *("[plan] 0 of 1 step: read", end)
    ]
    (await cli("logs", "--run", 3, work.name)).refused(3, "has no run 3; 2 runs so far")
    (await cli("logs", "--run", 1, "-f", work.name)).refused(2, "--run cannot be combined")
    shown = (await cli("logs", work.name, "--json")).lines
    assert [(item["kind"], item["text"]) for item in shown] == [
        ("output", "no newline"),
        ("message", "Fixing \x1b[2J\n"),
        ("plan", ""),
        ("end", "run 1 was interrupted: the worker was lost"),
        ("tool", "npm\ntest"),
        ("output", "output\n"),
        ("message", "Done"),
    ]
    (await cli("logs", "--activity", "--output", work.name)).refused(2, "cannot be combined")


async def test_a_followed_tail_has_the_last_lines_and_those_that_follow(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    for seq, text in enumerate(("one\ntwo\nth", "ree\nfo", "ur\n")):
        await rt.checkpoints.log(work.lease, seq, text)
    assert (await cli("logs", "--tail", 2, work.name)).out == "three\nfour\n"
    assert (await cli("logs", "--tail", 1, work.name)).out == "four\n"
    nothing = await cli("logs", "--tail", 0, work.name)
    assert (nothing.out, nothing.err) == ("", "")
    async with rt.db.connection() as conn:
        earlier = "created_at = created_at - interval '1 h'"
        await conn.execute(f"UPDATE draftsman.run_log_chunks SET {earlier} WHERE seq < 2")
    assert (await cli("logs", "--since", "10m", work.name)).out == "ur\n"
    assert "nothing since then" in (await cli("logs", "--since", "now", work.name)).err
    async with background(cli("logs", "-f", "--tail", 2, work.name)) as following:
        await rt.checkpoints.log(work.lease, 3, "five\n")
        await rt.settlement.outcome(work, Done({}))
        done = await following
    assert done.out.removeprefix("three\n") == "four\nfive\n", "stored before or after the start"


async def test_a_followed_log_says_why_the_job_waits(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.running()
    screen = terminal("logs", "-f", work.name)
    await rt.checkpoints.log(work.lease, 0, "begun\n")
    screen.expect("begun")
    await rt.asking.ask(work.lease, QUESTION)
    screen.expect(f"\n{work.name}/1 needs an answer")
    await rt.job_control.cancel(work.number, make.owner, force=True)
    assert screen.end() == 0


async def test_a_call_is_one_line_once_it_has_ended(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.running()

    def call(state: ActivityState) -> Activity:
        return Activity(ActivityKind.TOOL, "npm test", state, "1", {"tool": "execute"})

    await store(rt, work, 1, call(ActivityState.RUNNING), of_usage({"input_tokens": 9}))
    async with rt.db.connection() as conn:
        earlier = "created_at = created_at - interval '42 s'"
        await conn.execute(f"UPDATE draftsman.run_activity SET {earlier}")
    running = (await cli("logs", work.name)).out
    assert re.fullmatch(r"▸ execute: npm test … running \d\d s\n", running), running
    (entry,) = (await cli("logs", work.name, "--json")).lines
    assert (entry["state"], entry["tool"]) == ("running", "execute")
    async with background(cli("logs", "-f", work.name)) as following:
        await store(rt, work, 3, call(ActivityState.COMPLETED), of_usage({"input_tokens": 99}))
        await rt.settlement.outcome(work, Done({}))
        followed = (await following).out.splitlines()
    assert [line.partition(" (")[0] for line in followed] == [
        "✓ execute: npm test",
        "[usage] 99 tokens in",
    ]
    done = (await cli("logs", work.name)).out
    assert re.fullmatch(r"✓ execute: npm test \(4\d s\)\n\[usage\] 99 tokens in\n", done), done
    entries = (await cli("logs", work.name, "--json")).lines
    assert [(item["kind"], item.get("state")) for item in entries] == [
        ("tool", "completed"),
        ("usage", None),
    ]
    assert 42 <= entries[0]["seconds"] < 60


LONG = "".join(f"line {n}\n" for n in range(60))


async def test_a_terminal_renders_markdown_and_folds_long_output(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime, cli: Cli
) -> None:
    work = await make.running()
    await rt.checkpoints.log(work.lease, 0, LONG)
    text = "# Fixed\n\n- the **total**\n"
    await store(rt, work, 1, said(text))
    screen = terminal("--no-pager", "logs", work.name)
    assert screen.end() == 0
    shown = screen.plain.split("\n")
    assert [line.rstrip() for line in shown[10:12]] == [
        "line 9",
        "… 40 more lines; --full shows them",
    ]
    assert "Fixed" in shown
    assert "• the total" in shown
    assert (await cli("logs", work.name)).out == LONG + text
    full = terminal("--no-pager", "logs", "--full", work.name)
    assert full.end() == 0
    assert "line 30" in full.plain


async def test_deleted_activity_is_named_with_its_transcript(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    assert "has no activity" in (await cli("logs", "--activity", work.name)).err
    await store(rt, work, 7, said("the end"))
    done = await cli("logs", work.name)
    assert done.out == "the end\n"
    assert f"draftsman artifacts get {work.name} transcript.jsonl" in done.err


async def test_pages_of_output_and_activity_are_merged_by_time(
    cli: Cli, make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_feed, "PAGE", 2)
    work = await make.running()
    expected = []
    for n in range(7):
        expected += [f"said {n}"] if n < 5 else [f"line {n}"]
        if n < 5:
            await store(rt, work, n + 1, said(f"said {n}"))
        else:
            await rt.checkpoints.log(work.lease, n, f"line {n}\n")
    assert (await cli("logs", work.name)).out.splitlines() == expected


async def test_logs_cannot_control_a_terminal_and_events_take_one_line(
    make: Factory, terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.log(work.lease, 1, "one \x1b[2Jgone\n")
    await rt.checkpoints.event(work.lease, "noted", {"output": "wide " * 100})
    screen = terminal("logs", work.name)
    assert screen.end() == 0
    assert "one \\u{1b}[2Jgone" in screen.screen
    screen = terminal("events", work.name)
    assert screen.end() == 0
    assert len(screen.plain.splitlines()) == 4
    assert max(map(len, screen.plain.splitlines())) <= 80


async def test_events_are_filtered_by_kind_time_and_number(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    failed = [await make.failed() for _ in range(3)]
    asked = await make.asked()
    await wait_for_feed(rt)

    async def shown(*options: object) -> list[tuple[int, str]]:
        done = await cli("events", "--json", *options)
        assert done.code == 0, done
        return [(event["job"], event["kind"]) for event in done.lines]

    failures = [(number, "job_failed") for number in failed]
    question = (asked.number, "needs_input")
    claimed = [(number, "job_claimed") for number in (*failed, asked.number)]
    assert await shown("--kind", "job_failed") == failures
    assert await shown("--kind", "job_failed", "--limit", 2) == failures[1:]
    assert await shown("--kind", "job_claimed", "--limit", 2) == claimed[2:]
    assert await shown("--limit", 2) == [(asked.number, "job_started"), question]
    assert await shown("--kind", "needs_input,job_failed") == [*failures, question]
    assert await shown("--kind", "needs_input", "--kind", "job_failed") == [*failures, question]
    assert await shown("--kind", "job_claimed") == claimed, "stored in the row of job_started"
    both = await shown("--kind", "job_claimed,job_failed")
    assert sorted(both) == sorted([*claimed, *failures])
    assert await shown("--job", asked.name, "--kind", "needs_input") == [question]
    assert await shown(asked.name, "--limit", 1) == [question]
    first = (await cli("events", "--json", "--kind", "job_failed")).lines[0]
    assert await shown("--kind", "job_failed", "--after", first["cursor"]) == failures[1:]
    assert await shown("--since", "1h", "--kind", "job_failed") == failures
    assert await shown("--since", "1h", "--limit", 1) == [question]
    after = ("--after", first["cursor"], "--limit", 1)
    assert await shown("--kind", "job_failed", *after) == failures[1:2]


@pytest.mark.machine_clock("events have the time of the server")
async def test_events_since_a_time_leave_out_older_events(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    numbers = [await make.failed() for _ in range(3)]
    async with rt.db.connection() as conn:
        await conn.execute("ALTER TABLE draftsman.job_events DISABLE TRIGGER USER")
        await conn.execute(
            "UPDATE draftsman.job_events SET created_at = created_at - interval '3 hours'"
            " WHERE job = ANY (%s)",
            (numbers[:2],),
        )
    await wait_for_feed(rt)
    for options in ((), ("--kind", "job_failed"), ("--kind", "job_created")):
        done = await cli("events", "--json", "--since", "2h", *options)
        assert {event["job"] for event in done.lines} == {numbers[2]}, options
    done = await cli("events", "--json", "--job", numbers[0], "--since", "2h")
    assert (done.out, done.err) == ("", "no events match the filters\n")
    recent = await rt.read_model.cursor_before(datetime.now(UTC) - timedelta(hours=1))
    assert recent > (0, 0, 0), "the search skips older events"
    assert {event.job for event in await rt.read_model.events(recent)} == {numbers[2]}


async def test_a_misspelled_kind_is_corrected(cli: Cli, make: Factory) -> None:
    await make.failed()
    near = "no event has the kind 'job_fail'; did you mean job_failed"
    (await cli("events", "--kind", "job_fail")).refused(2, near)
    (await cli("events", "--kind", "nope")).refused(2, "kinds: action_refused, answer_deleted, ")
    items = KINDS_PARAM.shell_complete(Context(events), events.params[0], "job_failed,job_cl")
    assert [item.value for item in items] == ["job_failed,job_claimed"]
    done = await cli("events", "--kind", "job_expired")
    assert (done.code, done.err) == (0, "no events match the filters\n")
    (await cli("events", "D-1", "--job", "D-1")).refused(2, "JOB and --job cannot be combined")
    (await cli("events", "--limit", "0")).refused(2, "--limit")


async def test_followed_events_are_filtered_and_limited(
    cli: Cli, make: Factory, rt: Runtime, terminal: Callable[..., Terminal]
) -> None:
    feed = terminal("events", "--follow", "--kind", "job_failed", "--limit", "2", "--since", "1h")
    numbers = [await make.failed() for _ in range(3)]
    assert feed.end() == 0
    assert [f"D-{number} " in feed.plain for number in numbers] == [True, True, False], feed.plain
    assert "submitted the job" not in feed.plain


async def test_the_logs_of_several_jobs_are_printed_one_after_another(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    first, second = [await make.running() for _ in range(2)]
    silent = await make.queued()
    for work, text in ((first, "one\n"), (second, "two\n")):
        await rt.checkpoints.log(work.lease, 1, text)
    names = (second.name, f"D-{silent}", first.name)
    printed = await cli("logs", *names)
    assert printed.out == f"-- run 1 of {second.name} --\ntwo\n-- run 1 of {first.name} --\none\n"
    assert printed.err.startswith(f"D-{silent} ")
    lines = (await cli("logs", *names, "--json")).lines
    assert [(line["job"], line["text"]) for line in lines] == [
        (second.number, "two\n"),
        (first.number, "one\n"),
    ]
    (await cli("logs", "-f", *names)).refused(2, "--follow takes a single job")
