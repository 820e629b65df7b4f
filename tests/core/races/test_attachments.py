"""Attachments: concurrent downloads of a file, files at the limit of their job, and a cancel."""

from __future__ import annotations

from collections.abc import Awaitable

from draftsman.database.database import Connection
from draftsman.jobs.requests.attachments import MAX_BYTES
from draftsman.jobs.requests.invocation import FileRef
from draftsman.jobs.requests.service import attachments
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.races import FirstSession

SLACK = "slack"


async def with_files(make: Factory, people: People, *names: str) -> int:
    files = [FileRef(reference={"id": name}, name=name) for name in names]
    return await make.queued(actor=people.on(SLACK, "anna"), attachments=files)


async def test_of_two_ends_of_a_download_the_second_waits_and_changes_nothing(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    number = await with_files(make, people, "a")
    (file,) = await rt.attachments.claim(SLACK)
    async with first.doing(first.rt.attachments.store(file, b"one")) as stored:
        second = await first.then(rt.attachments.refuse(file, "it was deleted"), conn)
    assert (await stored, second) == ("stored", None)
    (item,) = await rt.attachments.of_job(number)
    assert (item.status, await rt.attachments.content(item)) == ("stored", b"one")


async def test_two_files_together_do_not_pass_the_limit_of_their_job(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    await with_files(make, people, "a", "b", "c")
    one, two, three = await rt.attachments.claim(SLACK)
    data = bytes(MAX_BYTES)
    await rt.attachments.store(one, data)
    async with first.doing(first.rt.attachments.store(two, data)) as stored:
        second = await first.then(rt.attachments.store(three, data), conn)
    assert (await stored, second) == ("stored", "refused")


async def test_files_of_a_message_wait_for_a_cancel_and_are_dropped(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    number = await with_files(make, people)
    anna = people.on(SLACK, "anna")

    async def add(actor: Actor) -> int:
        refs = [FileRef(reference={"id": "b"}, name="b")]
        return await rt.db.run_transaction(lambda c: attachments.add(c, number, actor, refs))

    async with first.doing(first.rt.job_control.cancel(number, make.owner)):
        added = await first.then(add(anna), conn)
    assert added == 0


def named(*names: str) -> list[FileRef]:
    return [FileRef(reference={"id": name}, name=name) for name in names]


async def test_files_found_in_a_download_and_files_of_a_message_have_places_of_their_own(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    number, other = [await with_files(make, people, "a") for _ in range(2)]
    anna = people.on(SLACK, "anna")
    one, two = await rt.attachments.claim(SLACK)

    def add(to: Runtime, job: int) -> Awaitable[int]:
        return to.db.run_transaction(lambda c: attachments.add(c, job, anna, named("c")))

    async with first.doing(first.rt.attachments.store(one, b"one", named("b"))) as stored:
        added = await first.then(add(rt, number), conn)
    assert (await stored, added) == ("stored", 1)
    async with first.doing(add(first.rt, other)) as adding:
        second = await first.then(rt.attachments.store(two, b"two", named("b")), conn)
    assert (await adding, second) == (1, "stored")
    found = [[item.name for item in await rt.attachments.of_job(job)] for job in (number, other)]
    assert found == [["a", "b", "c"], ["a", "c", "b"]]
