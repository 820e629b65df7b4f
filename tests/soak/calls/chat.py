"""Chat threads and identities."""

from __future__ import annotations

from typing import Final

from draftsman.domain.job import Source
from draftsman.domain.people.directory import Directory, DirectoryEntry
from draftsman.store import people
from draftsman.store.outbox import threads
from tests.soak.calls.call import MIDDLE, NEWEST, Call

CALLS: Final[dict[str, Call]] = {
    "threads.slack: known": Call(lambda conn: threads.slack(conn, "C1", "1.1")),
    "threads.slack: of nobody": Call(lambda conn: threads.slack(conn, "C1", "1700000000.1")),
    "threads.has_pending_message": Call(
        lambda conn: threads.has_pending_message(conn, ["C1"], "1700000000.1")
    ),
    "threads.open_questions_in": Call(lambda conn: threads.open_questions_in(conn, "C1", 600)),
    "threads.question_messages": Call(threads.question_messages),
    "threads.record_answer_change: none": Call(
        lambda conn: threads.record_answer_change(
            conn, NEWEST, 1, "slack:msg:1", "answer_edited", "soak", {}
        )
    ),
    "threads.record_answer_change: answered": Call(
        lambda conn: threads.record_answer_change(
            conn, MIDDLE, 1, "slack:msg:1", "answer_deleted", "soak", {}
        )
    ),
    "people.create_link_code": Call(
        lambda conn: people.create_link_code(conn, Source.SLACK, "U1", "anna", "hash", 900)
    ),
    "people.link": Call(lambda conn: people.link(conn, "hash", "anna", "cli:anna")),
    "people.unlink": Call(lambda conn: people.unlink(conn, Source.SLACK, "U1")),
    "people.person": Call(lambda conn: people.person(conn, Source.SLACK, "U1")),
    "people.links": Call(lambda conn: people.links(conn, 1000)),
    "people.directory": Call(people.directory),
    "people.save": Call(lambda conn: people.save(conn, Directory({"anna": DirectoryEntry()}))),
}
