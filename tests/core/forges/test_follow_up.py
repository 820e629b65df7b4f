"""Decisions about follow-ups: which events start work, when, and for which job."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from draftsman.forges.checks import relevant_part
from draftsman.forges.follow_up import (
    AnswerDue,
    Family,
    FamilyJob,
    FollowUpEvent,
    TrackedPull,
    answer_text,
    message_text,
    plan,
    reopened,
    title_of,
)
from draftsman.forges.forge_event import EventKind, ForgeEvent
from draftsman.jobs.job import Status
from tests.support.cases import cases

S = Status
PULL = TrackedPull(1, "github", "acme/pay", 7, "URL", "draftsman/D-1", "main", "abc", "abc")
ROOT = FamilyJob(1, 0, S.COMPLETED, "anna", False, False)
THREAD = FollowUpEvent(
    *(1, "github", "review_thread", "forge", "ben", "Ben", False, None, "", "Name it"),
    *("a.txt", 3, None, None, "thread:1:aa", 60.0),
)
COMMENT = replace(THREAD, id=2, kind="comment", path=None, line=None, key="comment:2:aa")
CHECK = replace(
    COMMENT, id=3, kind="check_failed", author="", author_name="", title="tests", commit="abc",
    key="check:9:failure",
)  # fmt: skip


@cases(
    ("event", "reason"),
    [
        (THREAD, None),
        (replace(THREAD, text=""), "no text"),
        (replace(THREAD, is_bot=True), "written by a program"),
        (COMMENT, "not addressed to draftsman"),
        (replace(COMMENT, text="/draftsman use red"), None),
        (replace(COMMENT, text="Hi\n@draftsman: use red"), None),
        (replace(COMMENT, text="/draftsman"), "no text"),
        (replace(COMMENT, text="/draftsmanship"), "not addressed to draftsman"),
        (replace(COMMENT, text="@draftsman-fan use red"), "not addressed to draftsman"),
        (replace(COMMENT, text="@fixer use red"), "not addressed to draftsman"),
        (replace(COMMENT, source="slack", key="message:slack:1"), None),
        (replace(COMMENT, kind="review", verdict="changes_requested"), None),
        (replace(COMMENT, kind="review", verdict="approved"), "an approval"),
        (replace(COMMENT, kind="review", verdict="commented", text=""), "no text"),
        (CHECK, None),
        (replace(CHECK, commit="old"), "about an earlier commit"),
        (replace(CHECK, kind="conflict", key="conflict:abc"), None),
    ],
)
def test_only_work_for_the_agent_starts_a_follow_up(
    event: FollowUpEvent, reason: str | None
) -> None:
    found = plan(PULL, [ROOT], [event], {}, 30)
    assert found.ignored == (() if reason is None else ((event, reason),))
    assert found.send == ((event,) if reason is None else ())
    refused = plan(PULL, [ROOT], [event], {event.id: "Eve may not"}, 30)
    assert refused.send == ()
    ended = plan(replace(PULL, state="merged"), [ROOT], [event], {}, 30)
    assert [text for _, text in ended.ignored] == ["the pull request is merged"]
    over = plan(PULL, [replace(ROOT, handed_over=True)], [event], {}, 30)
    assert over.send == ()


@cases(
    ("events", "title"),
    [
        ((CHECK,), "Fix CI of Refunds"),
        ((COMMENT, CHECK), "Fix CI of Refunds"),
        ((CHECK, THREAD), "Address review of Refunds"),
        ((replace(THREAD, kind="review"),), "Address review of Refunds"),
        ((replace(CHECK, kind="conflict"),), "Resolve conflicts of Refunds"),
        ((COMMENT,), "Follow up on Refunds"),
        ((replace(COMMENT, source="slack"),), "Follow up on Refunds"),
    ],
)
def test_a_follow_up_has_a_title_about_its_events(
    events: tuple[FollowUpEvent, ...], title: str
) -> None:
    assert title_of(events, "Refunds", 7) == title
    assert title_of(events, None, 7) == title.replace("Refunds", "D-7")
    assert len(title_of(events, "x" * 600, 7)) == 500


def test_comments_mention_the_login_of_the_forge() -> None:
    event = replace(COMMENT, text="Hi\n@Fixer-1, use red")
    assert plan(PULL, [ROOT], [event], {}, 30, "fixer-1").send == (event,)
    assert message_text(event, "fixer-1") == "use red"


@cases(
    ("job", "text"),
    [
        (Family(PULL, (1,)), "open, no follow-ups"),
        (Family(PULL, (1, 2, 5)), "open, followed up by D-2, D-5"),
    ],
)
def test_a_pull_request_names_its_other_jobs(job: Family, text: str) -> None:
    assert job.text_of(1) == text
    assert Family(PULL, (1, 2, 5)).text_of(5) == "open, follow-up 2 of D-1, with D-2"


def test_comments_of_a_review_are_a_single_follow_up_after_a_quiet_time() -> None:
    other = replace(THREAD, id=5, key="thread:5:aa", age=10.0)
    assert plan(PULL, [ROOT], [THREAD, other], {}, 30).send == ()
    assert plan(PULL, [ROOT], [THREAD, other], {}, 5).send == (THREAD, other)
    assert plan(PULL, [ROOT], [replace(THREAD, age=301), other], {}, 30).send != ()
    edited = replace(THREAD, id=6, key="thread:1:bb", text="Name it x")
    found = plan(PULL, [ROOT], [THREAD, edited], {}, 30)
    assert (found.ignored, found.send) == (((THREAD, "edited"),), (edited,))


def test_an_unfinished_job_is_told_at_once_and_a_canceled_job_is_waited_for() -> None:
    new = replace(THREAD, age=0.0)
    live = FamilyJob(4, 1, S.RUNNING, "anna", False, False)
    assert plan(PULL, [ROOT, live], [new], {}, 30).to == 4
    stopping = replace(live, canceling=True)
    assert plan(PULL, [ROOT, stopping], [replace(THREAD, age=900)], {}, 30).send == ()
    done = replace(live, status=S.COMPLETED)
    found = plan(PULL, [ROOT, done], [THREAD], {}, 30)
    assert (found.to, found.send) == (None, (THREAD,))


def test_a_failure_of_a_commit_that_an_unfinished_job_does_not_have_waits_for_its_end() -> None:
    live = FamilyJob(4, 1, S.RUNNING, "anna", False, False)
    pushed = replace(PULL, tip="def")
    failure = replace(CHECK, commit="def")
    held = plan(pushed, [ROOT, live], [failure], {}, 30)
    assert (held.send, held.ignored) == ((), ())
    began = replace(live, commits=["def"])
    assert plan(pushed, [ROOT, began], [failure], {}, 30).to == 4
    ended = replace(live, status=S.FAILED)
    assert plan(pushed, [ROOT, ended], [failure], {}, 30).send == (failure,)
    assert plan(pushed, [ROOT, live], [CHECK], {}, 30).ignored == (
        (CHECK, "about an earlier commit"),
    )


def test_the_end_of_a_pull_request_wins_over_all_other_events() -> None:
    merged = replace(COMMENT, id=9, kind="merged", key="merged", text="")
    found = plan(PULL, [ROOT], [THREAD, merged], {}, 30)
    assert (found.end, found.send) == ((merged, "merged"), ())
    assert found.ignored == ((THREAD, "the pull request is merged"),)


def test_a_closed_pull_request_that_is_open_there_is_reopened_once_for_each_close() -> None:
    ended = datetime(2026, 1, 2, tzinfo=UTC)
    closed = replace(PULL, state="closed", ended_at=ended)
    there = ForgeEvent(EventKind.CLOSED, "acme/pay", 1, "closed:x")
    assert reopened(PULL, []) is None
    assert reopened(closed, [there]) is None
    first = reopened(closed, [])
    again = reopened(closed, [])
    assert first is not None
    assert first == again
    later = reopened(replace(closed, ended_at=ended + timedelta(seconds=1)), [])
    assert later is not None
    assert later.key != first.key


def test_texts_name_the_place_the_check_and_the_commit() -> None:
    assert message_text(THREAD) == "Review comment of Ben on a.txt, line 3:\n\nName it"
    assert message_text(replace(COMMENT, text="hi\n/draftsman  use red")) == "use red"
    assert message_text(replace(CHECK, text="E  1 == 2")).endswith("failed on abc\n\nE  1 == 2")
    assert len(message_text(replace(THREAD, text="x" * 20_000))) <= 10_000
    due = AnswerDue(
        *(1, "github", "acme/pay", 7, "review_thread", "1", "forge", "Ben", 143, S.COMPLETED),
        *("abc", "did", None, True),
    )
    assert answer_text(due, "<!-- m -->") == "Done in abc (D-143).\n\n<!-- m -->"
    assert answer_text(replace(due, status=S.DEAD_LETTER), "").startswith("D-143 is dead letter:")
    assert answer_text(replace(due, commit=None), "").startswith("D-143 changed nothing.")


def test_the_relevant_part_of_a_log_is_around_its_errors() -> None:
    noise = "".join(f"line {n}\n" for n in range(5000))
    log = f"{noise}ok 0 failed\nE   assert 1 == 2\n{noise}"
    part = relevant_part(log)
    assert "E   assert 1 == 2" in part
    assert len(part) < 1000
    assert relevant_part(noise).endswith("line 4999")
    assert len(relevant_part(noise)) <= 6000
    assert "hunter2" not in relevant_part("error: https://bot:hunter2@example.org/x")
