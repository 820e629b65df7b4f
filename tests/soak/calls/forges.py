"""Calls about events of forges and the pull requests of jobs."""

from __future__ import annotations

from typing import Final

from draftsman.deliveries.store import threads
from draftsman.forges.follow_up import TrackedPull
from draftsman.forges.forge_event import EventKind, ForgeEvent
from draftsman.forges.store import follow_ups, forge_events, people_events
from draftsman.jobs.job import Source
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from tests.soak.calls.call import NEWEST, OLDEST, Call

EVENT: Final = ForgeEvent(EventKind.COMMENT, "acme/pay", 1, "comment:1:a", author="anna")
PULL: Final = TrackedPull(1, "github", "acme/pay", 1, "u", "b", "main", "a" * 40)
BEN: Final = Actor(Source.SLACK, "U-BEN", "Ben")


CALLS: Final[dict[str, Call]] = {
    "forge_events.receive": Call(lambda conn: forge_events.receive(conn, "github", [EVENT])),
    "people_events.unprocessed": Call(lambda conn: people_events.unprocessed(conn, ["github"])),
    "people_events.finish": Call(lambda conn: people_events.finish(conn, 1, "ignored")),
    "people_events.asked_targets": Call(people_events.asked_targets, 3000, "the open questions"),
    "threads.forge": Call(lambda conn: threads.forge(conn, "github/acme/pay#7")),
    "forge_events.open_pulls": Call(lambda conn: forge_events.open_pulls(conn, "github")),
    "forge_events.closed_pulls": Call(lambda conn: forge_events.closed_pulls(conn, "github")),
    "follow_ups.due": Call(lambda conn: follow_ups.due(conn, LeaderTerm(), 100)),
    "follow_ups.lock": Call(lambda conn: follow_ups.lock(conn, 1)),
    "follow_ups.new_events": Call(lambda conn: follow_ups.new_events(conn, PULL)),
    "follow_ups.members": Call(lambda conn: follow_ups.members(conn, 1)),
    "follow_ups.ignore": Call(lambda conn: follow_ups.ignore(conn, [1], "a program")),
    "follow_ups.ignore_others": Call(lambda conn: follow_ups.ignore_others(conn, 100)),
    "follow_ups.send": Call(lambda conn: follow_ups.send(conn, 1, 1, "ben", "x")),
    "follow_ups.reopen": Call(lambda conn: follow_ups.reopen(conn, 100)),
    "follow_ups.add": Call(lambda conn: follow_ups.add(conn, NEWEST, OLDEST, 1, OLDEST)),
    "follow_ups.end": Call(lambda conn: follow_ups.end(conn, 1, "merged", 1)),
    "follow_ups.reopen_pull": Call(lambda conn: follow_ups.reopen_pull(conn, 1, 1)),
    "follow_ups.merges": Call(lambda conn: follow_ups.merges(conn, [1, 2])),
    "follow_ups.event": Call(lambda conn: follow_ups.event(conn, 1, "follow_up_created", {})),
    "follow_ups.of_job": Call(lambda conn: follow_ups.of_job(conn, 1)),
    "follow_ups.jobs_of_pull": Call(
        lambda conn: follow_ups.jobs_of_pull(conn, "github", "acme/pay", 1)
    ),
    "follow_ups.request": Call(lambda conn: follow_ups.request(conn, 1, BEN, "e", "x")),
    "follow_ups.unanswered": Call(lambda conn: follow_ups.unanswered(conn, "github", 100)),
    "follow_ups.answered": Call(lambda conn: follow_ups.answered(conn, [1])),
    "follow_ups.ended_branches": Call(lambda conn: follow_ups.ended_branches(conn, "github", 100)),
    "follow_ups.branch_deleted": Call(lambda conn: follow_ups.branch_deleted(conn, 1)),
    "follow_ups.family": Call(lambda conn: follow_ups.family(conn, 1)),
}
