"""What belongs to a repository that a person may not see appears nowhere for them.

Everything that a person can read is read twice: before there is anything of that repository, and
after. For a person who may not see it, nothing has changed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from draftsman.actions.action import ACTIONS, About, Call
from draftsman.database.database import Connection
from draftsman.entities.registry import listed_entities
from draftsman.errors import NotFound
from draftsman.formats.json_data import as_data
from draftsman.ids import JobRef
from draftsman.jobs.details.throughput import Period
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse as parse_url
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import ScheduleSpec
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_tui.dashboard.tables.filter import parse
from draftsman_tui.dashboard.tables.resource import Query
from draftsman_tui.dashboard.views import VIEWS
from tests.support.statements import rows
from tests.support.visibility import SECRET, hide
from tests.test_actions import ARGUMENTS

Read = Callable[[Runtime, Actor], Awaitable[Any]]
SINCE: Final = datetime(2000, 1, 1, tzinfo=UTC)
SPAN: Final = re.compile(r"\bnow\b|(in )?[\d.]+ (ms|s|min)\b")
LATER: Final = datetime(2099, 1, 1, tzinfo=UTC)
"""A time for which ages do not change while the test runs."""
COST: Final = """
INSERT INTO draftsman.daily_costs
VALUES (draftsman.budget_day(), %(repo)s, 'carol', 'coder', 'm', 1, 1, 1, 1)"""
DEAD: Final = """
UPDATE draftsman.deliveries SET status = 'dead_letter', next_attempt_at = NULL, last_error = 'no'
 WHERE job = %(job)s"""
PASSING: Final = ("age", "wait", "seconds", "left", "due_in", "p50", "p95", "end", "first")
"""Endings of the names of values that pass with time, and of cursors."""


def _table(name: str) -> Read:
    async def read(rt: Runtime, actor: Actor) -> Any:
        view = VIEWS[name]
        rows = await view.fetch(rt, Query(parse(""), LATER, viewer=actor))
        return [[SPAN.sub("", cell.text) for cell in view.cells(row, LATER)] for row in rows.items]

    return read


def _list(name: str) -> Read:
    async def read(rt: Runtime, _: Actor) -> Any:
        entity = listed_entities()[name]
        return [entity.data(row) for row in await entity.listing.read(rt, 200)]

    return read


READS: Final[dict[str, Read]] = {
    **{f"table {name}": _table(name) for name in VIEWS},
    **{f"list {name}": _list(name) for name in listed_entities()},
    "stats": lambda rt, _: rt.read_model.stats(),
    "throughput": lambda rt, _: rt.throughput.read(Period.HOUR),
    "activity": lambda rt, _: rt.read_model.activity(SINCE),
    "pages of each status": lambda rt, _: rt.read_model.page(statuses=[Status.COMPLETED]),
    "paused jobs": lambda rt, _: rt.read_model.jobs(paused=True),
    "jobs of a group": lambda rt, _: rt.read_model.jobs(group="release"),
    "members of a group": lambda rt, _: rt.workflows.groups.members("release"),
    "events of kinds": lambda rt, _: rt.read_model.events_of_kinds(["needs_input"]),
    "common events": lambda rt, _: rt.read_model.events_of_kinds(["job_created"]),
    "event feed": lambda rt, _: rt.read_model.events(),
    "questions": lambda rt, actor: rt.questions.open(fold_for=actor),
    "order of queues": lambda rt, _: rt.queues.order(1000),
    "held jobs": lambda rt, _: rt.queues.held(1000),
    "figures": lambda rt, _: rt.figures.read(86_400),
    "costs": lambda rt, _: rt.budgets.costs("repo", 2),
    "dead letters": lambda rt, _: rt.outbox.dead_letters(),
    "count of dead letters": lambda rt, _: rt.outbox.dead_letter_count(),
    "jobs without targets": lambda rt, _: rt.outbox.unnotified(),
    "jobs to retry": lambda rt, _: rt.finished_jobs.matching([Status.FAILED]),
    "occurrences": lambda rt, _: rt.schedules.history(),
}
JOBLESS: Final = {
    *("table workers", "table boards", "table templates", "table rules", "table limits"),
    *("table budgets", "list workers", "list templates", "list rules", "list limits"),
    *("table types", "list types"),
}
"""What a job of this test changes nothing of."""


async def _fill(rt: Runtime, make: Factory, repo: str) -> list[int]:
    """Make jobs of a repository in every status, and what belongs to them; return their numbers."""
    fields: dict[str, Any] = {"repo": repo, "title": f"Work in {repo}"}
    jobs = [
        await make.queued(**fields, queue="work", notify=("log",)),
        *[await make.job_in(status, **fields) for status in Status],
    ]
    group = {"name": "release", "kind": "parallel"}
    jobs.append(await make.completed(**fields, group=group))
    paused = await make.queued(**fields)
    await rt.job_control.pause(paused, make.owner, "noon")
    answered = await make.asked(**fields)
    await make.answer(answered.number, "red")
    url = f"https://git.example/acme/{repo}"
    await rt.repos.add(Repo.at(parse_url(url)), RepoProfile(), make.owner)
    request = {"type": "noop", "repo": url}
    await rt.schedules.add(ScheduleSpec(f"of-{repo}", "@every 1h", request=request), make.owner)
    fire = await rt.schedules.run(f"of-{repo}", make.owner)
    async with rt.db.connection() as conn:
        await conn.execute(COST, {"repo": repo})
        await conn.execute(DEAD, {"job": jobs[0]})
    return [*jobs, paused, answered.number, fire.number]


def _stable(value: Any) -> Any:
    """Return a value without what passes with time."""
    if isinstance(value, dict):
        return {key: _stable(each) for key, each in value.items() if not str(key).endswith(PASSING)}
    if isinstance(value, list | tuple | set | frozenset):
        return [_stable(each) for each in value]
    return value


async def _seen(rt: Runtime, actor: Actor) -> dict[str, Any]:
    seen_by = rt.seen_by(actor)
    return {name: _stable(as_data(await read(seen_by, actor))) for name, read in READS.items()}


async def test_nothing_of_a_hidden_repository_is_read(
    rt: Runtime, make: Factory, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "carol")
    await rt.queues.pause("work", make.owner, "noon")
    await _fill(rt, make, "pay")
    before = {who: await _seen(rt, getattr(people, who)) for who in ("carol", "dave")}
    await _fill(rt, make, SECRET)
    after = {who: await _seen(rt, getattr(people, who)) for who in ("carol", "dave")}
    for name in READS:
        assert before["carol"][name] == after["carol"][name], name
    unchanged = {name for name in READS if before["dave"][name] == after["dave"][name]}
    assert unchanged == JOBLESS


ABOUT_A_JOB: Final[dict[str, Callable[[Runtime, int], Awaitable[Any]]]] = {
    "reference": lambda rt, job: rt.read_model.resolve(JobRef(str(job), number=job)),
    "job": lambda rt, job: rt.read_model.job(job),
    "details": lambda rt, job: rt.read_model.details(job),
    "version": lambda rt, job: rt.read_model.version(job),
    "reason": lambda rt, job: rt.read_model.why(job),
    "question": lambda rt, job: rt.questions.get(job, 1),
    "tree": lambda rt, job: rt.workflows.tree(job),
}


@pytest.mark.parametrize("about", ABOUT_A_JOB)
async def test_a_hidden_job_is_not_found(
    rt: Runtime, make: Factory, people: People, monkeypatch: pytest.MonkeyPatch, about: str
) -> None:
    hide(monkeypatch, "olga")
    job = (await make.asked(repo=SECRET)).number
    await ABOUT_A_JOB[about](rt.seen_by(people.dave), job)
    with pytest.raises(NotFound):
        await ABOUT_A_JOB[about](rt.seen_by(people.olga), job)


ON_ROWS: Final = {
    key: action for key, action in ACTIONS.items() if action.about in (About.JOB, About.QUESTION)
}


@pytest.mark.parametrize("key", ON_ROWS)
async def test_an_action_finds_no_hidden_job(
    rt: Runtime, make: Factory, people: People, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    hide(monkeypatch, "olga")
    action = ON_ROWS[key]
    job = (await make.asked(repo=SECRET)).number
    row = (job, 1) if action.about is About.QUESTION else job
    call = Call(rt.seen_by(people.olga), people.olga)
    with pytest.raises(NotFound, match=f"D-{job}"):
        await action(call, row, *ARGUMENTS.get(key, ()))
    with pytest.raises(NotFound, match=f"D-{job}"):
        await action.asked(call, row)
    assert (await rt.read_model.job(job)).status is Status.WAITING_FOR_INPUT


OF_OTHERS: Final = ("schedule.pause", "schedule.resume", "schedule.run", "schedule.remove")
"""Actions on schedules, which have no job."""


async def test_an_action_finds_no_hidden_schedule_delivery_and_rule(
    rt: Runtime, make: Factory, people: People, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "olga")
    await _fill(rt, make, SECRET)
    name = f"of-{SECRET}"
    await rt.schedules.pause(name, make.owner, "noon")
    dead = "SELECT seq FROM draftsman.deliveries WHERE status = 'dead_letter' ORDER BY seq LIMIT 1"
    ((seq,),) = await rows(conn, dead)
    call = Call(rt.seen_by(people.olga), people.olga)
    for key in OF_OTHERS:
        with pytest.raises(NotFound, match=name):
            await ACTIONS[key](call, name, *ARGUMENTS.get(key, ()))
    with pytest.raises(NotFound, match=f"there is no delivery {seq}"):
        await ACTIONS["delivery.redeliver"](call, [seq])
    assert (await rt.schedules.get(name)).paused_at is not None
    rule = (await rt.rules.propose(f"acme/{SECRET}", "pytest tests/**", make.owner)).id
    for key in ("rule.ratify", "rule.revoke"):
        with pytest.raises(NotFound, match=f"there is no rule {rule}"):
            await ACTIONS[key](call, rule)
    assert (await rt.rules.get(rule)).status == "proposed"
