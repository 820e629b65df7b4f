"""Claims and submissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from draftsman.deliveries.target import Target, parse
from draftsman.jobs.job import Source
from draftsman.jobs.requests.invocation import Unique
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.job_limits import JobLimits
from draftsman.jobs.runs.store import claim
from draftsman.people.actor import Actor
from tests.soak.calls.call import CLAIMED, MIDDLE, MISSING, RUNNING, Call, last_of
from tests.soak.calls.limits import FULL
from tests.soak.history import WORKER, key

ME: Final = Actor(Source.CLI, "soak", "soak")
NO_LIMITS: Final = JobLimits({})
HANDS = "what is in workers' hands, of which there are 1,500"
QUEUED: Final = [MIDDLE, MISSING, *(last_of("queued", back) for back in range(20))]
FOUND_BY_TYPE: Final = f"""
UPDATE draftsman.job_states SET by_type = true
 WHERE number BETWEEN {last_of("queued", 4499)} AND {last_of("resumed")}"""
"""All jobs that may be claimed, except the first 501."""
RESERVED: Final = f"""
DO $$ BEGIN PERFORM draftsman.reserve_queue({last_of("queued")}, 600, 'soak'); END $$"""
"""The reserving job is the last of the queue."""


def exchange(
    free: int,
    done: int,
    ahead: int = 0,
    rows: int = 600,
    queues: tuple[str, ...] = ("default",),
    type: str = "seed",
    given: str = "",
    after: int | None = None,
) -> Call:
    """Settle some running jobs, and claim."""
    return Call(
        lambda conn: claim.exchange(
            conn,
            [(lease, {"n": 1}) for lease in RUNNING[:done]],
            worker=WORKER,
            queues=queues,
            types=[type],
            free=free,
            ahead=ahead,
            after=after,
        ),
        rows,
        given=given,
    )


def _submit(
    count: int,
    rows: int = 300,
    first: str = "",
    targets: Sequence[Target] = (),
    given: str = "",
    **fields: Any,
) -> Call:
    """Submit new requests, each with the targets, of which the first may already exist."""
    requests = [invocation(type="seed", key=f"new{n}", **fields) for n in range(count)]
    requests[0] = invocation(type="seed", key=first or "new", **fields)
    return Call(
        lambda conn: submissions.submit(
            conn, [row(it, ME, NO_LIMITS) for it in requests], "s", [targets] * count
        ),
        rows,
        given=given,
    )


def _known(**fields: Any) -> Call:
    """Find the existing job of a request."""
    rows = [row(invocation(type="seed", **fields), ME, NO_LIMITS)]
    return Call(lambda conn: submissions.existing(conn, rows, [0]))


_CANDIDATES: Final = Call(
    lambda conn: claim.claimable_jobs(conn, ["default"], ["seed"], [MISSING], 20)
)
CALLS: Final[dict[str, Call]] = {
    "claim.exchange: claim 10": exchange(10, 0),
    "claim.exchange: 100 for 100": exchange(100, 100, rows=800),
    "claim.exchange: prefetch": exchange(10, 10, 100, rows=800),
    "claim.exchange: of two queues": exchange(10, 0, queues=("none", "default")),
    "claim.exchange: of an empty queue": exchange(10, 0, queues=("none",)),
    "claim.exchange: found by type": exchange(10, 0, given=FOUND_BY_TYPE),
    "claim.exchange: prefetch, found by type": exchange(10, 10, 100, 1200, given=FOUND_BY_TYPE),
    "claim.exchange: of a type that others have": exchange(10, 0, type="no", given=FOUND_BY_TYPE),
    "claim.exchange: 10 for 10 of a full limit": exchange(10, 10, given=FULL),
    "claim.exchange: of a full limit": exchange(10, 0, given=FULL),
    "claim.exchange: of a reserved queue": exchange(10, 0, given=RESERVED),
    "claim.exchange_after: 10 for 10": exchange(10, 10, after=last_of("queued", 4000)),
    "claim.exchange_after: of two queues": exchange(
        10, 0, queues=("none", "default"), after=last_of("queued", 4000)
    ),
    "claim.exchange_after: the last of a priority": exchange(10, 0, after=last_of("queued")),
    "claim.exchange_after: a job that is gone": exchange(10, 0, after=MISSING),
    "claim.exchange_after: found by type": exchange(
        10, 0, given=FOUND_BY_TYPE, after=last_of("queued", 4000)
    ),
    "claim.exchange_after: of a reserved queue": exchange(
        10, 0, given=RESERVED, after=last_of("queued", 4000)
    ),
    "claim.start": Call(lambda conn: claim.start(conn, CLAIMED), 800),
    "claim.release_claims": Call(lambda conn: claim.release_claims(conn, CLAIMED, "{}"), 800),
    "claim.claimable_jobs": _CANDIDATES,
    "claim.claimable_jobs: found by type": replace(_CANDIDATES, given=FOUND_BY_TYPE),
    "claim.keep_from_claims": Call(lambda conn: claim.keep_from_claims(conn, QUEUED)),
    "claim.previous_runtime": Call(lambda conn: claim.previous_runtime(conn, RUNNING[0])),
    "claim.release_lost_claims: nothing": Call(
        lambda conn: claim.release_lost_claims(conn, UUID(int=1), [], []), 2000, HANDS
    ),
    "claim.release_lost_claims: eight jobs": Call(
        lambda conn: claim.release_lost_claims(conn, WORKER, [], []), 2000, HANDS
    ),
    "claim.held": Call(lambda conn: claim.held(conn, WORKER, RUNNING)),
    "claim.claim_in_grace": Call(lambda conn: claim.claim_in_grace(conn, WORKER, RUNNING[0])),
    "claim.end_grace": Call(lambda conn: claim.end_grace(conn, WORKER, RUNNING[0])),
    "claim.open_runs: running": Call(
        lambda conn: claim.open_runs(conn, [work.job for work in RUNNING]), 2000, HANDS
    ),
    "claim.open_runs: of the past": Call(
        lambda conn: claim.open_runs(conn, range(MIDDLE, MIDDLE + 100))
    ),
    "claim.open_runs: missing": Call(lambda conn: claim.open_runs(conn, [MISSING])),
    "submissions.submit_plain": Call(
        lambda conn: submissions.submit(conn, [row(invocation(type="seed"), ME, NO_LIMITS)], "s")
    ),
    "submissions.submit_one": _submit(1),
    "submissions.submit_one: of a full limit": _submit(1, given=FULL),
    "submissions.submit_one: a twin of the past": _submit(1, first=key(MIDDLE)),
    "submissions.submit_new: a thousand": Call(
        lambda conn: submissions.submit(
            conn, [row(invocation(type="seed"), ME, NO_LIMITS) for _ in range(1000)], "s"
        ),
        4000,
    ),
    "submissions.submit_keyed: a thousand": _submit(1000, rows=4000),
    "submissions.submit_one: with a subject": _submit(10, subject_key="card99"),
    "submissions.submit_keyed: with subjects": Call(
        lambda conn: submissions.submit(
            conn,
            [row(invocation(type="seed", subject_key=f"card{n}99"), ME, NO_LIMITS) for n in (1, 2)],
            "s",
        )
    ),
    "submissions.submit_with_targets: a thousand": _submit(
        1000, rows=8000, targets=[parse("slack:C1/1.2")]
    ),
    "submissions.submit_with_targets: one": _submit(1, targets=[parse("slack:C1/1.2")]),
    "submissions.postpone_until_commit": Call(submissions.postpone_until_commit),
    "submissions.lock_subjects": Call(lambda conn: submissions.lock_subjects(conn, ["card99"])),
    "submissions.existing: a twin of the past": _known(key=key(MIDDLE)),
    "submissions.recent_duplicates": Call(
        lambda conn: submissions.recent_duplicates(conn, [(MIDDLE, "slack", "C1")], 60.0)
    ),
    "submissions.recent_duplicates: of a hundred jobs": Call(
        lambda conn: submissions.recent_duplicates(
            conn, [(MIDDLE + n, "slack", "C1") for n in range(100)], 60.0
        ),
        800,
    ),
    "submissions.join": Call(lambda conn: submissions.join(conn, [(MIDDLE, {"key": "new"})], "s")),
    "submissions.repeated": Call(
        lambda conn: submissions.repeated(conn, "subject card99", Unique(seconds=3600))
    ),
    "submissions.keep_unique_key": Call(
        lambda conn: submissions.keep_unique_key(conn, last_of("queued"), "subject new", MIDDLE)
    ),
    "submissions.existing: with a subject": _known(key="new", subject_key="card99"),
}
