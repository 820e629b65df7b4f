"""Calls about events of forges and the pull requests of jobs."""

from __future__ import annotations

from typing import Final

from draftsman.deliveries.store import threads
from draftsman.forges import store as forges
from draftsman.forges.follow_up import TrackedPull
from draftsman.forges.forge_event import EventKind, ForgeEvent
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from tests.soak.calls.call import NEWEST, OLDEST, Call

EVENT: Final = ForgeEvent(EventKind.COMMENT, "acme/pay", 1, "comment:1:a", author="anna")
PULL: Final = TrackedPull(1, "github", "acme/pay", 1, "u", "b", "main", "a" * 40, "a" * 40)
BEN: Final = Actor("slack", "U-BEN", "Ben")


CALLS: Final[dict[str, Call]] = {
    "forges.receive": Call(lambda conn: forges.receive(conn, "github", [EVENT])),
    "forges.unprocessed": Call(lambda conn: forges.unprocessed(conn, ["github"])),
    "forges.finish": Call(lambda conn: forges.finish(conn, 1, "ignored")),
    "forges.asked_targets": Call(forges.asked_targets, 3000, "the open questions"),
    "threads.place: an issue": Call(lambda conn: threads.place(conn, "forge", "github/acme/pay#7")),
    "forges.open_pulls": Call(lambda conn: forges.open_pulls(conn, "github")),
    "forges.closed_pulls": Call(lambda conn: forges.closed_pulls(conn, "github")),
    "forges.note_tip": Call(lambda conn: forges.note_tip(conn, PULL, "b" * 40)),
    "forges.due_follow_ups": Call(lambda conn: forges.due_follow_ups(conn, LeaderTerm(), 100)),
    "forges.lock_pull": Call(lambda conn: forges.lock_pull(conn, 1)),
    "forges.new_events": Call(lambda conn: forges.new_events(conn, PULL)),
    "forges.members": Call(lambda conn: forges.members(conn, 1)),
    "forges.ignore": Call(lambda conn: forges.ignore(conn, [1], "a program")),
    "forges.ignore_others": Call(lambda conn: forges.ignore_others(conn, 100)),
    "forges.send": Call(lambda conn: forges.send(conn, 1, 1, "ben", "x")),
    "forges.reopen": Call(lambda conn: forges.reopen(conn, 100)),
    "forges.add": Call(lambda conn: forges.add(conn, NEWEST, OLDEST, 1, OLDEST)),
    "forges.end": Call(lambda conn: forges.end(conn, 1, "merged", 1)),
    "forges.reopen_pull": Call(lambda conn: forges.reopen_pull(conn, 1, 1)),
    "forges.merges": Call(lambda conn: forges.merges(conn, [1, 2])),
    "forges.event": Call(lambda conn: forges.event(conn, 1, "follow_up_created", {})),
    "forges.of_job": Call(lambda conn: forges.of_job(conn, 1)),
    "forges.jobs_of_pull": Call(lambda conn: forges.jobs_of_pull(conn, "github", "acme/pay", 1)),
    "forges.request": Call(lambda conn: forges.request(conn, 1, BEN, "e", "x")),
    "forges.unanswered": Call(lambda conn: forges.unanswered(conn, "github", 100)),
    "forges.answered": Call(lambda conn: forges.answered(conn, [1])),
    "forges.ended_branches": Call(lambda conn: forges.ended_branches(conn, "github", 100)),
    "forges.branch_deleted": Call(lambda conn: forges.branch_deleted(conn, 1)),
    "forges.family": Call(lambda conn: forges.family(conn, 1)),
}
