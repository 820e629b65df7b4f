"""Files of a card reach the job, with the token only for Trello."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from draftsman.jobs.requests.attachments import MAX_BYTES, JobAttachment
from draftsman_testing.trello import FakeTrello, Fault
from draftsman_testing.waits import until
from tests.bots.trello.inbound.conftest import TrelloBotHarness

DOWNLOAD = "/cards/{id}/attachments/{idAttachment}/download/{file}"


async def ended(bench: TrelloBotHarness, number: int) -> list[JobAttachment]:
    """Return the attachments of a job once the bot has downloaded them."""
    downloads = bench.context.downloads
    running = asyncio.create_task(downloads.run())

    async def are_ended() -> bool:
        items = await bench.rt.attachments.of_job(number)
        return all(item.status != "pending" for item in items)

    await until(are_ended, "the end of the downloads")
    downloads.stop.set()
    await running
    return await bench.rt.attachments.of_job(number)


async def requested(bench: TrelloBotHarness, card: str) -> int:
    """Create the job of a card; return its number."""
    bench.trello.add_label(card, bench.label, bench.anna)
    await bench.poll()
    (job,) = await bench.jobs()
    return job.number


async def test_the_files_of_a_card_reach_its_job(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    trello.attach(card, "notes.md", b"use blue")
    trello.attach(card, "../../etc/\u202epass wd.txt", b"root")
    trello.attach(card, "design", url="https://example.org/design?a=1")
    trello.attach(card, "result.txt · 01234567", b"own", by=trello.bot_member)
    number = await requested(bench, card)
    items = await ended(bench, number)
    assert [(item.name, item.status, item.size) for item in items] == [
        ("notes.md", "stored", 8),
        ("pass_wd.txt", "stored", 4),
    ]
    assert await bench.rt.attachments.content(items[0]) == b"use blue"
    (job,) = await bench.jobs()
    assert "design (https://example.org/design?a=1)" in (job.agent_request.text or "")
    asked = [call for call in trello.calls if call.path == DOWNLOAD]
    assert {call.by for call in asked} == {"header"}
    assert all(trello.token not in call.url for call in asked)


@pytest.mark.parametrize("route", ["poll", "webhook"])
async def test_a_file_that_is_attached_later_reaches_the_live_job_once(
    bench: TrelloBotHarness, trello: FakeTrello, route: str
) -> None:
    if route == "webhook":
        await bench.serve_webhook()
    card = bench.card()
    trello.attach(card, "first.txt", b"1", by=bench.ben)
    number = await requested(bench, card)
    trello.attach(card, "later.txt", b"2", by=bench.ben)
    trello.attach(card, "no right.txt", b"3", by=bench.mallory)
    trello.attach(card, "design", url="https://example.org/design", by=bench.ben)
    if route == "webhook":
        await bench.deliver_webhooks()
    await bench.poll()
    items = await ended(bench, number)
    assert [(item.name, item.status) for item in items] == [
        ("first.txt", "stored"),
        ("later.txt", "stored"),
    ]


async def test_large_and_deleted_files_are_refused_with_the_reason(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    trello.attach(card, "large.bin", bytes(MAX_BYTES + 1))
    gone = trello.attach(card, "gone.txt", b"x")
    bench.trello.add_label(card, bench.label, bench.anna)
    await bench.poll()
    entity = trello.world.cards[card]
    entity.attachments[:] = [item for item in entity.attachments if item.id != gone]
    (job,) = await bench.jobs()
    first, second = await ended(bench, job.number)
    assert first.reason is not None
    assert first.reason.startswith("it has 10,485,761 bytes")
    assert second.reason is not None
    assert second.reason.startswith("Trello refused it: The requested resource was not found.")


async def test_a_size_that_trello_does_not_say_is_bounded_too(
    bench: TrelloBotHarness, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftsman_bots.trello.transport.attachment_download.MAX_BYTES", 3)
    card = bench.card()
    trello.attach(card, "a.bin", b"1234")
    (item,) = await ended(bench, await requested(bench, card))
    assert item.reason == "Trello refused it: a file has at most 3 bytes"


async def test_a_failed_download_is_tried_again(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    trello.attach(card, "a.txt", b"1234")
    trello.faults.next("GET", DOWNLOAD, Fault.HTML_503)
    (item,) = await ended(bench, await requested(bench, card))
    assert item.status == "stored"


class Storage:
    """The storage that downloads redirect to, with the headers of its requests."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.response = web.Response(body=b"from the storage")

    async def serve(self, request: web.Request) -> web.Response:
        """Return a file."""
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        return self.response


@pytest.fixture
async def storage() -> AsyncIterator[Storage]:
    """Serve files on an address of its own."""
    made = Storage()
    app = web.Application()
    app.router.add_get("/{path:.*}", made.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


async def test_a_redirect_is_followed_without_the_token(
    bench: TrelloBotHarness, trello: FakeTrello, storage: Storage
) -> None:
    trello.world.storage_url = storage.url
    card = bench.card()
    trello.attach(card, "a.txt", b"1234")
    (item,) = await ended(bench, await requested(bench, card))
    assert await bench.rt.attachments.content(item) == b"from the storage"
    (headers,) = storage.headers
    assert "authorization" not in headers
    assert trello.token not in str(headers)


async def test_a_file_is_not_decompressed(
    bench: TrelloBotHarness, trello: FakeTrello, storage: Storage
) -> None:
    trello.world.storage_url = storage.url
    bomb = gzip.compress(bytes(3 * MAX_BYTES))
    storage.response = web.Response(body=bomb, headers={"Content-Encoding": "gzip"})
    card = bench.card()
    trello.attach(card, "a.gz", b"1234")
    (item,) = await ended(bench, await requested(bench, card))
    assert await bench.rt.attachments.content(item) == bomb
    assert storage.headers[0]["accept-encoding"] == "identity"


async def test_a_redirect_to_another_scheme_is_refused(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    trello.world.storage_url = "file:///etc"
    card = bench.card()
    trello.attach(card, "a.txt", b"1234")
    (item,) = await ended(bench, await requested(bench, card))
    assert (item.reason or "").startswith("Trello refused it: HTTP 302")
