"""Freezes a release: data that its own code made, and its code, for the tests of later versions.

python -m tests.upgrade.freeze VERSION [--code]

Run it in a clean checkout. It writes tests/upgrade/releases/VERSION: `data.tar.xz` (one file of
COPY for each table) and `manifest.json`. Run it again whenever a migration changes before VERSION
is released. With `--code`, on its release, it also writes `code.tar.xz` (core, migrations,
config); without that archive the tests take the code of the checkout. The code's archive is the
same whenever it is made; the data has ids and times of its own.
"""

from __future__ import annotations

import asyncio
import io
import json
import lzma
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.costs.budgets import CallEstimate, question_of
from draftsman.costs.service import BudgetSweep
from draftsman.database.database import Connection, Database
from draftsman.deliveries.delivery import Receipt
from draftsman.deliveries.service.live_threads import LiveThreads
from draftsman.errors import Failure
from draftsman.ids import new_id
from draftsman.job_types.published.description import TypeDescription
from draftsman.job_types.published.service import publish
from draftsman.jobs.job import Mode, Source, Status
from draftsman.jobs.requests.invocation import FileRef
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.quota import Quota, QuotaLimit
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.people.browser_session import SignInMethod
from draftsman.people.configuration import configured_directory
from draftsman.people.service.browser_sessions import BrowserSessions
from draftsman.questions.service.questions import MAX_REFUSALS_PER_VOTER
from draftsman.queues.service.sweeps import LimitSweep
from draftsman.repos.repo_catalog import Repo, RepoLocation
from draftsman.repos.repo_profile import RepoProfile
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.schedules.schedule import ScheduleSpec
from draftsman.schedules.template import define
from draftsman.settings import settings_model
from draftsman.settings.budgets import BudgetsSettings
from draftsman.settings.limits import UsageSettings
from draftsman_bots.pagers.records.pager_event import PagerEvent
from draftsman_bots.pagers.records.service import PagerEvents
from draftsman_bots.trello.records.board import BoardConfig, LabelSighting
from draftsman_bots.trello.records.cards import CardChecklist, CardDueDate
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import GROUPS, PEOPLE, People
from tests.support import permissions
from tests.support.server import Server, make_home
from tests.upgrade.releases import ROOT, UNFILLED, checkout, checksums

UNLIMITED_QUOTA: Final = QuotaLimit(1000, 1 << 20)
NO_CALL: Final = CallEstimate("model-1", 1, 1, 0.1)
NO_EXPIRY: Final = {"expires_in": 0, "ladders": {"critical": "default"}}
LADDERS: Final = {"default": {"steps": [{"notify": ["ben"]}, {"notify": ["ben"], "after": 3600}]}}
TABLES: Final = """
SELECT relname FROM pg_class
 WHERE relnamespace = 'draftsman'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
 ORDER BY relname"""
SEQUENCES: Final = """
SELECT sequencename, last_value FROM pg_sequences
 WHERE schemaname = 'draftsman' AND last_value IS NOT NULL ORDER BY sequencename"""


async def fill(rt: Runtime, make: Factory) -> None:
    """Create a job in every status, and a row in every table except those of archives.

    Questions of type `asks` and approvals of type `gates` match those of the handlers; every
    claimed or running job belongs to a dead worker.
    """
    people = People(rt.policy)
    dead = await make.worker_row(queues=["default"], version="the release")
    for status in Status:
        kind = {Status.WAITING_FOR_INPUT: "asks", Status.WAITING_FOR_APPROVAL: "gates"}
        fields: dict[str, Any] = {"type": kind.get(status, "noop"), "tags": ["upgrade", "ä\n\t\\"]}
        if status in (Status.CLAIMED, Status.RUNNING):
            fields["worker"] = dead
        await make.job_in(status, **fields)
    await make.queued(subject_key="unique", unique={"seconds": 3600})
    answered = await make.asked(QUESTION, type="asks")
    await make.queued(after=(answered.number,))
    await fill_groups(rt, make)
    await make.answer(answered.number, "red")
    for _ in range(MAX_REFUSALS_PER_VOTER + 1):  # rejected: it is already answered
        await make.answer(answered.number, "blue")
    await make.asked(QUESTION.model_copy(update={"expires_in": 86_400.0}), type="asks")
    gate = await make.asked(GATE, type="gates")
    await rt.questions.mint_token(gate.number, 1, "carol", people.carol)
    await rt.job_control.retry(await make.failed(), make.owner)
    await rt.job_control.dismiss(await make.failed(), make.owner, "fixed upstream")
    work = await make.running(type="works", worker=dead, on_lost="resume")
    await rt.checkpoints.save(work.lease, {"at": 7, "text": "ä\n\t\\"}, b"a bundle")
    await rt.checkpoints.begin_step(work.lease, "paid", "invocation-1")
    await rt.checkpoints.finish_step(work.lease, "paid", {"receipt": 1})
    await rt.checkpoints.begin_step(work.lease, "sent", "invocation-2")
    await rt.checkpoints.artifact(work.lease, "report.txt", "report", bytes(range(256)))
    await rt.checkpoints.event(work.lease, "note", {"text": "ä\n\t\\"})
    await rt.checkpoints.log(work.lease, 0, "a line\n")
    await rt.checkpoints.spend(work.lease, Quota.EVENTS, 20, QuotaLimit(1000))
    term = LeaderTerm(dead, await rt.sweeps.acquire(dead, 30))
    rules = UsageSettings.model_validate(
        {"queue": {"limited": {"running": 1, "partition": "repo"}}}
    ).rules()
    await LimitSweep(rt.db, rules).sweep(term)
    await make.queued(queue="limited")
    await make.queued(queue="limited")
    report = await rt.templates.add(
        "report", define({"type": "noop", "text": "Report"}), make.owner
    )
    await rt.templates.edit(report, define({"type": "noop", "text": "Weekly"}), make.owner)
    request = {"type": "http_request", "payload": {"url": "https://example.org/"}}
    await rt.schedules.add(ScheduleSpec("yearly", "@yearly", request=request), make.owner)
    yearly = await rt.schedules.run("yearly", make.owner)
    await rt.job_control.cancel(yearly.number, make.owner)
    await rt.schedules.pause("yearly", make.owner)
    async with rt.db.connection() as conn:
        await publish(conn, [TypeDescription(name="weekly", place="company.jobs:weekly")])
    await fill_agents(rt, make, term)
    await fill_rules(rt, make)
    await fill_outbox(rt, make)
    await fill_chat(rt, make)
    crew = await make.worker_row(queues=["default"], version="the release")
    for _ in range(2):
        await make.running(type="noop", worker=crew, on_lost="resume")
    await rt.dead_workers.rescue(term, [crew])
    await make.running(type="noop", worker=dead, notify=("slack:C4",))
    assert await LiveThreads(rt.db, rt.policy, "slack").claim(1, 60)


async def fill_agents(rt: Runtime, make: Factory, term: LeaderTerm) -> None:
    """Create the activity, message, costs, budgets and pause of agents, and a grace period."""
    amounts = BudgetsSettings.model_validate({"job": {"cost_usd": 1.0}})
    await BudgetSweep(rt.db, amounts.rules(), amounts.timezone).sweep(term)
    kept = await make.running(type="asks", worker=await make.worker_row(version="the release"))
    critical = QUESTION.model_copy(update={"critical": True})
    await rt.asking.ask(kept.lease, critical, grace=3600)
    await rt.sweeps.run("ladders", term)
    await rt.figures.record_views(await rt.questions.open_of([kept.number]), make.owner)
    await rt.acknowledgments.delegate(kept.number, 1, make.owner, "ben", 3600)
    await rt.acknowledgments.acknowledge(kept.number, 1, make.owner, 3600)
    id = (await rt.read_model.job(kept.number)).id
    page = PagerEvent("ops", "1", id, 1, "acknowledged", datetime.now(UTC))
    await PagerEvents(rt.db, rt.acknowledgments).record(page, make.owner)
    await rt.acknowledgments.snooze(kept.number, 1, make.owner, 3600)
    work = await make.running(type="run_agent", agent="tidy")
    message = await rt.messages.send(work.number, make.owner, "Use the v2 API", event="message-1")
    assert message.message == 1
    files = [FileRef(reference={"id": name}, name=name) for name in ("a.txt", "b.txt")]
    anna = Actor("slack", "U-ANNA", "Anna")
    await make.queued(type="noop", attachments=files, actor=anna)
    stored, _ = await rt.attachments.claim("slack")
    await rt.attachments.store(stored, b"a file")
    activity = [Activity(ActivityKind.MESSAGE, "I read the code.")]
    await rt.activity.append(work.lease, 1, activity, UNLIMITED_QUOTA)
    await rt.model_calls.record(work.lease, {"cost_usd": 1.5}, "model-1")
    state = await rt.model_calls.reserve(work.lease, None, NO_CALL)
    question = question_of(state, work.name, work.run)
    await rt.asking.ask(work.lease, question)
    await make.answer(work.number, "1.0")
    again = await make.running(work.number)
    await rt.model_calls.raise_budget(again.lease, 1, 1.0)
    await rt.model_calls.reserve(again.lease, new_id(), NO_CALL)
    await rt.job_control.pause(await make.queued(), make.owner, "until the release")


async def fill_rules(rt: Runtime, make: Factory) -> None:
    """Create a rule that has answered a question, a digest, and a question like others."""
    rule = await rt.rules.propose("git.example.org/acme/shop", "pytest tests/*", make.owner)
    await rt.rules.ratify(rule.id, make.owner)
    await permissions.asked(make, "pytest tests/test_a.py")
    await rt.digests.choose("09:00", make.owner, timezone="UTC")
    await make.asked(QUESTION, type="asks", repo=permissions.SHOP, notify=("slack:C2",))


async def fill_groups(rt: Runtime, make: Factory) -> None:
    """Create an open group, a group that a failure has stopped, and a canceled group."""
    await make.queued(group={"name": "upgrade", "kind": "sequential", "on_failure": "continue"})
    await make.queued(group="upgrade")
    work = await make.running(group={"name": "stopped", "kind": "parallel"})
    await make.queued(group="stopped")
    await rt.settlement.failure(work, Failure("no such thing", declared="PERMANENT"))
    await make.queued(group={"name": "canceled", "kind": "parallel"})
    await rt.job_control.cancel_group("canceled", make.owner, "wrong version")


async def fill_outbox(rt: Runtime, make: Factory) -> None:
    """Create deliveries that are sent, dead letters or pending, and a paused channel."""
    await make.completed(type="noop", notify=("log", "slack:C1/17.5"))
    (sent,) = await rt.delivery_sender.claim("log", free=1, share=1)
    await rt.delivery_sender.record(sent, Receipt("log:1"))
    (dead,) = await rt.delivery_sender.claim("slack", free=1, share=1)
    await rt.delivery_sender.record(dead, Failure("channel_not_found", declared="PERMANENT"))
    await rt.delivery_sender.limits.pause("slack", 60, "Retry-After")


async def fill_chat(rt: Runtime, make: Factory) -> None:
    """Create a repository, a board, a link code, web sessions, a pause and a reservation."""
    repo = Repo(None, "example.org", "acme", "shop", "https://example.org/acme/shop.git")
    repo = await rt.repos.add(repo, RepoProfile(), make.owner)
    await rt.repos.map(RepoLocation(repo, ""), make.owner, label="shop")
    board = "b" * 24
    label = "1" * 24
    now = datetime.now(UTC)
    labels = {label: {"name": "draftsman", "mode": Mode.FIX}}
    config = {"board_id": board, "name": "Shop", "labels": labels}
    await boards_of(rt).save(BoardConfig.model_validate(config), make.owner)
    await boards_of(rt).baseline(board, [LabelSighting("c" * 24, label)], now, now)
    asked = (await make.asked(QUESTION)).number
    await boards_of(rt).cards.save_checklist(
        CardChecklist("c" * 24, asked, 1, "d" * 24, {"e" * 24: 1})
    )
    await boards_of(rt).cards.change_due_date(None, CardDueDate("c" * 24, board, None, now, None))
    await rt.people.create_link_code(Actor("slack", "U-NEW", "New"))
    sessions = BrowserSessions(rt.db, rt.policy)
    await sessions.create_link(Actor(Source.CLI, "anna", "Anna"))
    await sessions.open(SignInMethod.PROXY, "ben", "a browser", 600)
    await rt.queues.pause("later", make.owner, "until the release")
    await rt.reservations.submit(invocation(type="noop", queue="reserved"), make.owner)


async def tables(conn: Connection) -> dict[str, bytes]:
    """Return every row of each table, as COPY writes it, with the columns in its first line."""
    files = {}
    for (table,) in await (await conn.execute(TABLES)).fetchall():
        statement = f"COPY (SELECT * FROM draftsman.{table}) TO STDOUT (FORMAT text, HEADER)"
        async with conn.cursor().copy(statement.encode()) as copy:
            files[f"{table}.copy"] = b"".join([bytes(part) async for part in copy])
    return files


def packed(files: dict[str, bytes]) -> bytes:
    """Return a .tar.xz that depends on its content only."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            tar.addfile(entry, io.BytesIO(files[name]))
    return lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME)


async def freeze(folder: Path, url: str, *, code: bool) -> None:
    """Write the files, from a database that this version has migrated."""
    settings = settings_model().model_validate(
        {
            "database_url": url,
            "people": PEOPLE,
            "groups": GROUPS,
            "questions": NO_EXPIRY,
            "ladders": LADDERS,
        }
    )
    db = Database(url, settings.database, enums=ENUMS)
    await db.open()
    rt = wire(settings, db, False)
    await rt.people.save(configured_directory(settings))
    await fill(rt, Factory(rt, Actor(Source.CLI, "root", "Root", person="root", owner=True)))
    async with db.connection() as conn:
        data = await tables(conn)
        sequences = dict(await (await conn.execute(SEQUENCES)).fetchall())
    await db.close()
    empty = {name.partition(".")[0] for name, rows in data.items() if rows.count(b"\n") < 2}
    assert not (empty := empty - UNFILLED), f"no row in {', '.join(empty)}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.tar.xz").write_bytes(packed(data))
    if code:
        (folder / "code.tar.xz").write_bytes(packed(checkout()))
    manifest = {
        "version": folder.name,
        "migrations": checksums(functions=False),
        "functions": checksums(functions=True),
        "sequences": sequences,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Freeze this checkout."""
    server = Server(make_home(), None)
    try:
        name = server.create()
        folder = ROOT / "tests" / "upgrade" / "releases" / sys.argv[1]
        asyncio.run(freeze(folder, server.url(name), code="--code" in sys.argv))
    finally:
        server.end()


if __name__ == "__main__":
    main()
