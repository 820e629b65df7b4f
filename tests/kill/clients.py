"""Scripts of people's processes; each can be killed at any step and started again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import psycopg

from draftsman.database import migrate
from draftsman.deliveries.service.live_threads import LiveThreads
from draftsman.deliveries.target import parse as parse_target
from draftsman.errors import (
    Conflict,
    LostRace,
    NotFound,
    NotPermitted,
    QuestionClosed,
    Refused,
)
from draftsman.ids import new_id, parse_job
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.people.configuration import configured_directory
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime, open_runtime
from draftsman.schedules.schedule import Misfire, Overlap, ScheduleSpec
from draftsman.schedules.template import define
from draftsman.settings import Settings
from draftsman_bots.slack.records.service import SlackThreads
from draftsman_bots.trello.records.board import BoardConfig, EpisodeStage, LabelRule, LabelSighting
from draftsman_bots.trello.records.service import boards_of
from tests.kill.notifications import OWNER, deliver_notifications
from tests.kill.statements import statements

T = TypeVar("T")
STRANGER: Final = Actor("slack", "U-NOBODY", "Nobody")
KNOWN: Final = "https://github.com/acme/pay"
SUBMITTED: Final = "killed-while-submitting"
"""The key of the job that the people's script submits."""
SUBJECT: Final = "card:1"
"""The subject of a job that its second request joins."""


async def people(settings: Settings, jobs: dict[str, int]) -> None:
    """Submit, answer, approve, extend, cancel, retry, and read every page."""
    async with open_runtime(settings) as rt:
        request = invocation(type="noop", key=SUBMITTED, queue="nobody")
        number = (await rt.submissions.submit(request, OWNER)).number
        for text in ("first", "and the tests"):
            more = invocation(
                type="noop", subject_key=SUBJECT, text=text, queue="nobody", notify=("log",)
            )
            await rt.submissions.submit(more, OWNER)
        duplicates = [
            invocation(type="noop", key=f"{SUBMITTED}-{n}", queue="nobody") for n in range(2)
        ]
        await rt.submissions.submit_many(duplicates, OWNER)
        unkeyed = [invocation(type="noop", queue="nobody") for _ in range(2)]
        await rt.submissions.submit_many(unkeyed, OWNER)
        await rt.submissions.submit(unkeyed[0], OWNER)
        unique = invocation(type="noop", subject_key="unique", unique={}, queue="nobody")
        await rt.read_model.replacement((await rt.submissions.submit(unique, OWNER)).number)
        await rt.submissions.submit(unkeyed[0].model_copy(update={"notify": ("log",)}), OWNER)
        await _answer(rt, jobs)
        await _decide(rt, jobs)
        await _reply_in_threads(rt, jobs["answered"])
        await _show_runs(rt)
        await _look_at_cards(rt)
        await _pause_queue(rt)
        await _reserve_queue(rt)
        await _order_jobs(rt, number)
        await _control_jobs(rt, jobs)
        await _change_repos(rt)
        await _look(rt, number, jobs["answered"])
    await _read_pages(settings)


async def _answer(rt: Runtime, jobs: dict[str, int]) -> None:
    job = jobs["answered"]
    with suppress(QuestionClosed):
        await rt.questions.extend(job, 1, 60, OWNER)
    for actor in (STRANGER, OWNER):
        response = Response(source_event_id=f"click of {actor.id}", text="red")
        await rt.questions.answer(job, 1, response, actor)
    late = Response(source_event_id="late", text="blue")
    await rt.questions.answer(jobs["expired"], 1, late, OWNER)


async def _decide(rt: Runtime, jobs: dict[str, int]) -> None:
    job = jobs["gate"]
    with suppress(NotPermitted):
        await rt.questions.mint_token(job, 1, "carol", STRANGER)
    with suppress(QuestionClosed, NotPermitted):
        carol = Actor(Source.CLI, "carol", "Carol")
        token = await rt.questions.mint_token(job, 1, "carol", carol)
        vote = Response(source_event_id="carol", decision=Decision.APPROVE, token=token)
        await rt.questions.answer(job, 1, vote, carol)
    vote = Response(source_event_id="dave", decision=Decision.APPROVE)
    await rt.questions.answer(job, 1, vote, Actor(Source.CLI, "dave", "Dave"))


async def _reply_in_threads(rt: Runtime, job: int) -> None:
    """Link a chat identity to a person, unlink it, and record changes of their answer."""
    await rt.people.save(configured_directory(rt.settings))
    joined = await rt.people.link(await rt.people.create_link_code(STRANGER), OWNER)
    assert (await rt.people.actor(STRANGER)).person == joined.person
    await rt.people.unlink(STRANGER.channel, STRANGER.id, OWNER)
    await SlackThreads(rt).topics("C1", "1.0")
    await SlackThreads(rt).open_questions_in("C1", 60)
    await SlackThreads(rt).question_messages()
    await SlackThreads(rt).has_pending_message(["C1"], "1.0")
    await rt.submissions.recent_duplicates([(job, parse_target("slack:C1"))], 60)
    vote = Response(source_event_id="a press", text="red")
    await rt.questions.refuse(job, 1, vote, STRANGER, "not from here")
    await rt.job_control.refuse(job, "cancel", "another press", STRANGER, "not from here")
    await rt.threads.edited(job, 1, f"click of {OWNER.id}", OWNER, "blue")
    await rt.threads.deleted(job, 1, f"click of {OWNER.id}", OWNER)


async def _show_runs(rt: Runtime) -> None:
    """Start the stream of a running job, and end it; a killed process keeps no claim."""
    live = LiveThreads(rt.db, rt.policy, "slack")
    for thread, _ in await live.claim(10, 0):
        await live.begin_stream(thread)
        await live.known_streams(["C1/1.1"])
        await live.record(thread, 0)
    for thread, _ in await live.claim(10, 0):
        await live.remove(thread)
    await rt.outbox.paused(600)


async def _look_at_cards(rt: Runtime) -> None:
    """Watch a board, observe added and removed labels on its cards, and settle the episodes."""
    board, card, label, other = (sign * 24 for sign in "bcad")
    current = [LabelSighting(card, label)]
    old = [LabelSighting(card, other)]
    await boards_of(rt).save(
        BoardConfig(board_id=board, name="Work", labels={label: LabelRule(name="do")}), OWNER
    )
    began = await boards_of(rt).clock()
    await boards_of(rt).baseline(board, old, began, began)
    await boards_of(rt).begin_episodes(board, current, await boards_of(rt).clock())
    await boards_of(rt).present(board)
    await boards_of(rt).present_on([card])
    for episode in {*await boards_of(rt).due(board), *await boards_of(rt).due_on(card)}:
        await boards_of(rt).settle(episode, EpisodeStage.SUBMITTED)
        await boards_of(rt).end_swapped_episode(episode)
    await boards_of(rt).end_episodes(old, await boards_of(rt).clock())
    await boards_of(rt).end_removed_episode(card, label, await boards_of(rt).clock())
    await boards_of(rt).cursor(board)
    await boards_of(rt).advance(board, await boards_of(rt).clock())
    await boards_of(rt).webhook(board, other)
    assert await boards_of(rt).of(board) in await boards_of(rt).all()
    await rt.threads.place("trello", card)
    await rt.threads.is_own_message("trello", f"{card}/{other}")
    owner = new_id()
    if (term := await boards_of(rt).acquire(owner, 60)) is not None:
        await boards_of(rt).renew(owner, term, 60)
        await boards_of(rt).resign(owner, term)
    with suppress(NotFound):
        await boards_of(rt).remove(board, OWNER)


async def _pause_queue(rt: Runtime) -> None:
    """Drain a queue, and resume it; a killed process may have done either."""
    async for progress in rt.queues.drain("paused", OWNER, "maintenance"):
        assert progress.finished
    assert await rt.queues.changes("paused")
    assert await rt.queues.all()
    with suppress(Refused):
        await rt.queues.resume("paused", OWNER)


async def _reserve_queue(rt: Runtime) -> None:
    """Reserve a queue and release it; a killed process may have done either."""
    request = invocation(type="kill:lost", key="reserving", queue="nobody")
    await rt.reservations.submit(request, OWNER)
    with suppress(Refused):
        await rt.queues.release_reservation("nobody", OWNER)


async def _order_jobs(rt: Runtime, queued: int) -> None:
    await rt.queues.prioritize(queued, 5, OWNER)
    await rt.queues.move(queued, "bottom", OWNER)
    await rt.queues.order()
    assert await rt.queues.limits() == []
    assert await rt.queues.limit_changes() == []


async def _control_jobs(rt: Runtime, jobs: dict[str, int]) -> None:
    for name, force in (("queued", False), ("running", False), ("stuck", True)):
        with suppress(Refused):
            await rt.job_control.cancel(jobs[name], OWNER, "no", force=force)
    await rt.job_control.retry(jobs["failed"], OWNER)
    await rt.job_control.retry(jobs["expired"], OWNER, with_answer=True)
    await rt.read_model.wait(jobs["expired"])
    await _wait_for_jobs(rt)
    await _schedule_jobs(rt)
    for name in rt.sweeps.names:
        await rt.sweeps.run_now(name, OWNER)


async def _wait_for_jobs(rt: Runtime) -> None:
    """Submit a job, a job that waits for it, and cancel both."""
    batch = [
        invocation(type="noop", name="parent", key="a parent", queue="nobody"),
        invocation(type="noop", key="a child", after=("parent",), queue="nobody"),
    ]
    parent, child = await rt.submissions.submit_many(batch, OWNER)
    late = invocation(type="noop", key="late", after=(child.number,), on="any", queue="nobody")
    await rt.submissions.submit(late, OWNER)
    assert (await rt.workflows.tree(parent.number, 1)).total == 3
    with suppress(Refused):
        await rt.job_control.cancel_tree(parent.number, OWNER)
    group = {"name": "killed", "kind": "sequential", "on_failure": "continue"}
    members = [
        invocation(type="noop", key=f"member {place}", group=group, queue="nobody")
        for place in range(2)
    ]
    jobs = [job.number for job in await rt.submissions.submit_many(members, OWNER)]
    listed = await rt.workflows.groups.members("killed")
    assert [(item.ordinal, item.number) for item in listed][:2] == [*enumerate(jobs, 1)]
    await rt.read_model.jobs(group="killed")
    assert "cli" in await rt.read_model.sources()
    assert await rt.read_model.newest_values("type") == ["noop"]
    with suppress(Refused):
        await rt.job_control.cancel_group("killed", OWNER)
    late = invocation(type="noop", key="late member", group="killed", queue="nobody")
    status = (await rt.submissions.submit(late, OWNER)).status
    assert status is Status.CANCELED
    assert (await rt.workflows.groups.get("killed")).canceled_by == OWNER.name


async def _schedule_jobs(rt: Runtime) -> None:
    """Add a template and a schedule, and let two occurrences become due."""
    anna = rt.policy.resolve(Actor(Source.CLI, "anna", "Anna"))
    with suppress(Conflict):
        await rt.templates.add("nightly", define({"type": "noop", "queue": "nobody"}), OWNER)
    base = await rt.templates.get("nightly")
    await rt.templates.edit(base, define({"type": "noop", "title": "x"}), OWNER)
    await rt.templates.all()
    request = {"type": "http_request", "payload": {"url": KNOWN}, "queue": "nobody"}
    spec = ScheduleSpec(
        "nightly", "@every 1h", request=request, misfire=Misfire.ALL, overlap=Overlap.QUEUE
    )
    with suppress(Conflict):
        await rt.schedules.add(spec, anna)
    await rt.schedules.change(spec, anna)
    with suppress(Refused):
        await rt.schedules.pause("nightly", anna)
    with suppress(Refused):
        await rt.schedules.resume("nightly", anna)
    for _ in range(2):
        async with rt.db.connection() as conn:
            await conn.execute(
                "UPDATE draftsman.schedules SET created_at = created_at - interval '1 h',"
                " due_at = created_at, fire_at = created_at"
            )
        await rt.sweeps.run_now("schedules", OWNER)
    job = await rt.schedules.run("nightly", anna)
    await rt.schedules.of_job(job.number)
    await rt.schedules.upcoming("nightly", 2)
    await rt.schedules.history()
    for fire in await rt.schedules.history("nightly"):
        if fire.job is not None:
            with suppress(Refused):
                await rt.job_control.cancel(fire.job, OWNER)
    await rt.sweeps.run_now("schedules", OWNER)
    await rt.schedules.all()
    await rt.schedules.remove("nightly", anna)


async def _change_repos(rt: Runtime) -> None:
    """Register a repository, map a label to it, and remove it."""
    repos = rt.repos
    with suppress(Conflict):
        await repos.add(Repo.at(parse(KNOWN)), RepoProfile(), OWNER)
    place = await repos.place(KNOWN)
    await repos.save_profile(place.repo, RepoProfile(), OWNER)
    await repos.checked(place.repo, "", "a commit", [], OWNER)
    assert await repos.profiles(place.repo)
    await repos.map(place, OWNER, label_id="L1", label="pay")
    await repos.map(place, OWNER, label="pay")
    await repos.unmap("pay", OWNER)
    await repos.set_default(place.repo, OWNER)
    await repos.set_default(None, OWNER)
    await repos.remove(place.repo, OWNER)


async def _look(rt: Runtime, number: int, round_number: int) -> None:
    inspect = rt.read_model
    job = await inspect.job(number)
    assert await inspect.resolve(parse_job(str(job.id))) == number
    await inspect.resolve(parse_job(f"D-{number}"))
    await inspect.jobs()
    await inspect.page(since=job.created_at)
    await inspect.runs(round_number)
    await inspect.version(round_number)
    await inspect.job_events(round_number)
    await inspect.latest_job_events(round_number)
    await inspect.events()
    await inspect.end_cursor()
    await inspect.events_of_kinds(["job_failed", "needs_input"])
    await inspect.cursor_before(job.created_at)
    await inspect.page(key=job.idempotency_key)
    await inspect.latest_events()
    await inspect.latest_runs()
    await inspect.activity(job.created_at)
    await inspect.counts()
    await inspect.why(round_number)
    await inspect.chain(round_number)
    await inspect.stats()
    await inspect.health()
    await inspect.invariants()
    assert await inspect.receives_notifications()
    await rt.questions.get(round_number, 1)
    await rt.questions.of_job(round_number)
    await rt.questions.open()
    await rt.checkpoints.artifacts(round_number)
    await rt.checkpoints.read_artifact(round_number, "notes.md")
    await rt.changes.patch(round_number)
    await rt.checkpoints.logs(round_number)
    await rt.checkpoints.log_end(round_number)
    await rt.checkpoints.steps(round_number)
    await rt.checkpoints.progress(round_number, limit=20)


async def _read_pages(settings: Settings) -> None:
    async with open_runtime(settings, read_only=True) as rt:
        await rt.read_model.stats()


async def pruning(settings: Settings, jobs: dict[str, int]) -> None:
    """Prune old months, verify the archives, and restore them."""
    async with open_runtime(settings) as rt:
        await rt.archives.plan()
        while await _run_once(lambda: rt.sweeps.run_now("prune", OWNER)):
            pass
        await rt.archives.of_job(jobs["old"])
        for archive in await rt.archives.all():
            await _run_once(partial(rt.archives.restore, Path(archive.path), OWNER))


async def _run_once(work: Callable[[], Awaitable[T]]) -> T:
    """Run the work once the session of a killed process has ended."""
    while True:
        with suppress(LostRace):
            return await work()
        await asyncio.sleep(0.01)


async def migrating(settings: Settings, _: dict[str, int]) -> None:
    """Migrate an empty database while another session holds it; start a new epoch."""
    assert settings.database_url is not None
    url = settings.database_url.get_secret_value()
    with psycopg.connect(url) as holder:
        holder.execute("CREATE SCHEMA IF NOT EXISTS draftsman")
        await migrate.migrate(url, lambda _: holder.rollback())
    await migrate.start_epoch(url)


SCRIPTS: Final[dict[str, Callable[[Settings, dict[str, int]], Awaitable[None]]]] = {
    "people": people,
    "pruning": pruning,
    "migrating": migrating,
    "telling": deliver_notifications,
    "statements": statements,
}
