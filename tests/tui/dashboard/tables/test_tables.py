"""Tables: rows, paging, filters, order and the cursor."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import ScheduleSpec
from draftsman.schedules.template import define
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from draftsman_tui.dashboard.tables import screen as main
from draftsman_tui.dashboard.views import OWN_TABLES, VIEWS
from tests.support.budgets import set_budgets
from tests.tui.dashboard.pilot import open_dashboard


async def test_every_table_shows_its_rows_or_an_empty_message(
    make: Factory, rt: Runtime, owner: Actor, conn: Connection
) -> None:
    async with open_dashboard(rt, owner) as seen:
        for nth, view in enumerate(VIEWS.values(), 1):
            if nth > 1:  # the first is open
                await (seen.press(str(nth % 10)) if nth <= 10 else seen.command(view.name))
            await seen.see(f"{view.name} · 0", view.empty_text(supervised=False)[:70])
            if view.needs_worker:
                assert view.empty_text(supervised=True).endswith(". The worker is starting")
    asked = await make.asked()
    gate = await make.asked(GATE)
    dead = await make.dead(notify=["log"])
    worker = await make.worker_row()
    # it has no process, and is to be alive as long as a slow machine needs for all tables
    await conn.execute(
        "UPDATE draftsman.workers SET heartbeat_at = draftsman.now() + interval '1 hour'"
    )
    repo = Repo.at(parse("https://git.example/acme/pay"))
    await rt.repos.add(repo, RepoProfile(), owner)
    board = BoardConfig(board_id="a" * 24, name="Plans")
    await boards_of(rt).save(board, owner)
    request = {"type": "http_request", "payload": {"url": "https://example.org/"}}
    await rt.schedules.add(ScheduleSpec("hourly", "@hourly", request=request), owner)
    await rt.templates.add("tidy", define({"type": "noop", "title": "Tidy up"}), owner)
    await make.queued(group={"name": "nightly", "kind": "parallel"})
    await set_budgets(conn, job={"cost_usd": 2}, repo={"*": {"cost_usd": 50}})
    work = await make.running(repo="https://git.example.org/acme/shop", agent="codex")
    await rt.rules.propose("acme/shop", "pytest tests/**", owner)
    await rt.model_calls.record(work.lease, {"cost_usd": 1.9, "input_tokens": 7000}, "large")
    shown = {
        "jobs": (f"D-{dead}", "dead", f"D-{gate.number}", "Deploy?"),
        "inbox": (f"D-{asked.number}/1", "Which one?", "red, blue", "approval"),
        "dead": (f"D-{dead}", "gone"),
        "runs": (f"D-{dead}.1", "failed", f"D-{asked.number}.1", "parked"),
        "deliveries": (f"D-{dead}", "log", "pending"),
        "workers": (str(worker)[-8:], "far", "alive"),
        "events": ("root submitted the job", "waits for an answer"),
        "repos": ("acme/pay", "https://git.example/acme/pay"),
        "queues": ("default", "open"),
        "boards": ("Plans", "polling"),
        "schedules": ("hourly", "@hourly", "http_request", "in "),
        "templates": ("tidy", "1", "Tidy up"),
        "groups": ("nightly", "running", "0 of 1 succeeded, 1 waiting"),
        "costs": ("repo", "acme/shop", "$1.90", "100%", "7,000"),
        "budgets": (
            work.name,
            "low",
            "$0.10",
            "$2.00",
            "each repo",
            "repo git.example.org/acme/shop",
            "$48.10",
        ),
        "figures": ("ANSWERED", "ANSWERED 95%", "PER ANSWER", "kind", "approvals"),
        "rules": ("proposed", "acme/shop", "pytest tests/**", "for 30d"),
        "stats": ("last hour", "last week", "all", "queue", "noop"),
    }
    assert shown.keys() == OWN_TABLES
    async with open_dashboard(rt, owner, view="boards", size=(240, 40)) as seen:
        await seen.see("Plans")
        for name, words in shown.items():
            await seen.command(name)
            await seen.see(*words)
        await seen.command("costs kind:agent,day age<30d")
        await seen.see("agent    codex", "day      20")
        await seen.command("budgets acme")
        await seen.see("budgets · 1")
        await seen.press("enter")
        await seen.see("jobs · 1 · /repo:git.example.org/acme/shop", work.name)


async def test_cursor_stays_on_its_row_when_rows_are_added(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    first = await make.queued()
    second = await make.queued()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows(f"D-{second}", f"D-{first}")
        await seen.press("down")
        third = await make.queued()
        await seen.rows(f"D-{third}", f"D-{second}", f"D-{first}")
        assert seen.cursor_key == f"D-{first}"
        await rt.job_control.cancel(first, owner)
        await seen.see("canceled")
        assert seen.cursor_key == f"D-{first}"


async def test_cursor_stays_at_the_top_until_it_is_moved_or_a_command_needs_its_row(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for _ in range(10):
        await make.queued()
    async with open_dashboard(rt, owner, size=(100, 14)) as seen:
        table = seen.app.main.table
        await seen.see("D-10")
        asked = (await make.asked()).number
        await seen.see(f"▸ D-{asked}", "needs a person")
        assert table.top == 0
        await seen.press("w")
        await seen.dialog("TextDialog")
        other = (await make.asked()).number
        await seen.press("escape")
        await seen.dialog("MainScreen")
        await seen.until(lambda: f"D-{other}" in seen.keys)
        assert seen.cursor_key == f"D-{asked}"
        await seen.press("down", "down")
        line = table.span(table.cursor)[0] - table.top
        newest = [(await make.asked()).number for _ in range(4)][-1]
        await seen.until(lambda: f"D-{newest}" in seen.keys)
        assert seen.cursor_key == "D-10"
        assert table.span(table.cursor)[0] - table.top == line
        await seen.press("home")
        urgent = (await make.asked(QUESTION.model_copy(update={"expires_in": 600}))).number
        await seen.see(f"▸ D-{urgent}")


async def test_more_rows_are_loaded_at_the_end(make: Factory, rt: Runtime, owner: Actor) -> None:
    for _ in range(5):
        await make.queued()
    async with open_dashboard(rt, owner) as seen:
        seen.app.main._change(limit=2)
        await seen.rows("D-5", "D-4")
        await seen.see("jobs · 5")
        await seen.press("end", "down")
        await seen.rows("D-5", "D-4", "D-3", "D-2", "D-1")
        assert seen.cursor_key == "D-4"


async def test_table_pages_forward_and_back_beyond_the_row_limit(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [(await make.asked(notify=["log"])).number for _ in range(5)]
    shown = {
        "jobs": [f"D-{number}" for number in numbers],
        "inbox": [f"D-{number}/1" for number in numbers],
        "deliveries": [str(delivery.seq) for delivery in await rt.outbox.all(limit=100)],
    }
    monkeypatch.setattr(main, "MAX_ROWS", 2)
    async with open_dashboard(rt, owner) as seen:
        for view, keys in shown.items():
            assert len(keys) >= 5
            await seen.command(view)
            seen.app.main._change(limit=2)
            await seen.rows(*keys[:2])
            for nth in range(2, len(keys), 2):
                await seen.press(*["down"] * (2 - seen.app.main.table.cursor))
                await seen.rows(*keys[nth : nth + 2])
                assert seen.cursor_key == keys[nth]
            await seen.see(f"page {(len(keys) + 1) // 2}")
            for nth in range(len(keys) - 3 + len(keys) % 2, 0, -2):
                await seen.press(*["up"] * (seen.app.main.table.cursor + 1))
                await seen.rows(*keys[nth - 1 : nth + 1])


async def test_filter_narrows_and_an_invalid_filter_lists_allowed_fields(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.queued(title="Paint the fence")
    failed = await make.failed(title="Paint the door")
    dead = await make.dead(title="Mow")
    async with open_dashboard(rt, owner) as seen:
        await seen.newest_first()
        await seen.press("slash")
        await seen.type("paint")
        await seen.press("enter")
        await seen.rows("D-2", "D-1")
        await seen.command("jobs status:failed,dead_letter")
        await seen.rows(f"D-{dead}", f"D-{failed}")
        await seen.command("filter /D.or/")
        await seen.rows(f"D-{failed}")
        await seen.command("filter status:nonsense")
        assert "available: waiting" in await seen.wait_for_toast("unknown status 'nonsense'")
        await seen.rows(f"D-{failed}")
        await seen.command("filter age>1h")
        await seen.rows()
        await seen.press("escape")
        await seen.rows("D-3", "D-2", "D-1")


async def test_inbox_shows_an_identical_question_of_several_people_once(
    make: Factory, rt: Runtime, owner: Actor, people: People
) -> None:
    repo = "https://git.example/acme/shop"
    for actor in (people.anna, people.erin):
        await make.asked(repo=repo, actor=actor)
    async with open_dashboard(rt, owner, view="inbox", size=(200, 40)) as seen:
        await seen.see(
            "2 jobs · Which one?", "anna +1", "inbox · 1 · 2 jobs", "2 jobs ask this: D-1"
        )
        await seen.rows("D-1/1")
        await seen.command("filter by:erin")
        await seen.see("/by:erin")
        await seen.rows("D-1/1")
        await seen.command("filter by:carol")
        await seen.rows()


async def test_a_command_on_a_folded_row_is_about_all_of_its_jobs(
    make: Factory, rt: Runtime, owner: Actor, people: People
) -> None:
    repo = "https://git.example/acme/shop"
    for actor in (people.anna, people.erin):
        await make.asked(repo=repo, actor=actor)
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows("D-1/1")
        await seen.press("i")
        await seen.wait_for_toast("D-2/1 acknowledged until")
        await seen.press("I")
        await seen.see("Snooze D-1/1, D-2/1 for how long?")
        await seen.type("2h")
        await seen.press("enter")
        await seen.wait_for_toast("D-2/1 snoozed until")
        await seen.press("a")
        await seen.dialog("AnswerDialog")
        await seen.press("alt+i")
        await seen.see("D-2/1 acknowledged until")
        await seen.press("escape")
        await seen.dialog("MainScreen")
        asked = await rt.questions.open_of([1, 2])
        assert [row.acknowledged_by for row in asked] == ["root", "root"]
        await seen.command("extend 1d")
        await seen.wait_for_toast("D-2/1 expires")
        await seen.press("c")
        await seen.see("Cancel 2 jobs?", "D-1, D-2")
        await seen.press("y")
        await seen.rows()
    assert {str((await rt.read_model.job(number)).status) for number in (1, 2)} == {"canceled"}


async def test_inbox_shows_and_filters_by_requester(
    make: Factory, rt: Runtime, people: People, owner: Actor
) -> None:
    job = {"title": "Tidy up", "repo": "https://git.example/acme/pay", "agent": "tidy"}
    push = GATE.model_copy(update={"action": {"to": "origin", "push": "draftsman/D-1"}})
    await make.asked(push, actor=people.anna, type="run_agent", **job)
    await make.asked()
    async with open_dashboard(rt, owner, view="inbox", size=(200, 40)) as seen:
        await seen.see("Tidy up", "acme/pay", "tidy", "anna", "push draftsman/D-1 to origin")
        for words in ("tidy-up", "acme/pay", "anna", "tidy", "origin", "by:anna", "repo:pay"):
            await seen.command("filter " + words.replace("-", "\\ "))
            await seen.rows("D-1/1")
        await seen.command("filter by:root")
        await seen.rows("D-2/1")


async def test_denied_job_has_its_own_role(
    make: Factory, rt: Runtime, people: People, owner: Actor
) -> None:
    work = await make.asked(GATE)
    failed = await make.failed()
    await make.decide(work.number, False, people.carol, reason="too risky")
    async with open_dashboard(rt, owner, size=(140, 30)) as seen:
        await seen.see("denied by carol", "no such thing")
    jobs = {job.number: job for job in (await rt.read_model.page(limit=9)).jobs}
    denied, crashed = (
        VIEWS["jobs"].cells(jobs[number], datetime.now(UTC)) for number in (work.number, failed)
    )
    assert [(cell.text, cell.role) for cell in (denied[1], denied[-1])] == [
        ("failed", "denied"),
        ("denied by carol: too risky", "denied"),
    ]
    assert {crashed[1].role, crashed[-1].role} == {"bad"}


async def test_retried_dead_letter_is_marked(make: Factory, rt: Runtime, owner: Actor) -> None:
    first = await make.dead()
    second = await make.dead()
    retried = await rt.job_control.retry(first, owner)
    async with open_dashboard(rt, owner, view="dead") as seen:
        await seen.rows(f"D-{second}", f"D-{first}")
        await seen.see(f"retried as {retried.name}: gone")
    page = await rt.read_model.page(limit=9)
    assert {job.number: job.retried_as for job in page.jobs} == {
        first: retried.number,
        second: None,
        retried.number: None,
    }


async def test_rows_are_sorted_by_a_column_in_both_directions(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for title in ("b", "c", "a"):
        await make.queued(title=title)
    async with open_dashboard(rt, owner) as seen:
        await seen.command("sort title")
        await seen.rows("D-3", "D-1", "D-2")
        await seen.press("S")
        await seen.rows("D-2", "D-1", "D-3")
        for order in (["D-3", "D-1", "D-2"], ["D-2", "D-1", "D-3"]):
            await seen.press("s")
            await seen.dialog("ChoiceDialog")
            await seen.see("3  title")
            await seen.press("3")
            await seen.rows(*order)
        await seen.command("jobs")
        await seen.press("ctrl+d")
        assert seen.cursor_key == "D-3"
        await seen.command("sort nonsense")
        await seen.wait_for_toast("cannot sort by column 'nonsense'")


async def test_control_characters_are_neutralized(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.queued(title="red \x1b[31m [bold]alert[/bold]")
    async with open_dashboard(rt, owner, size=(160, 20)) as seen:
        await seen.see("[bold]alert[/bold]")
        assert "\x1b" not in seen.text


async def test_tables_fit_80_by_24(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.failed(title="A title that is much longer than there is room for on a line")
    async with open_dashboard(rt, owner, size=(80, 24)) as seen:
        await seen.see("D-1", "failed", "…", "no worker", "q quit")
        assert max(map(len, seen.lines)) <= 80


async def test_enter_on_a_group_lists_its_jobs(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.queued()
    first = await make.queued(group={"name": "release", "kind": "sequential"})
    second = await make.queued(group="release")
    async with open_dashboard(rt, owner, view="groups", size=(120, 30)) as seen:
        await seen.see("release", "running", "0 of 2 succeeded, 2 waiting")
        await seen.press("enter")
        await seen.rows(f"D-{second}", f"D-{first}")
        await seen.see("group:release")
        await seen.press("enter")
        await seen.see("group release: 0 of 2 succeeded")
