"""Attachments of jobs: their limits, downloads, permissions and retries."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from draftsman.errors import UsageError
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.requests.attachments import (
    MAX_BYTES,
    JobAttachment,
    rows_of,
    safe_name,
    unique_names,
)
from draftsman.jobs.requests.invocation import FileRef
from draftsman.jobs.requests.service import attachments
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.worker.workers import last_event
from tests.support.cases import cases
from tests.support.clock import Clock

SLACK: Final = "slack"


def ref(name: str, size: int | None = None, **fields: Any) -> FileRef:
    return FileRef(reference={"id": name}, name=name, size=size, **fields)


@pytest.fixture
def anna(people: People) -> Actor:
    return people.on(SLACK, "anna")


async def with_files(make: Factory, anna: Actor, *files: FileRef, **fields: Any) -> int:
    return await make.queued(actor=anna, attachments=files, **fields)


async def store_all(rt: Runtime, data: bytes = b"data") -> list[str | None]:
    return [await rt.attachments.store(file, data) for file in await rt.attachments.claim(SLACK)]


def test_a_name_is_a_plain_file_name() -> None:
    names = {
        "../../etc/passwd": "passwd",
        "C:\\temp\\plan.md": "plan.md",
        ".gitattributes": "gitattributes",
        "-rf": "rf",
        "a b\u202e\x00.png": "a_b.png",
        "": "file",
        "...": "file",
        "CON.txt": "CON_.txt",
        "Übersicht (1).pdf": "Übersicht_1.pdf",
        "x" * 300 + ".csv": "x" * 96 + ".csv",
    }
    assert {name: safe_name(name) for name in names} == names


@cases("names", [("a", "a", "A"), ("3-a", "a", "a"), ("3-3-a", "3-a", "a", "a")])
def test_files_of_a_job_never_share_a_name(names: tuple[str, ...]) -> None:
    now = datetime.now(UTC)
    items = [
        JobAttachment(1, n, None, n, name, None, "stored", None, 1, "", now, overdue=False)
        for n, name in enumerate(names, 1)
    ]
    assert len({name.casefold() for name in unique_names(items).values()}) == len(names)


def test_files_over_a_limit_are_refused_with_the_reason() -> None:
    rows = rows_of(
        [ref("a", MAX_BYTES), ref("b", MAX_BYTES + 1), ref("c", MAX_BYTES), ref("d", 9**7)]
    )
    assert [row["reason"] and row["reason"].split(";")[0] for row in rows] == [
        None,
        "it has 10,485,761 bytes",
        None,
        None,
    ]
    rows = rows_of([ref("a", MAX_BYTES), ref("b", MAX_BYTES), ref("c", MAX_BYTES)])
    assert rows[-1]["reason"] == "the files of a job have at most 26,214,400 bytes"
    assert (
        rows_of([ref(str(n)) for n in range(11)])[-1]["reason"] == "a request has at most 10 files"
    )


async def test_the_files_of_a_request_are_stored_with_its_job(
    rt: Runtime, make: Factory, anna: Actor
) -> None:
    number = await with_files(make, anna, ref("a.txt", media_type="text/plain"), ref("A.TXT"))
    event = await last_event(rt, number, "attachments_added")
    assert (event.actor, event.payload) == (anna.name, {"names": ["a.txt", "A.TXT"]})
    assert [item.status for item in await rt.attachments.of_job(number)] == ["pending"] * 2
    assert await store_all(rt, b"hello") == ["stored", "stored"]
    assert await rt.attachments.claim(SLACK) == []
    work = await make.running(number)
    files = await RunContext(work, rt, 60).attachments()
    assert [(file.name, file.media_type, file.data) for file in files] == [
        ("a.txt", "text/plain", b"hello"),
        ("2-A.TXT", None, b"hello"),
    ]


async def test_a_repeated_request_adds_nothing_and_a_joined_request_adds_its_new_files(
    rt: Runtime, make: Factory, anna: Actor
) -> None:
    fields: dict[str, Any] = {"type": "noop", "key": "k", "subject_key": "s", "queue": "q-files"}
    for files, outcome in ((("a",), "created"), (("a",), "deduplicated")):
        item = invocation(attachments=[ref(name) for name in files], **fields)
        assert (await rt.submissions.submit(item, anna)).outcome == outcome
    other = invocation(attachments=[ref("a"), ref("b")], **fields | {"key": "k2"})
    job = await rt.submissions.submit(other, anna)
    assert job.outcome == "joined"
    assert [item.name for item in await rt.attachments.of_job(job.number)] == ["a", "b"]


async def test_only_channels_with_a_bot_have_files(make: Factory, people: People) -> None:
    with pytest.raises(UsageError, match="files of a request in Slack or Trello"):
        await make.queued(actor=people.anna, attachments=[ref("a")])


async def test_a_run_waits_for_downloads_for_two_minutes(
    rt: Runtime, make: Factory, anna: Actor, clock: Clock
) -> None:
    number = await with_files(make, anna, ref("a"), ref("b"))
    work = await make.running(number)
    first, second = await rt.attachments.claim(SLACK)
    reading = asyncio.create_task(RunContext(work, rt, 60).attachments())
    assert await rt.attachments.refuse(first, "Slack sent a page") == "refused"
    assert not reading.done()
    await clock.forward(121)
    files = await reading
    assert [(file.data, file.reason) for file in files] == [
        (None, "Slack sent a page"),
        (None, "it is still being downloaded"),
    ]
    event = await last_event(rt, number, "attachment_refused")
    assert event.payload == {"name": "a", "reason": "Slack sent a page"}
    assert await rt.attachments.store(second, b"late") == "stored"


async def test_a_download_of_a_dead_process_is_repeated_and_its_own_result_ignored(
    rt: Runtime, make: Factory, anna: Actor, clock: Clock
) -> None:
    number = await with_files(make, anna, ref("a"))
    (first,) = await rt.attachments.claim(SLACK)
    await clock.forward(61)
    (second,) = await rt.attachments.claim(SLACK)
    assert (second.id, second.attempt) == (first.id, 2)
    assert await rt.attachments.store(first, b"old") is None
    for _ in range(4):
        await clock.forward(61)
        await rt.attachments.claim(SLACK)
    (item,) = await rt.attachments.of_job(number)
    assert (item.status, item.reason) == ("refused", "it could not be downloaded")


async def test_the_bytes_of_a_job_are_limited_whatever_their_channel_said(
    rt: Runtime, make: Factory, anna: Actor
) -> None:
    number = await with_files(make, anna, *(ref(name, 1) for name in "abc"))
    assert await store_all(rt, bytes(MAX_BYTES)) == ["stored", "stored", "refused"]
    await with_files(make, anna, ref("d"))
    assert await store_all(rt, bytes(MAX_BYTES + 1)) == ["refused"]
    reasons = [item.reason for item in await rt.attachments.of_job(number)]
    assert reasons == [None, None, "the files of a job have at most 25 MiB"]


async def test_a_retry_has_the_files_even_if_they_are_downloaded_later(
    rt: Runtime, make: Factory, anna: Actor
) -> None:
    number = await with_files(make, anna, ref("a"))
    await rt.job_control.cancel(number, anna)
    retry = (await rt.job_control.retry(number, anna)).number
    assert await store_all(rt, b"x") == ["stored"]
    (item,) = await rt.attachments.of_job(retry)
    assert (item.status, await rt.attachments.content(item)) == ("stored", b"x")


async def test_inherited_files_and_own_files_together_do_not_pass_the_limit_of_a_job(
    rt: Runtime, make: Factory, anna: Actor
) -> None:
    """Those of the parent are pending when they are inherited, and are stored last."""
    parent = await with_files(make, anna, ref("a"), ref("b"))
    number = await with_files(make, anna, ref("c"), ref("d"), after=[parent], attachments_of=parent)
    for file in (await rt.attachments.claim(SLACK))[::-1]:
        assert await rt.attachments.store(file, bytes(MAX_BYTES)) == "stored"
    assert [item.size for item in await rt.attachments.of_job(parent)] == [MAX_BYTES] * 2
    files = await rt.attachments.of_job(number)
    full = (None, "the files of a job have at most 25 MiB")
    assert [(item.name, item.size, item.reason) for item in files] == [
        ("c", MAX_BYTES, None),
        ("d", MAX_BYTES, None),
        ("a", *full),
        ("b", *full),
    ]
    contents = [await rt.attachments.content(item) for item in files]
    assert [data is not None for data in contents] == [True, True, False, False]
    await rt.job_control.cancel(number, anna)
    retry = (await rt.job_control.retry(number, anna)).number
    assert [item.status for item in await rt.attachments.of_job(retry)] == [
        item.status for item in files
    ]


async def test_a_finished_job_takes_no_more_files(rt: Runtime, make: Factory, anna: Actor) -> None:
    number = await make.queued(actor=anna)
    async with rt.db.transaction() as conn:
        assert await attachments.add(conn, number, anna, [ref("a"), ref("a")]) == 1
    await rt.job_control.cancel(number, anna)
    assert (await rt.read_model.job(number)).status is Status.CANCELED
    async with rt.db.transaction() as conn:
        assert await attachments.add(conn, number, anna, [ref("b")]) == 0
