"""Text search in every column, and status aliases."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from draftsman.database.database import Connection
from draftsman.entities import cells
from draftsman.errors import UsageError
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse as address
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import ScheduleSpec
from draftsman.schedules.template import define
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields, parse
from draftsman_tui.dashboard.tables.resource import Query
from draftsman_tui.dashboard.views import OWN_TABLES, VIEWS
from tests.support.budgets import set_budgets
from tests.support.cases import cases
from tests.support.event_history import wait_for_feed
from tests.tui.dashboard.pilot import open_dashboard


async def test_search_matches_the_text_of_every_column(
    make: Factory, rt: Runtime, owner: Actor, conn: Connection
) -> None:
    await set_budgets(conn, all={"cost_usd": 20})
    await rt.model_calls.record((await make.running()).lease, {"cost_usd": 1.5}, "large")
    await make.asked(notify=["log"])
    await make.asked(GATE)
    await make.failed(title="Paint the door")
    await make.dead()
    await make.worker_row()
    await rt.repos.add(Repo.at(address("https://git.example/acme/pay")), RepoProfile(), owner)
    await boards_of(rt).save(BoardConfig(board_id="a" * 24, name="Plans"), owner)
    request = {"type": "http_request", "payload": {"url": "https://example.org/"}}
    await rt.schedules.add(ScheduleSpec("hourly", "@hourly", request=request), owner)
    await rt.templates.add("tidy", define({"type": "noop"}), owner)
    await make.queued(group={"name": "nightly", "kind": "parallel"})
    await rt.rules.propose("acme/shop", "pytest tests/*", owner)
    await wait_for_feed(rt)
    now = datetime.now(UTC)
    for view in map(VIEWS.__getitem__, OWN_TABLES):
        rows = (await view.fetch(rt, Query(parse(""), now))).items
        assert rows, view.name
        for row in rows:
            assert _filled(view.filter_fields(row)) <= set(view.fields), view.name
            for cell in view.cells(row, now):
                for word in cell.text.split():
                    query = Query(Filter(words=(word,)), now)
                    assert view._matches(row, query), (view.name, word)


def _filled(facts: FilterFields) -> set[str]:
    names = {"status", "repo", "by", "agent", "source"}
    return {name for name in names if getattr(facts, name)}


async def test_search_matches_the_displayed_status(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    asked = (await make.asked()).number
    gate = (await make.asked(GATE)).number
    failed = await make.failed()
    dead = await make.dead()
    canceled = await make.queued()
    await rt.job_control.cancel(canceled, owner)
    async with open_dashboard(rt, owner) as seen:
        for text, numbers in {
            "failed": [failed],
            "asks": [asked],
            "gate": [gate],
            "asking": [gate, asked],
            "dead letter": [dead],
            "waiting_for": [gate, asked],
            "cancelled": [canceled],
            "Deploy?": [gate],
            "status:dead": [dead],
            "status:asks,gate": [asked, gate],
            "status:waiting": [asked, gate],
            "status:cancelled": [canceled],
            "status:fail": [failed],
        }.items():
            await seen.command(f"jobs {text}")
            await seen.rows(*(f"D-{number}" for number in numbers))
        await seen.command("inbox status:gate")
        await seen.rows(f"D-{gate}/1")
        await seen.command("inbox question")
        await seen.rows(f"D-{asked}/1")


async def test_events_are_filtered_by_kind(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.asked()
    await wait_for_feed(rt)
    async with open_dashboard(rt, owner, size=(140, 30)) as seen:
        await seen.command("events kind:needs_input,job_claimed")
        await seen.until(lambda: len(seen.keys) == 2)
        await seen.see("waits for an answer", "claimed the job")
        await seen.command("events status:waiting")
        await seen.until(lambda: len(seen.keys) == 1)
        assert "needs_input" in seen.app.main.completions["kind"]
        assert "needs_input" not in seen.app.main.completions["status"]
        await seen.command("events kind:nope")
        assert "kinds: action_refused, " in await seen.wait_for_toast("unknown kind 'nope'")
        await seen.command("jobs")
        assert "kind" not in seen.app.main.completions


async def test_unknown_field_is_rejected_and_the_line_stays_open(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.queued(title="bogus:x")
    async with open_dashboard(rt, owner) as seen:
        await seen.press("slash")
        await seen.paste("bogus:x")
        await seen.press("enter")
        assert "fields: status: repo:" in await seen.wait_for_toast("unknown field 'bogus'")
        await seen.rows("D-1")
        await seen.command("filter 'bogus:x'")
        await seen.rows("D-1")
        await seen.see("/'bogus:x'")
        await seen.command("inbox tag:urgent")
        assert "allowed fields: status:" in await seen.wait_for_toast("has no field 'tag'")
        assert (seen.app.main.view_name, seen.keys) == ("jobs", ["D-1"])
        await seen.command("jobs cost>much")
        await seen.wait_for_toast("cost> needs a number, such as 3")


@cases(
    ("name", "table", "expected"),
    [
        ("dead", "jobs", "dead_letter"),
        ("dead", "deliveries", "dead_letter"),
        ("dead-letter", "dead", "dead_letter"),
        ("wait", "jobs", None),
        ("xyz", "jobs", None),
    ],
)
def test_status_aliases_match_statuses_of_the_table(
    name: str, table: str, expected: str | None
) -> None:
    if expected is None:
        with pytest.raises(UsageError, match="unknown status"):
            VIEWS[table].resolve(parse(f"status:{name}"))
    else:
        assert VIEWS[table].resolve(parse(f"status:{name}")).statuses == (expected,)


STATUS_VIEWS = [name for name, view in VIEWS.items() if view.statuses or view.kinds]


@pytest.mark.parametrize("table", STATUS_VIEWS)
def test_an_unknown_status_is_refused_with_near_names(table: str) -> None:
    view = VIEWS[table]
    known = max((*view.statuses, *view.kinds), key=len)
    with pytest.raises(UsageError, match=f"; did you mean .*{known}"):
        view.resolve(parse(f"status:{known[:-2]}x{known[-1]}"))


def test_each_displayed_status_is_an_alias_of_its_status() -> None:
    for status in Status:
        shown = cells.job_status(status).text.replace(" ", "_")
        assert status in VIEWS["jobs"].resolve(parse(f"status:{shown}")).statuses


async def test_filters_compare_and_search_columns(make: Factory, rt: Runtime, owner: Actor) -> None:
    for dollars, title in ((0.5, "Round the refunds"), (2.0, "Show the taxes")):
        work = await make.running(title=title)
        await rt.model_calls.record(work.lease, {"cost_usd": dollars}, "large")
    await make.queued(title="Paint")
    soon = QUESTION.model_copy(update={"expires_in": 600.0})
    await make.asked(soon)
    await make.asked(QUESTION.model_copy(update={"never_expires": True}))
    async with open_dashboard(rt, owner, size=(140, 30)) as seen:
        for text, names in (
            ("cost>1", ["D-2"]),
            ("cost<$1 runs>0 status:running", ["D-1"]),
            ("title:TAXES", ["D-2"]),
            ("runs<1", ["D-3"]),
            ("next:one", ["D-5", "D-4"]),
        ):
            await seen.command(f"jobs {text}")
            await seen.rows(*names)
        await seen.command("jobs answers>3")
        assert "columns: job, status" in await seen.wait_for_toast("no column 'answers'")
        await seen.command("jobs next>3")
        await seen.wait_for_toast("next cannot be compared")
        await seen.command("inbox expires<1h")
        await seen.rows("D-4/1")
        await seen.command("inbox waits<1h expires>1h")
        await seen.rows("D-5/1")
        await seen.command("costs kind:model cost>1")
        await seen.see("costs · 1")
        await seen.command("costs kind:model cost<1")
        await seen.see("costs · 0")


async def test_only_a_job_and_its_tree(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.queued()
    asked = await make.asked()
    await make.queued(after=(asked.number,))
    await make.asked()
    async with open_dashboard(rt, owner, size=(140, 30)) as seen:
        await seen.rows("D-2", "D-4", "D-3", "D-1")
        await seen.press("O")
        await seen.rows("D-2", "D-3")
        await seen.see("jobs · 2 · /job:D-2")
        await seen.command("inbox")
        await seen.rows("D-2/1")
        await seen.command("events")
        await seen.until(lambda: {key.split("#")[0] for key in seen.keys} == {"D-2", "D-3"})
        await seen.command("runs")
        await seen.rows("D-2.1")
        await seen.press("O")
        await seen.rows("D-4.1", "D-2.1")
        await seen.command("jobs")
        await seen.rows("D-2", "D-4", "D-3", "D-1")
        await seen.job("D-3")
        await seen.press("O")
        await seen.dialog("MainScreen")
        await seen.rows("D-2", "D-3")
        await seen.press("escape")
        await seen.rows("D-2", "D-4", "D-3", "D-1")
        await seen.command("only-job D-99")
        await seen.wait_for_toast("D-99")
