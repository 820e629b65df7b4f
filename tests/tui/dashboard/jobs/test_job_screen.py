"""Job screen: live data of every tab, and navigation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.errors import Failure
from draftsman.jobs.job import Source
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.people.actor import Actor
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.outbox import claim
from draftsman_testing.people import People
from draftsman_tui.dashboard.jobs.details.log_tab import log
from draftsman_tui.dashboard.jobs.details.screen import JobScreen
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard

PATCH = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \x1b[31m\n"
HOSTILE = "red \x1b[31m [bold]x[/bold] \u202eevil " + "long " * 5000


def screen(seen: DashboardPilot) -> JobScreen:
    job_screen = seen.app.screen
    assert isinstance(job_screen, JobScreen)
    return job_screen


async def worked(make: Factory, rt: Runtime, people: People) -> int:
    """Create a job with data in every tab."""
    work = await make.running(
        title="Tidy up",
        text="Please tidy.\n" + HOSTILE,
        agent="tidy",
        notify=["log"],
        payload={"ticket": {"attachments": [{"name": "shot.png"}]}, "depth": 3},
    )
    number = work.number
    for seq, text in enumerate(("begin\n", HOSTILE, "\nhalf")):
        await rt.checkpoints.log(work.lease, seq, text)
    await rt.model_calls.record(work.lease, {"input_tokens": 1234, "cost_usd": 0.25})
    await rt.changes.store(work.lease, PATCH)
    await rt.checkpoints.artifact(work.lease, "notes.md", "report", b"# Notes \x1b[2J")
    await rt.asking.ask(
        work.lease, QuestionSpec(key="a", text="Which one?", choices=("red", "blue"))
    )
    await make.answer(number, "blue", people.on("slack", "ben"))
    again = await make.running(number)
    await rt.asking.ask(again.lease, GATE.model_copy(update={"quorum": 2}))
    await make.decide(number, True, people.on("trello", "stranger"), n=2)
    await make.decide(number, True, people.on("slack", "carol"), n=2)
    await make.decide(number, True, people.on(Source.CLI, "dave"), n=2, reason="looks right")
    last = await make.running(number)
    await rt.model_calls.record(last.lease, {"input_tokens": 66, "cost_usd": 0.5})
    (item, *_) = await claim(rt)
    await rt.delivery_sender.record(item, Failure("the disk is full", declared="PERMANENT"))
    result = {"summary": "It is tidy", "branch": "draftsman/D-1", "commit": "0123456789abcdef"}
    await rt.settlement.outcome(last, Done(result | {"pr_url": "https://git.example/pr/7"}))
    return number


async def test_every_tab_shows_its_data(
    make: Factory, rt: Runtime, owner: Actor, people: People
) -> None:
    number = await worked(make, rt, people)
    await rt.job_control.retry(number, owner, again=True)
    shown = {
        "1": (
            "submitted the job",
            "waits for an answer",
            "did not count",
            "completed the job",
        ),
        "2": ("attached   shot.png", "Please tidy.", "depth", "\\u{1b}[31m"),
        "3": ("── run 1, parked", "begin", "[bold]x[/bold] \\u{202e}evil", "half"),
        "4": ("▾ x  +1 -1", "- old", "+ new \\u{1b}[31m"),
        "5": (
            "D-1/1  question was answered by ben: blue",
            "Ben (slack) answers blue",
            "D-1/2  approval was approved by carol, dave",
            "2 of 2 approvals",
            "Stranger (trello) approves",
            "not accepted: Stranger may not approve",
            "Dave (cli) approves: looks right",
        ),
        "6": ("status", "log", "dead", "the disk is full", "R: resend"),
        "7": ("run 1   parked", "run 3   completed", "worker "),
        "8": ("input tokens 1,234 · cost $0.25", "all", "input tokens 1,300"),
        "9": ("D-1", "original job   this job", "D-2", "retry of D-1"),
        "0": ("changes.patch  patch", "notes.md", "Result", "branch draftsman/D-1"),
    }
    async with open_dashboard(rt, owner) as seen:
        await seen.job(f"D-{number}")
        head = ("completed · agent tidy", "by Root (cli)", "runs 3 · retries 0 of 3")
        await seen.see(*head, "branch draftsman/D-1, commit 0123456789ab", "retried as D-2")
        await seen.see("result  It is tidy", "D-1 · timeline", "─ Tidy up ─", "6:deliveries●")
        assert "following" not in seen.text, "nothing follows in a finished job"
        for key, words in shown.items():
            await seen.press(key)
            await seen.read(*words)
        await seen.press("down", "down", "enter")  # below the result and the patch
        await seen.see("# Notes \\u{1b}[2J")
        await seen.press("escape", "9", "down", "enter")
        await seen.see("D-2 · related", "queued", "retry of D-1", "waits  ")


async def test_only_a_request_of_an_agent_has_a_diff(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    number = await make.queued(type="report:weekly", title="Report of week 31")
    async with open_dashboard(rt, owner, size=(120, 30)) as seen:
        await seen.job(f"D-{number}")
        await seen.see("Report of week 31", "3:log  5:questions")
        await seen.press("3")
        await seen.see(f"D-{number} · log")
        await seen.press("right")
        await seen.see(f"D-{number} · questions")


async def test_enter_opens_the_parents_children_and_group_of_a_job(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    parent = await make.queued(title="Build")
    group = {"name": "release", "kind": "sequential"}
    job = await make.queued(title="Test", after=(parent,), group=group)
    child = await make.queued(title="Deploy", group="release")
    async with open_dashboard(rt, owner, size=(120, 30)) as seen:
        await seen.job(f"D-{job}")
        await seen.press("9")
        await seen.see(
            "Group", "release  0 of 2 succeeded, 2 waiting  sequential", "enter: its jobs"
        )
        await seen.see("Parents", f"D-{parent}  Build  queued  on success")
        await seen.see("This job and its children", f"D-{job}  Test", f"└─ D-{child}  Deploy")
        await rt.job_control.cancel(parent, owner)
        await seen.see(f"└─ D-{child}  Deploy  canceled", "2 canceled", "D-1  Build  canceled")
        await seen.press("end", "enter")
        await seen.see(f"D-{child} · related", f"D-{job}  Test  canceled  on success")
        await seen.press("end", "enter")
        await seen.see(f"D-{job} · related", "Parents")
        await seen.press("home", "down", "enter")
        await seen.see(f"D-{parent} · related", "Build", "This job and its children")
        await seen.press("end", "enter")
        await seen.see(f"D-{child} · related", "Group")
        await seen.press("home", "enter")
        await seen.see("group:release")
        await seen.rows(f"D-{child}", f"D-{job}")


async def test_the_job_that_spawned_a_job_is_its_parent(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    work = await make.running()
    spawned = await rt.workflows.spawn(work, "part", "noop", {})
    async with open_dashboard(rt, owner) as seen:
        await seen.job(f"D-{work.number}")
        await seen.press("9")
        await seen.see("This job and its children", f"└─ D-{spawned}")
        await seen.press("end", "enter")
        await seen.see(f"D-{spawned} · related", f"D-{work.number}  spawned this job")
        await seen.press("end", "enter")
        await seen.see(f"D-{work.number} · related", "This job and its children")


async def test_job_or_question_name_opens_it(make: Factory, rt: Runtime, owner: Actor) -> None:
    number = await make.failed(title="Mow")
    asked = (await make.asked()).number
    async with open_dashboard(rt, owner) as seen:
        await seen.command(f"D-{number}")
        await seen.see(f"D-{number} · timeline")
        await seen.command(f"d-{asked}/1")
        await seen.see(f"D-{asked} · questions")


async def test_enter_opens_a_job_and_escape_returns_to_its_row(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    failed = await make.failed(title="Mow")
    asked = (await make.asked()).number
    await make.queued()
    async with open_dashboard(rt, owner) as seen:
        await seen.newest_first()
        await seen.rows("D-3", "D-2", "D-1")
        await seen.press("home", "down", "enter")
        await seen.see(f"D-{asked} · questions", "waits  D-2/1 needs an answer")
        await seen.press("right_square_bracket")
        await seen.see(f"D-{failed} · questions", "has no questions", "no such thing")
        await seen.press("J")
        await seen.wait_for_toast("this is the last job in the table")
        await seen.press("K", "K")
        await seen.see("D-3 · questions")
        await seen.press("escape")
        await seen.dialog("MainScreen")
        assert seen.cursor_key == "D-3"
        await seen.press("down", "enter")
        await seen.see(f"D-{asked} · questions")
        await seen.press("escape")
        await seen.dialog("MainScreen")
        assert seen.cursor_key == f"D-{asked}"
        for view, keys, row, part in (
            ("inbox", ("2",), f"D-{asked}/1", "questions"),
            ("runs", ("4",), f"D-{asked}.1", "runs"),
            ("events", ("7", "down", "down"), f"D-{asked}#", "timeline"),
        ):
            await seen.press(keys[0])
            await seen.see(f"{view} ·", row.partition("#")[0])
            await seen.press(*keys[1:], "enter")
            await seen.see(f"D-{asked} · {part}")
            await seen.until(partial(_is_on, seen, row))
            await seen.press("escape")
        await seen.command("open D-99")
        await seen.wait_for_toast("there is no job D-99; press 1 for jobs")
        await seen.job(f"D-{asked}/1")
        await seen.see(f"D-{asked} · questions")
        await seen.command("dead")
        await seen.see("dead · 0")


async def test_log_follows_its_end_until_scrolled_up(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    work = await make.running()
    text = "".join(f"line {n}\n" for n in range(100))
    await rt.checkpoints.log(work.lease, 0, text)
    async with open_dashboard(rt, owner, size=(80, 24)) as seen:
        await seen.rows(work.name)
        await seen.press("l")
        await seen.see("log · following", "line 99")
        await rt.checkpoints.log(work.lease, 1, "line 100\n")
        await seen.see("line 100")
        await seen.press("pageup")
        await seen.see("log · f: follow", "line 80")
        top = seen.lines[7]
        await rt.checkpoints.log(work.lease, 2, "line 101\n")
        await seen.read("line 101")
        assert seen.lines[7] == top
        assert "line 101" not in seen.text
        await seen.press("f")
        await seen.see("log · following", "line 101")
        await seen.press("slash")
        await seen.type("line 7")
        await seen.press("enter")
        await seen.see("/line 7 · 11 of 11", "line 79", "line 80", "n next-match")
        await seen.press("n")
        await seen.see(" 1 of 11", "▸ line 7")
        await seen.press("N", "N")
        await seen.see("10 of 11", "▸ line 78")
        await seen.press("ctrl+u")
        assert "line 78" not in seen.text
        await seen.press("escape")
        await seen.until(lambda: "▸" not in seen.text and "next-match" not in seen.text)
        await seen.command("log 1")
        await seen.see("log of run 1")


async def test_log_of_a_finished_job_opens_at_its_end(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    work = await make.running()
    await rt.activity.append(work.lease, 1, [Activity(ActivityKind.FILE, "a.py")], QuotaLimit(9))
    text = "".join(f"line {n} {'is long ' * 30}END\n" for n in range(100))
    await rt.checkpoints.log(work.lease, 0, text)
    await rt.settlement.outcome(work, Done({}))
    async with open_dashboard(rt, owner, size=(80, 24)) as seen:
        await seen.rows(work.name)
        await seen.press("l")
        await seen.see(f"{work.name} · log", "line 99")
        log = screen(seen).item_list
        assert "… 80 more lines; enter shows them" in log.text
        await seen.press("enter")
        await seen.until(lambda: "line 50" in log.text)
        end = f"line99{'islong' * 30}END"
        await seen.until(lambda: end in "".join("".join(seen.lines).split()))
        await seen.press("enter")
        await seen.until(lambda: "line 50" not in log.text)


async def test_new_events_are_shown_and_the_cursor_stays(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    work = await make.asked()
    async with open_dashboard(rt, owner) as seen:
        await seen.job(work.name, "1")
        await seen.read("waits for an answer")
        await seen.press("up")
        here = screen(seen).selected_key
        await seen.see("timeline · f: follow")
        await make.answer(work.number, "red")
        await seen.see("answered: red", "can go on", "waits  no live worker serves")
        assert screen(seen).selected_key == here
        await seen.press("f")
        await rt.job_control.cancel(work.number, owner, "enough")
        await seen.see("root canceled the job: enough", "canceled by root: enough")
        assert "root canceled the job" in next(line for line in seen.lines if "▸" in line)


async def test_job_screen_fits_80_by_24_and_handles_the_mouse(
    make: Factory, rt: Runtime, owner: Actor, people: People
) -> None:
    number = await worked(make, rt, people)
    async with open_dashboard(rt, owner, size=(80, 24)) as seen:
        await seen.job(f"D-{number}")
        for _ in range(10):
            await seen.press("right")
            assert max(map(len, seen.lines)) <= 80
            assert "0:files" in seen.text
            assert "\x1b" not in seen.text
        assert screen(seen).tab == "timeline"
        line = next(n for n, text in enumerate(seen.lines) if "1:time" in text)
        await seen.pilot.click(offset=(seen.lines[line].index("7:runs") + 2, line))
        await seen.see("D-1 · runs")
        line = next(n for n, text in enumerate(seen.lines) if "run 2   parked" in text)
        await seen.pilot.click(offset=(20, line))
        await seen.until(lambda: screen(seen).selected_key == "D-1.2")
        await seen.press("left", "left")
        await seen.see("D-1 · questions")


async def test_empty_tabs_show_a_message(make: Factory, rt: Runtime, owner: Actor) -> None:
    number = await make.completed()
    async with open_dashboard(rt, owner) as seen:
        await seen.job(f"D-{number}", "3")
        await seen.see(f"D-{number} has no logs")
        snapshot = screen(seen).snapshot
        assert snapshot is not None
        old = log(replace(snapshot, logs_kept=6), 200, snapshot.at + timedelta(days=700))
        gone = "Log deleted: logs are kept for 6 months after a job finishes"
        assert [cell.text for cell in old[0].rows[0]] == [gone]
        for key, words in (
            ("4", "has no changes"),
            ("0", "has no files"),
            ("6", "has no notification targets"),
        ):
            await seen.press(key)
            await seen.see(words)


def _is_on(seen: DashboardPilot, row: str) -> bool:
    """Return whether the cursor is on the item of a row."""
    return (screen(seen).selected_key or "").startswith(row)


async def test_the_request_of_a_job_names_keys_instead_of_shell_commands(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    number = await make.failed(payload={"note": "from anna"})
    async with open_dashboard(rt, owner, size=(120, 30)) as seen:
        await seen.job(f"D-{number}")
        await seen.press("2")
        await seen.see("next", "to retry: press r", "from anna")
        assert "draftsman retry" not in seen.text
