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
from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.place import Fault, Post
from draftsman_testing.channel.samples import message


class LogFile:
    """A log file."""

    target = "log"
    missing = "ref"
    finds = True
    faults = frozenset({Fault.UNREACHABLE})

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sub" / "notifications.jsonl"
        self.channel = LogChannel(self.path)

    def posts(self) -> list[Post]:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return [Post(line["id"], line["data"]["text"]) for line in map(json.loads, lines)]

    async def fail(self, fault: Fault) -> None:
        """Replace the file by a folder."""
        self.path.mkdir(parents=True)


@pytest.fixture
def place(tmp_path: Path) -> LogFile:
    return LogFile(tmp_path)


class TestLog(ChannelContract):
    """The contract, kept by a file."""


async def test_a_line_truncated_by_a_crash_is_ended_and_not_found(place: LogFile) -> None:
    complete = message()
    torn = message()
    await place.channel.send(complete)
    line = place.path.read_bytes()
    with place.path.open("ab") as file:
        file.write(line.replace(complete.marker.encode(), torn.marker.encode())[:60])
    assert await place.channel.find(torn) is None
    await place.channel.send(torn)
    lines = place.path.read_bytes().split(b"\n")
    assert [len(lines), lines[-1]] == [4, b""]
    assert isinstance(await place.channel.find(torn), Receipt)
    assert isinstance(await place.channel.find(complete), Receipt)


async def test_a_marker_is_found_anywhere_in_a_long_file(place: LogFile) -> None:
    sent = [message(DeliveryKind.NOTICE, payload={"text": "é" * (BLOCK // 9)}) for _ in range(30)]
    for item in sent:
        await place.channel.send(item)
    assert place.path.stat().st_size > 4 * BLOCK
    for item in sent:
        assert isinstance(await place.channel.find(item), Receipt)
    assert await place.channel.find(message()) is None


async def test_concurrent_lines_stay_whole(place: LogFile) -> None:
    others = [LogChannel(place.path) for _ in range(4)]
    text = {"text": "x" * 10_000}
    sent = [message(DeliveryKind.NOTICE, payload=text) for _ in range(40)]
    await asyncio.gather(*(others[n % 4].send(item) for n, item in enumerate(sent)))
    assert sorted(marker for marker, _ in place.posts()) == sorted(x.marker for x in sent)


async def test_log_file_is_readable_by_its_owner_only(place: LogFile) -> None:
    await place.channel.send(message())
    assert place.path.stat().st_mode & 0o077 == 0


async def test_a_pipe_without_a_reader_fails_at_once(place: LogFile) -> None:
    place.path.parent.mkdir()
    os.mkfifo(place.path)
    async with asyncio.timeout(5):
        assert isinstance(await place.channel.send(message()), Failure)
