"""The Python client, against a real database."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from draftsman import BlockingClient, Client, Draftsman, Request
from draftsman.client.asynchronous import BATCH
from draftsman.client.requests import JobName
from draftsman.database.database import Connection, Database
from draftsman.errors import (
    DraftsmanError,
    IdempotencyConflict,
    NotFound,
    QuestionClosed,
    Refused,
    UsageError,
)
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.people.actor import Actor
from draftsman.processes.host import login
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.waits import wait_blocked


@pytest.fixture
def draftsman(tmp_path: Path, database_url: str) -> Draftsman:
    config = tmp_path / "draftsman.toml"
    config.write_text(
        f'[people.me]\nlogin = "{login()}"\nroles = ["invoker", "responder", "operator"]\n'
        '[people.carol]\nlogin = "carol"\nroles = ["approver"]\n'
        '[people.dave]\nlogin = "dave"\nroles = ["approver"]\n'
        "[types.noop]\n"
    )
    return Draftsman(database_url, config=config)


@pytest.fixture
async def client(draftsman: Draftsman) -> AsyncIterator[Client]:
    async with draftsman as client:
        yield client


@pytest.fixture
def blocking(draftsman: Draftsman) -> Iterator[BlockingClient]:
    with draftsman as client:
        yield client


async def test_a_request_creates_one_job_of_the_current_user(client: Client) -> None:
    submitted = await client.submit("Tidy up", type="noop", key="k-1", payload={"n": 1})
    repeated = await client.submit("Tidy up", type="noop", key="k-1", payload={"n": 1})
    assert (submitted.outcome, repeated.outcome) == ("created", "deduplicated")
    assert repeated.number == submitted.number
    job = await client.get(submitted)
    assert (job.agent_request.text, job.payload, job.status) == ("Tidy up", {"n": 1}, Status.QUEUED)
    assert (job.source, job.invoker_id) == (Source.API, "me")
    with pytest.raises(IdempotencyConflict, match="k-1"):
        await client.submit("Something else", type="noop", key="k-1")


@pytest.mark.parametrize("form", ["number", "name", "id", "prefix", "result"])
async def test_a_job_is_named_in_any_form(client: Client, form: str) -> None:
    job = await client.submit(type="noop")
    names: dict[str, JobName] = {
        "number": job.number,
        "name": job.name,
        "id": job.id,
        "prefix": str(job.id)[:-4],
        "result": await client.get(job),
    }
    assert (await client.get(names[form])).id == job.id


async def test_many_requests_create_jobs_in_their_order(client: Client) -> None:
    jobs = await client.submit_many({"type": "noop", "key": f"k-{n}"} for n in range(20))
    assert [(await client.get(job)).idempotency_key for job in jobs] == [
        f"k-{n}" for n in range(20)
    ]
    assert await client.submit_many([]) == []


async def test_stream_reads_requests_as_it_submits_them(client: Client) -> None:
    taken = 0

    def requests() -> Iterator[Request]:
        nonlocal taken
        for taken in range(1, 2 * BATCH + 2):
            yield {"type": "noop", "key": f"k-{taken}"}

    jobs = [job async for job in _checked(client, requests(), lambda: taken)]
    assert [job.outcome for job in jobs] == ["created"] * (2 * BATCH + 1)
    again = [job.number async for job in client.submit_stream(requests())]
    assert again == [job.number for job in jobs]


async def _checked(
    client: Client, requests: Iterator[Request], taken: Callable[[], int]
) -> AsyncIterator[SubmittedJob]:
    """Yield the jobs; check that at most a batch of requests is read ahead."""
    count = 0
    async for job in client.submit_stream(requests):
        count += 1
        assert taken() - count < BATCH
        yield job


async def test_invalid_request_ends_the_stream_before_its_batch(client: Client) -> None:
    async def requests() -> AsyncIterator[Request]:
        for number in range(BATCH + 3):
            yield {"type": "noop", "key": f"k-{number}"}
        yield {"type": "noop", "priority": 5000}

    stream = client.submit_stream(requests())
    jobs = [await anext(stream) for _ in range(BATCH)]
    with pytest.raises(UsageError) as caught:
        await anext(stream)
    assert caught.value.__notes__ == [
        "request 4",
        f"in the batch that starts with request {BATCH + 1}; earlier jobs exist",
    ]
    assert [job.outcome for job in jobs] == ["created"] * BATCH
    found = await client.submit_many([{"type": "noop", "key": f"k-{BATCH}"}])
    assert found[0].outcome == "created"


async def test_wait_returns_the_job_with_its_result(client: Client, make: Factory) -> None:
    submitted = await client.submit(type="noop", queue="waited")
    with pytest.raises(TimeoutError, match=rf"{submitted.name} did not end within 0\.05 s"):
        await client.wait(submitted, timeout=0.05)
    waiting = asyncio.create_task(client.wait(submitted))
    work = await make.running(submitted.number)
    await make.rt.settlement.outcome(work, Done({"answer": 42}))
    job = await waiting
    assert (job.status, job.result) == (Status.COMPLETED, {"answer": 42})
    assert [event.kind async for event in client.events(submitted)][-1] == "job_completed"


async def test_the_feed_continues_after_a_stored_cursor(client: Client) -> None:
    first = await client.submit(type="noop")
    events = client.events()
    event = await anext(events)
    assert event.job == first.number
    second = await client.submit(type="noop")
    later = client.events(after=event.cursor)
    assert (await anext(later)).job == second.number
    assert await anext(client.events(second.name, after=event)) == await anext(
        client.events(second)
    )
    for open_feed in (events, later):
        await open_feed.aclose()  # type: ignore[attr-defined]


async def test_a_question_is_answered_once(client: Client, make: Factory) -> None:
    work = await make.asked()
    [question] = await client.questions(work.number)
    with pytest.raises(UsageError, match="red"):
        await client.answer(question, "green")
    verdict = await client.answer(f"D-{work.number}/1", "blue")
    assert (verdict.resolved, verdict.job_status) == (True, "resumed")
    with pytest.raises(QuestionClosed):
        await client.answer(question, "red")
    with pytest.raises(UsageError, match="/1"):
        await client.answer(work.name, "red")
    with pytest.raises(NotFound):
        await client.answer(f"{work.name}/7", "red")
    assert await client.questions() == []


async def test_an_approval_needs_the_role(client: Client, make: Factory) -> None:
    work = await make.asked(GATE)
    with pytest.raises(Refused, match="approver"):
        await client.approve(f"{work.name}/1", "looks good")
    with pytest.raises(Refused, match="approver"):
        await client.deny(f"{work.name}/1")


async def test_a_message_is_sent_once_for_its_key(client: Client, make: Factory) -> None:
    job = f"D-{await make.queued(type='run_agent', title='Do it')}"
    assert (await client.tell(job, "use the v2 API", key="k")).created
    assert not (await client.tell(job, "use the v2 API", key="k")).created


async def test_a_job_is_canceled_and_retried(client: Client) -> None:
    job = await client.submit(type="noop")
    assert (await client.cancel(job, "not needed")).status is Status.CANCELED
    with pytest.raises(Refused, match="already canceled"):
        await client.cancel(job)
    assert (await client.get(await client.retry(job))).retry_of == job.number


async def test_a_job_exists_if_the_callers_transaction_commits(
    client: Client, database_url: str
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, row_factory=dict_row) as conn:
        job = await client.submit(type="noop", key="tx", notify=["log"], connection=conn)
        with pytest.raises(NotFound):
            await client.get(job.number)
        await conn.rollback()
        with pytest.raises(NotFound):
            await client.get(job.number)
        job = await client.submit(type="noop", key="tx", notify=["log"], connection=conn)
        await conn.commit()
        assert (await client.get(job.number)).status is Status.QUEUED
        repeated = await client.submit(type="noop", key="tx", notify=["log"], connection=conn)
        assert (repeated.outcome, repeated.number) == ("deduplicated", job.number)


@pytest.mark.parametrize("kind", ["async", "blocking"])
async def test_a_submission_uses_only_the_connection_of_the_caller(
    rt: Runtime, owner: Actor, database_url: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    @asynccontextmanager
    async def refuse(_: Database, wait: float | None = None) -> AsyncIterator[Connection]:
        raise AssertionError("the submission took a connection of the pool")
        yield

    registered = Repo.at(parse("ssh://git@example.org/Acme/Pay"))
    await rt.repos.add(registered, RepoProfile(), owner)
    url = "https://example.org/acme/pay.git"
    request = invocation(type="run_agent", agent="tidy", mode="fix", repo=url)
    async with await psycopg.AsyncConnection.connect(database_url) as conn:
        with psycopg.connect(database_url) as blocking, monkeypatch.context() as patch:
            patch.setattr(Database, "connection", refuse)
            callers_connection = conn if kind == "async" else blocking
            [job] = await rt.submissions.submit_many(
                [request], owner, connection=callers_connection
            )
        await conn.commit()
    stored = await rt.read_model.job(job.number)
    assert stored.request is not None
    assert (stored.status, stored.request.repo) == (Status.QUEUED, "Acme/Pay")


async def test_a_request_that_joins_a_job_leaves_its_event_in_the_callers_transaction(
    client: Client, database_url: str
) -> None:
    live = await client.submit(type="noop", subject_key="card:1")
    async with await psycopg.AsyncConnection.connect(database_url) as conn:
        joined = await client.submit(type="noop", subject_key="card:1", connection=conn)
        assert (joined.outcome, joined.number) == ("joined", live.number)
        await conn.rollback()
        await client.submit(type="noop", subject_key="card:1", connection=conn)
        await conn.commit()
    await client.cancel(live)
    assert [event.kind async for event in client.events(live)] == [
        "job_created",
        "request_joined",
        "job_canceled",
    ]


@pytest.mark.parametrize("blocking_connection", [False, True])
async def test_a_connection_without_a_transaction_is_refused(
    client: Client, database_url: str, blocking_connection: bool
) -> None:
    if blocking_connection:
        with psycopg.connect(database_url, autocommit=True) as conn:
            with pytest.raises(UsageError, match="autocommit"):
                await client.submit(type="noop", connection=conn)
            with conn.transaction():
                job = await client.submit(type="noop", connection=conn)
    else:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as own:
            with pytest.raises(UsageError, match="autocommit"):
                await client.submit(type="noop", connection=own)
            async with own.transaction():
                job = await client.submit(type="noop", connection=own)
    assert (await client.get(job)).number == job.number


async def test_an_object_that_is_no_connection_is_refused(client: Client) -> None:
    with pytest.raises(UsageError, match="psycopg 3"):
        await client.submit(type="noop", connection="postgresql://")  # type: ignore[arg-type]


def test_the_blocking_client_has_the_same_methods(
    blocking: BlockingClient, database_url: str
) -> None:
    with psycopg.connect(database_url) as conn:
        job = blocking.submit(type="noop", key="tx", connection=conn)
        with pytest.raises(NotFound):
            blocking.get(job)
    assert blocking.get(job).status is Status.QUEUED
    events = blocking.events(job)
    assert next(events).kind == "job_created"
    blocking.cancel(job)
    assert next(events).kind == "job_canceled"
    assert list(events) == []
    assert list(blocking.activity(job)) == []
    assert blocking.wait(job, timeout=5).status is Status.CANCELED
    assert blocking.retry(job).outcome == "created"
    assert blocking.questions() == []
    other: Request = {"type": "noop", "key": "tx", "text": "different"}
    with pytest.raises(IdempotencyConflict):
        blocking.submit_many([other])
    new: Request = {"type": "noop"}
    jobs = blocking.submit_stream([new] * BATCH + [other])
    assert [next(jobs).outcome for _ in range(BATCH)] == ["created"] * BATCH
    with pytest.raises(IdempotencyConflict) as caught:
        next(jobs)
    assert caught.value.place == 0
    assert caught.value.__notes__ == [
        f"in the batch that starts with request {BATCH + 1}; earlier jobs exist"
    ]


async def test_a_statement_that_waits_for_another_transaction_blocks_no_other_call(
    draftsman: Draftsman, database_url: str, rt: Runtime
) -> None:
    def submit_first(client: BlockingClient) -> None:
        with psycopg.connect(database_url) as first, psycopg.connect(database_url) as second:
            job = client.submit(type="noop", key="same", connection=first)
            holder.set_result(first.info.backend_pid)
            thread = threading.Thread(
                target=lambda: results.append(
                    client.submit(type="noop", key="same", connection=second).number
                )
            )
            thread.start()
            try:
                waits.wait(10)
                with pytest.raises(NotFound):
                    client.get(job)
                first.commit()
            finally:
                first.rollback()
                thread.join(10)
            assert results == [job.number]

    results: list[int] = []
    waits = threading.Event()
    holder: concurrent.futures.Future[int] = concurrent.futures.Future()
    with draftsman as client:
        running = asyncio.create_task(asyncio.to_thread(submit_first, client))
        async with rt.db.connection() as conn:
            await wait_blocked(conn, by=await asyncio.wrap_future(holder))
        waits.set()
        await running


def test_a_closed_client_raises_a_clear_error(draftsman: Draftsman) -> None:
    with draftsman as client:
        with pytest.raises(UsageError, match="already open"), draftsman:
            pass
        client.questions()
    with pytest.raises(Exception, match="closed"):
        client.questions()
    with draftsman as reopened:
        assert reopened.questions() == []


@pytest.mark.parametrize("operation", ["wait", "events"])
def test_closing_ends_the_calls_of_other_threads(
    draftsman: Draftsman, database_url: str, operation: str
) -> None:
    def call() -> None:
        try:
            if operation == "wait":
                started.set()
                client.wait(job)
            for event in client.events(job):
                assert event.kind == "job_created"
                started.set()
        except DraftsmanError as error:
            ends.append(str(error))

    ends: list[str] = []
    started = threading.Event()
    with draftsman as client:
        job = client.submit(type="noop")
        other = threading.Thread(target=call, daemon=True)
        other.start()
        assert started.wait(10)
    other.join(10)
    assert ends == ["this client is closed; open a new Draftsman"]
    client.close()


async def test_jobs_are_filtered_and_waited_for(client: Client, make: Factory) -> None:
    patch = b"diff --git a/x b/x\n"
    work = await make.running(tags=("team=pay",))
    await make.rt.changes.store(work.lease, patch)
    others = [await make.queued() for _ in range(6)]
    assert [job.number for job in await client.jobs(tags=["team"])] == [work.number]
    assert [job.number for job in await client.jobs(statuses=[Status.QUEUED], limit=2)] == [
        *others[:-3:-1]
    ]
    assert await client.diff(work.name) == patch.decode()
    assert await client.diff(others[0]) is None
    with pytest.raises(NotFound):
        await client.artifact(work.number, "no-such-file")
    assert await client.jobs(group="no-such-group") == []
    with pytest.raises(TimeoutError, match=r"^D-1, D-2, D-3, D-4, D-5 and 2 more did not end"):
        await client.wait_all([work.number, *others], timeout=0.01)
    waiting = asyncio.ensure_future(client.wait_all([others[0], work.name, others[0]]))
    await make.rt.job_control.cancel(others[0], make.owner)
    await make.rt.settlement.outcome(work, Done())
    ended = [(job.number, job.status) for job in await waiting]
    canceled = (others[0], Status.CANCELED)
    assert ended == [canceled, (work.number, Status.COMPLETED), canceled]
