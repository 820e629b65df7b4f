"""The channel `log`: lines that are whole, and are found again."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from draftsman.deliveries.channels.log_channel import BLOCK, LogChannel
from draftsman.deliveries.delivery import DeliveryKind, Receipt
from draftsman.errors import Failure
from tests.core.deliveries.channels.channel_contract import ChannelContract, message


class LogHarness:
    """A log file."""

    finds = True
    cuts = False

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sub" / "notifications.jsonl"
        self.channel = LogChannel(self.path)

    async def seen(self) -> list[tuple[str, str]]:
        """Return its lines."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return [(line["id"], line["data"]["text"]) for line in map(json.loads, lines)]

    async def drop_next_response(self) -> None:
        """Do nothing: a file has no replies."""

    async def reject_next(self, status: int, retry_after: str | None = None) -> None:
        """A log file refuses no message."""

    async def stop_listening(self) -> None:
        """Replace the file by a folder."""
        self.path.mkdir(parents=True)


@pytest.fixture
def harness(tmp_path: Path) -> LogHarness:
    return LogHarness(tmp_path)


class TestLog(ChannelContract):
    """The contract, kept by a file."""


async def test_a_line_truncated_by_a_crash_is_ended_and_not_found(harness: LogHarness) -> None:
    complete = message()
    torn = message()
    await harness.channel.send(complete)
    line = harness.path.read_bytes()
    with harness.path.open("ab") as file:
        file.write(line.replace(complete.marker.encode(), torn.marker.encode())[:60])
    assert await harness.channel.find(torn) is None
    await harness.channel.send(torn)
    lines = harness.path.read_bytes().split(b"\n")
    assert [len(lines), lines[-1]] == [4, b""]
    assert isinstance(await harness.channel.find(torn), Receipt)
    assert isinstance(await harness.channel.find(complete), Receipt)


async def test_a_marker_is_found_anywhere_in_a_long_file(harness: LogHarness) -> None:
    sent = [message(DeliveryKind.NOTICE, payload={"text": "é" * (BLOCK // 9)}) for _ in range(30)]
    for item in sent:
        await harness.channel.send(item)
    assert harness.path.stat().st_size > 4 * BLOCK
    for item in sent:
        assert isinstance(await harness.channel.find(item), Receipt)
    assert await harness.channel.find(message()) is None


async def test_concurrent_lines_stay_whole(harness: LogHarness) -> None:
    others = [LogChannel(harness.path) for _ in range(4)]
    text = {"text": "x" * 10_000}
    sent = [message(DeliveryKind.NOTICE, payload=text) for _ in range(40)]
    await asyncio.gather(*(others[n % 4].send(item) for n, item in enumerate(sent)))
    assert sorted(marker for marker, _ in await harness.seen()) == sorted(x.marker for x in sent)


async def test_log_file_is_readable_by_its_owner_only(harness: LogHarness) -> None:
    await harness.channel.send(message())
    assert harness.path.stat().st_mode & 0o077 == 0


async def test_a_pipe_without_a_reader_fails_at_once(harness: LogHarness) -> None:
    harness.path.parent.mkdir()
    os.mkfifo(harness.path)
    async with asyncio.timeout(5):
        assert isinstance(await harness.channel.send(message()), Failure)
