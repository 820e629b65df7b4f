"""Chat: threads, and who is who."""

from __future__ import annotations

from typing import Final

from draftsman.domain.directory import Directory, Entry
from draftsman.domain.job import Source
from draftsman.store import people, threads
from tests.soak.calls.call import MIDDLE, NEWEST, Call

CALLS: Final[dict[str, Call]] = {
    "threads.slack: known": Call(lambda conn: threads.slack(conn, "C1", "1.1")),
    "threads.slack: of nobody": Call(lambda conn: threads.slack(conn, "C1", "1700000000.1")),
    "threads.on_its_way": Call(lambda conn: threads.on_its_way(conn, ["C1"], "1700000000.1")),
    "threads.asked_in": Call(lambda conn: threads.asked_in(conn, "C1", 600)),
    "threads.waiting": Call(threads.waiting),
    "threads.remark: none": Call(
        lambda conn: threads.remark(conn, NEWEST, 1, "slack:msg:1", "answer_edited", "soak", {})
    ),
    "threads.remark: answered": Call(
        lambda conn: threads.remark(conn, MIDDLE, 1, "slack:msg:1", "answer_deleted", "soak", {})
    ),
    "people.offer": Call(lambda conn: people.offer(conn, Source.SLACK, "U1", "anna", "hash", 900)),
    "people.link": Call(lambda conn: people.link(conn, "hash", "anna", "cli:anna")),
    "people.unlink": Call(lambda conn: people.unlink(conn, Source.SLACK, "U1")),
    "people.person": Call(lambda conn: people.person(conn, Source.SLACK, "U1")),
    "people.links": Call(lambda conn: people.links(conn, 1000)),
    "people.directory": Call(people.directory),
    "people.save": Call(lambda conn: people.save(conn, Directory({"anna": Entry()}))),
}
