"""Attachments of jobs."""

from __future__ import annotations

from typing import Final

from draftsman.jobs.requests.attachments import PATIENCE, PendingFile, rows_of
from draftsman.jobs.requests.invocation import FileRef
from draftsman.jobs.requests.store import attachments
from tests.soak.calls.call import MIDDLE, MISSING, NEWEST, Call

FILES: Final = rows_of([FileRef(reference={"id": "F1"}, name="a.txt")])
FILE: Final = PendingFile(1, 1, {}, "a.txt")
CALLS: Final[dict[str, Call]] = {
    "attachments.add": Call(lambda conn: attachments.add(conn, NEWEST, "slack:U1", FILES, None)),
    "attachments.inherit": Call(lambda conn: attachments.inherit(conn, MIDDLE, NEWEST)),
    "attachments.of_job": Call(lambda conn: attachments.of_job(conn, MIDDLE, PATIENCE)),
    "attachments.of_job: none": Call(lambda conn: attachments.of_job(conn, MISSING, PATIENCE)),
    "attachments.content": Call(lambda conn: attachments.content(conn, 1, 1)),
    "attachments.claim": Call(lambda conn: attachments.claim(conn, "slack", 5, 60)),
    "attachments.end": Call(lambda conn: attachments.end(conn, FILE, b"data", None)),
}
