"""Downloads of attachments: attempts, refusals and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from draftsman.errors import Failure
from draftsman.jobs.requests.attachments import JobAttachment, PendingFile
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_bots.conversation.attachments import AttachmentDownloads, FileRefused
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until

Download = Callable[[PendingFile], Awaitable[bytes]]


async def ended(rt: Runtime, make: Factory, download: Download, *names: str) -> list[JobAttachment]:
    """Return the attachments of a job once the downloads have ended."""
    anna = Actor("slack", "U-ANNA", "Anna")
    downloads = AttachmentDownloads(rt.attachments, "slack", download, (0.0, float("inf")))
    running = asyncio.create_task(downloads.run())
    files = [{"reference": {"id": name}, "name": name} for name in names]
    number = await make.queued(actor=anna, attachments=files)
    downloads.wake()

    async def are_ended() -> bool:
        return all(item.status != "pending" for item in await rt.attachments.of_job(number))

    await until(are_ended, "the end of the downloads")
    downloads.stop.set()
    await running
    return await rt.attachments.of_job(number)


async def test_files_are_downloaded_and_a_failure_is_tried_again(
    rt: Runtime, make: Factory
) -> None:
    calls: list[str] = []

    async def download(file: PendingFile) -> bytes:
        calls.append(file.name)
        if file.name == "flaky" and calls.count("flaky") == 1:
            raise Failure("503", origin="slack")
        if file.name == "odd":
            raise KeyError("a defect")
        if file.name in ("gone", "down"):
            raise FileRefused("it was deleted") if file.name == "gone" else Failure("no route")
        return file.name.encode()

    items = await ended(rt, make, download, "fine", "flaky", "gone", "down", "odd")
    assert [(item.status, item.reason) for item in items] == [
        ("stored", None),
        ("stored", None),
        ("refused", "it was deleted"),
        ("refused", "it could not be downloaded: no route"),
        ("refused", "an internal error; see the log of the bots"),
    ]
    assert (calls.count("flaky"), calls.count("gone"), calls.count("down")) == (2, 1, 2)


async def test_a_download_without_an_end_is_refused(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftsman_bots.conversation.attachments.TIMEOUT", 0.05)

    async def download(file: PendingFile) -> bytes:
        await asyncio.Event().wait()
        return b""

    (item,) = await ended(rt, make, download, "slow")
    assert item.reason is not None
    assert item.reason.startswith("its download took more than")
