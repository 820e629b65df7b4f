"""Chat threads and identities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final
from uuid import uuid4

from draftsman.agent_runs.activity.live_thread import LiveThread
from draftsman.database.database import Connection
from draftsman.deliveries.store import live_threads, threads
from draftsman.people.directory import Directory, DirectoryEntry
from draftsman.people.store import people
from draftsman_bots.slack.records import store as slack
from tests.soak.calls.call import MIDDLE, NEWEST, RUNNING, Call


def _with(work: Callable[[Connection, LiveThread], Awaitable[object]]) -> Call:
    """Call it with a claimed thread."""

    async def call(conn: Connection) -> object:
        await live_threads.add(conn, "slack")
        return await work(conn, (await live_threads.claim(conn, 50, 60, uuid4()))[0])

    return Call(call, 2000, "the running jobs, once")


CALLS: Final[dict[str, Call]] = {
    "slack.topics: known": Call(lambda conn: slack.topics(conn, "C1", "1.1")),
    "slack.topics: of nobody": Call(lambda conn: slack.topics(conn, "C1", "1700000000.1")),
    "slack.question_of_message": Call(
        lambda conn: slack.question_of_message(conn, "C1", "1700000000.1")
    ),
    "slack.has_pending_message": Call(
        lambda conn: slack.has_pending_message(conn, ["C1"], "1700000000.1")
    ),
    "slack.open_questions_in": Call(lambda conn: slack.open_questions_in(conn, "C1", 600)),
    "slack.question_messages": Call(slack.question_messages),
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
    "live_threads.add": Call(
        lambda conn: live_threads.add(conn, "slack"), 2000, "the running jobs, once"
    ),
    "live_threads.claim": _with(lambda conn, _: live_threads.claim(conn, 50, 60, uuid4())),
    "live_threads.progress": Call(
        lambda conn: live_threads.progress(conn, [(lease.job, lease.run) for lease in RUNNING])
    ),
    "live_threads.steps": Call(
        lambda conn: live_threads.steps(conn, [lease.job for lease in RUNNING])
    ),
    "live_threads.begin_stream": _with(live_threads.begin_stream),
    "live_threads.record": _with(
        lambda conn, thread: live_threads.record(
            conn, replace(thread, status_text="is working"), 2, release=True
        )
    ),
    "live_threads.record: parked": _with(
        lambda conn, thread: live_threads.record(
            conn, replace(thread, session="suspended"), 86400, release=True, parked=True
        )
    ),
    "live_threads.remove": _with(live_threads.remove),
    "live_threads.known_streams": Call(lambda conn: live_threads.known_streams(conn, ["C1/1.1"])),
    "people.create_link_code": Call(
        lambda conn: people.create_link_code(conn, "slack", "U1", "anna", "hash", 900)
    ),
    "people.link": Call(lambda conn: people.link(conn, "hash", "anna", "cli:anna")),
    "people.unlink": Call(lambda conn: people.unlink(conn, "slack", "U1")),
    "people.bind_account": Call(
        lambda conn: people.bind_account(conn, "forge", "github:anna", "7")
    ),
    "people.person": Call(lambda conn: people.person(conn, "slack", "U1")),
    "people.links": Call(lambda conn: people.links(conn, 1000)),
    "people.directory": Call(people.directory),
    "people.save": Call(lambda conn: people.save(conn, Directory({"anna": DirectoryEntry()}))),
}
