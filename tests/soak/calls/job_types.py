"""Descriptions of job types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from draftsman.job_types.published import store as published
from draftsman.job_types.published.description import PublishedType
from tests.soak.calls.call import Call

NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)
TYPE: Final = PublishedType(
    name="seed", place="seed:seed", published_at=NOW, served_at=NOW, workers=0
)

CALLS: Final[dict[str, Call]] = {
    "published.publish": Call(lambda conn: published.publish(conn, [TYPE])),
    "published.described": Call(lambda conn: published.described(conn, 60)),
    "published.waiting_payloads": Call(lambda conn: published.waiting_payloads(conn, TYPE, 10)),
}
