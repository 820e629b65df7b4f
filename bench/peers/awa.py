"""awa: a core in Rust over append-only partitions, which it drops whole."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import awa

from bench.peers.peer import QUEUE, About, Probe


@dataclass
class Noop:
    """A job that does nothing."""

    i: int


class Queue:
    """Its queue storage is the faster of its two kinds."""

    ABOUT = About(
        distribution="awa-pg",
        default={"max_workers": 10},
        fast={"max_workers": 256, "claim_batch_size": 512, "poll_interval_ms": 20},
        # finished jobs are an array in a receipt; its own count takes seconds
        unfinished="SELECT (SELECT count(*) FROM awa.ready_entries) > (SELECT"
        " coalesce(sum(completed_count), 0) FROM awa.receipt_completion_batches)",
        share=(0.1, 0.5),
    )

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        self.url = _without_user(url)
        self.settings = dict(settings)

    async def prepare(self) -> None:
        client = awa.AsyncClient(self.url)
        await client.migrate()
        await client.install_queue_storage()

    async def open(self) -> None:
        self.client = awa.AsyncClient(self.url, 1)

    async def submit(self, number: int) -> None:
        await self.client.insert(Noop(number), queue=QUEUE)

    async def submit_many(self, numbers: range) -> None:
        await self.client.enqueue_many_copy([Noop(number) for number in numbers], queue=QUEUE)

    async def work(self, probe: Probe) -> None:
        client = awa.AsyncClient(self.url, 10)

        @client.task(Noop, queue=QUEUE)
        async def noop(job: Any) -> None:
            probe.hit(job.args.i)

        poll = {"poll_interval_ms": self.settings.pop("poll_interval_ms", 200)}
        await client.start([{"name": QUEUE, **self.settings}], **poll)
        await asyncio.Event().wait()


def _without_user(url: str) -> str:
    """Add the user to the parameters, as it accepts no URL with a user and no host."""
    parts = urlsplit(url)
    if parts.hostname:
        return url
    return parts._replace(netloc="", query=f"{parts.query}&user={parts.username}").geturl()
