"""Changes that people review with a question: all of them, and since the last review. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from draftsman.agent_runs.changes.interdiff import interdiff
from draftsman.agent_runs.changes.shown_diff import shown_diff
from draftsman.questions.answer import Answer
from draftsman.questions.question import (
    CHANGES_REQUESTED,
    POLICY_KEY,
    Decision,
    Question,
    QuestionKind,
)
from draftsman.questions.review_comment import ReviewComment, comments_of, request_text

PERMISSION: Final = "permission:"
"""Prefix of the keys of permission requests, which are allowed or denied."""
ALLOWED: Final = ("allow once", "allow for this job")


@dataclass(frozen=True, slots=True)
class RequestedChanges:
    """The changes that a person requested at the last review, before a question."""

    question: str
    """The name of the reviewed question."""
    by: str
    reason: str
    comments: tuple[ReviewComment, ...]

    @property
    def heading(self) -> str:
        """Who requested them: `changes requested by ben in D-142/1`."""
        return f"changes requested by {self.by} in {self.question}"

    @property
    def text(self) -> str:
        """What was requested, as its agent gets it."""
        return request_text(self.reason, self.comments)


@dataclass(frozen=True, slots=True)
class Review:
    """The patch of a question and, if one was reviewed before, the difference from that question.

    None: the job has no patch for this question.
    """

    patch: str | None
    since: str | None = None
    """Name of the last reviewed question."""
    since_patch: str = ""
    renewed: tuple[str, ...] = ()
    """Other differences from that question: `new base commit`, `new policy`."""
    requested: RequestedChanges | None = None
    """The changes that were requested at the last review, if they were."""

    @property
    def summary(self) -> str:
        """The changes in a line: `3 files changed, +9 -1; since D-142/2: 1 file changed, +1 -0`."""
        if self.patch is None:
            return ""
        if not self.patch:
            return f"no changes; since {self.since}: reverted" if self.since_patch else ""
        changes = [shown_diff(self.patch, most=0).totals]
        if self.since is not None:
            changed = (
                shown_diff(self.since_patch, most=0).totals if self.since_patch else "no changes"
            )
            changes.append(f"since {self.since}: {', '.join((changed, *self.renewed))}")
        return "; ".join(changes)


def last_reviewed(
    questions: Sequence[Question], ordinal: int, answers: Sequence[Answer] = ()
) -> Question | None:
    """Return the last approval before this question that was approved, or had changes requested.

    Also a permission request that was allowed; for another approval, only before the first one:
    who allows a call of the agent has not reviewed its work. Answers to other questions, as for
    more budget, review no changes. An approval that was superseded since, because the work changed,
    is known by its votes in `answers`.
    """
    before = [item for item in reversed(questions) if item.ordinal < ordinal]
    reviewed = [item for item in before if _is_reviewed(item, answers)]
    approvals = [item for item in reviewed if item.kind is QuestionKind.APPROVAL]
    asks_approval = any(
        item.ordinal == ordinal and item.kind is QuestionKind.APPROVAL for item in questions
    )
    return next(iter((asks_approval and approvals) or reviewed), None)


def requested_changes(
    reviewed: Question | None, answers: Sequence[Answer]
) -> RequestedChanges | None:
    """Return the changes that people requested of a reviewed question, also of a superseded one."""
    if reviewed is None:
        return None
    for answer in reversed(answers):
        payload = answer.payload
        is_request = answer.accepted and payload.get("decision") == Decision.REQUEST_CHANGES
        if is_request and answer.question == reviewed.ordinal:
            reason = payload.get("reason") or ""
            return RequestedChanges(reviewed.name, answer.voter, reason, comments_of(payload))
    return None


def review_since(reviewed: Question, question: Question, before: str, patch: str) -> Review:
    """Return the changes of a question, and the difference from those that were reviewed."""
    since = difference(reviewed, question, before, patch)
    return Review(patch, reviewed.name, since, renewals(reviewed, question))


def difference(earlier: Question, question: Question, before: str, after: str) -> str:
    """Return the difference of the patches of two questions, whose base may have moved."""
    bases = {
        (item.action or {}).get("on")
        for item in (earlier, question)
        if item.key.startswith(POLICY_KEY)
    }
    return interdiff(before, after, same_base=len(bases) <= 1)


def renewals(reviewed: Question, question: Question) -> tuple[str, ...]:
    """Return what differs between the actions of two approvals besides the patch."""
    before = reviewed.approved_action or {}
    now = question.approved_action or {}
    texts = (("on", "new base commit"), ("policy", "new policy"))
    return tuple(text for key, text in texts if before.get(key) != now.get(key))


def _is_reviewed(question: Question, answers: Sequence[Answer]) -> bool:
    resolution = question.resolution or {}
    outcome = resolution.get("outcome")
    if question.kind is QuestionKind.APPROVAL:
        votes = [
            answer.payload.get("decision")
            for answer in answers
            if answer.question == question.ordinal and answer.accepted
        ]
        was_reviewed = (
            votes.count(Decision.APPROVE) >= question.quorum or Decision.REQUEST_CHANGES in votes
        )
        superseded = outcome == "superseded" and was_reviewed
        return outcome in ("approved", CHANGES_REQUESTED) or superseded
    allowed = outcome == "answered" and resolution.get("value") in ALLOWED
    return allowed and question.key.startswith(PERMISSION)
