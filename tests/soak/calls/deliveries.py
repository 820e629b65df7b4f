"""The outbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import (
    ClaimedDelivery,
    DeliveryKind,
    DeliveryStatus,
    DeliveryTransition,
    RateLimit,
)
from draftsman.deliveries.store import deliveries, delivery_claims, rate_limits
from draftsman.deliveries.target import parse
from draftsman.jobs.runs.store import jobs
from tests.soak.calls.call import MIDDLE, NEWEST, RUNNING, Call, last_of

WAITS = last_of("waiting_for_input", 5000) // 10 * 10
"""A waiting job with a target."""
TOLD = MIDDLE // 10 * 10
LIMITS = [RateLimit("slack#post", 1.0, 5), RateLimit("slack:C1", 0.1)]
FILE = {"text": "hello", "name": "hello.txt"}
DEAD = [DeliveryStatus.DEAD_LETTER]


def _claim(
    after: str = "", busy: tuple[str, ...] = (), served: tuple[str, ...] | None = None
) -> Call:
    return Call(
        lambda conn: delivery_claims.claim(
            conn,
            "slack",
            free=16,
            share=4,
            busy=busy,
            after=after,
            lease=60,
            served=served,
        )
    )


def _with(work: Callable[[Connection, ClaimedDelivery], Awaitable[object]]) -> Call:
    """Call it with a claimed delivery."""

    async def call(conn: Connection) -> object:
        claimed = await delivery_claims.claim(
            conn, "slack", free=1, share=1, busy=(), after="", lease=60
        )
        return await work(conn, claimed[0])

    return Call(call)


def _finish(end: DeliveryTransition, fallback: str | None = None) -> Call:
    target = parse(fallback) if fallback else None
    return _with(lambda conn, item: deliveries.finish(conn, item, end, target))


def _notify(*targets: str) -> Call:
    at = [parse(text) for text in targets]
    return Call(lambda conn: deliveries.notify(conn, RUNNING[0], "n", {"text": "hello"}, at))


async def _rescue(conn: Connection) -> None:
    """Rescue deliveries claimed by a process without a session lock."""
    await delivery_claims.claim(
        conn, "slack", free=16, share=4, busy=(), after="", lease=60, sender=2**31 - 1
    )
    assert await delivery_claims.rescue(conn, ["slack"]) == 16


async def _dead(conn: Connection) -> list[int]:
    return [seq for seq, _ in await deliveries.all_dead(conn, 100)]


async def _revive(conn: Connection) -> object:
    return await deliveries.redeliver(conn, await _dead(conn), "soak")


async def _release(conn: Connection) -> None:
    await rate_limits.pause(conn, "slack", 60.0, "token_revoked")
    await rate_limits.resume(conn, "slack")


ADD = Call(lambda conn: deliveries.add_targets(conn, [(WAITS, [parse("log"), parse("slack:C1")])]))
CALLS: Final[dict[str, Call]] = {
    "deliveries.post": Call(
        lambda conn: deliveries.post(conn, NEWEST, parse("log"), "digest", DeliveryKind.DIGEST, {})
    ),
    "jobs.lock_jobs": ADD,
    "deliveries.add_targets": ADD,
    "deliveries.inherit_targets": Call(
        lambda conn: deliveries.inherit_targets(conn, TOLD, NEWEST - 1)
    ),
    "deliveries.targets": Call(lambda conn: deliveries.targets(conn, TOLD)),
    "deliveries.enqueue": Call(
        lambda conn: deliveries.enqueue(conn, WAITS, DeliveryKind.NOTICE, "n", {"text": "hello"})
    ),
    "deliveries.notify": _notify("webhook:ops", "slack:C1"),
    "deliveries.notify: the job's own": _notify(),
    "deliveries.of_key": Call(lambda conn: deliveries.of_key(conn, TOLD, "result")),
    "delivery_claims.claim": _claim(),
    "delivery_claims.claim: the rest": _claim("C3", ("C4", "C5")),
    "delivery_claims.claim: served targets": _claim(served=("C3", "C4")),
    "delivery_claims.unserved": Call(lambda conn: delivery_claims.unserved(conn, 300, 300), 3000),
    "delivery_claims.next_due": Call(lambda conn: delivery_claims.next_due(conn, "slack")),
    "delivery_claims.next_due: nothing": Call(lambda conn: delivery_claims.next_due(conn, "log")),
    "delivery_claims.claim: urgent ones alone": Call(
        lambda conn: delivery_claims.claim(
            conn,
            "slack",
            free=16,
            share=4,
            busy=(),
            reserved=("C3", "C4"),
            after="",
            lease=60,
            sender=1,
        )
    ),
    "delivery_claims.rescue": Call(_rescue),
    "delivery_claims.begin_call": _with(
        lambda conn, item: delivery_claims.begin_call(conn, item, 10)
    ),
    "deliveries.message_facts": _with(lambda conn, item: deliveries.message_facts(conn, item.seq)),
    "deliveries.group_stop": _with(lambda conn, item: deliveries.group_stop(conn, item.seq)),
    "jobs.submission": Call(lambda conn: jobs.submission(conn, WAITS)),
    "jobs.lock": Call(lambda conn: jobs.lock(conn, WAITS)),
    "deliveries.finish: sent": _finish(DeliveryTransition(DeliveryStatus.SENT, ref="ref")),
    "deliveries.finish: again": _finish(
        DeliveryTransition(DeliveryStatus.PENDING, 1.0, error="no")
    ),
    "deliveries.finish: dead": _finish(
        DeliveryTransition(DeliveryStatus.DEAD_LETTER, error="no"), "log"
    ),
    "deliveries.attach": _with(lambda conn, item: deliveries.attach(conn, item.seq, [FILE])),
    "deliveries.warn": _with(lambda conn, item: deliveries.warn(conn, item.seq, "no")),
    "deliveries.copy_to": _with(lambda conn, item: deliveries.copy_to(conn, item.seq, ["U1"])),
    "rate_limits.make_buckets": Call(lambda conn: rate_limits.make_buckets(conn, LIMITS)),
    "rate_limits.consume_tokens": Call(lambda conn: rate_limits.consume_tokens(conn, LIMITS)),
    "rate_limits.pause": Call(lambda conn: rate_limits.pause(conn, "slack:C1", 1.0, "429")),
    "rate_limits.paused": Call(lambda conn: rate_limits.paused(conn, 600)),
    "rate_limits.resume": Call(_release, 2500, "all that waits in the channel, once"),
    "deliveries.page": Call(lambda conn: deliveries.page(conn, list(DeliveryStatus), 50)),
    "deliveries.page: dead": Call(lambda conn: deliveries.page(conn, DEAD, 50)),
    "deliveries.page: further on": Call(
        lambda conn: deliveries.page(conn, list(DeliveryStatus), 50, MIDDLE // 10)
    ),
    "deliveries.page: none has it": Call(
        lambda conn: deliveries.page(conn, [DeliveryStatus.SUPERSEDED], 50)
    ),
    "deliveries.of_job": Call(lambda conn: deliveries.of_job(conn, TOLD, None, 50)),
    "deliveries.of_job: dead": Call(lambda conn: deliveries.of_job(conn, TOLD, DEAD, 50)),
    "deliveries.dead_letters": Call(lambda conn: deliveries.dead_letters(conn, [1, 2, 3])),
    "deliveries.dead_letters_of_job": Call(
        lambda conn: deliveries.dead_letters_of_job(conn, TOLD, 100)
    ),
    "deliveries.all_dead": Call(_dead),
    "deliveries.redeliver": Call(_revive, 600),
    "deliveries.statuses_of": Call(lambda conn: deliveries.statuses_of(conn, [1, 2, 3])),
    "deliveries.unnotified": Call(
        lambda conn: deliveries.unnotified(conn, 100), 2000, "a page of each status, for doctor"
    ),
    "deliveries.dead_letter_count": Call(lambda conn: deliveries.dead_letter_count(conn, 100)),
}
