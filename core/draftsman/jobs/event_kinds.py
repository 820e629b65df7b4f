"""Kinds of events: when draftsman writes each, by whom, and its payload. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

AGENT_KIND: Final = "agent."
"""Prefix of the kinds of an agent's events."""


class EventWriter(StrEnum):
    """The part of draftsman that inserts an event; `may_insert_event` of the database checks it."""

    DATABASE = "database"
    """A trigger or a function, with the change that it records."""
    RUN = "run"
    """A worker, for a run."""
    SWEEP = "sweep"
    """A worker as the leader."""
    DELIVERY = "delivery"
    """A worker or bot that has sent a delivery."""


@dataclass(frozen=True, slots=True)
class EventDescription:
    """A kind of event: when it is written, and its payload for a reader."""

    text: str
    payload: str = ""
    writer: EventWriter = EventWriter.DATABASE


_ERROR: Final = "error, its class and code, attempts and retries"
_QUESTION: Final = "number and key of the question, its text, and the id of the latest checkpoint"
_ANSWER: Final = "the question, the id of the answer, its source and responder, and the checkpoint"
_DELIVERY: Final = "delivery, channel, target, message in the channel, artifact, error"
_FORGE_EVENT: Final = "the kind of the event, its author and URL"
_COMMAND: Final = "command, exit code, duration, summary, start and end of the output"

EVENTS: Final[dict[str, EventDescription]] = {
    # transitions
    "job_created": EventDescription(
        "the job was requested",
        "type, source, mode, agent, repository, the job that it retries; the request itself never"
        " changes",
    ),
    "job_promoted": EventDescription("it was due for the first time"),
    "job_woken": EventDescription("it was due after a sleep"),
    "job_claimed": EventDescription("a worker claimed it"),
    "job_started": EventDescription("a run began"),
    "job_returned": EventDescription("the worker drained or died before the start"),
    "needs_input": EventDescription("the run asked questions and ended", _QUESTION),
    "needs_approval": EventDescription("the run requested an approval and ended", _QUESTION),
    "job_snoozed": EventDescription("its handler sleeps"),
    "job_resumed": EventDescription("its questions are answered", _ANSWER),
    "job_released": EventDescription("the run was interrupted, and goes on from its checkpoint"),
    "job_retrying": EventDescription("the run failed, and is repeated later", _ERROR),
    "job_retried": EventDescription("its next attempt was due"),
    "job_completed": EventDescription(
        "its handler returned", "the `summary` of the result, if it has one"
    ),
    "job_failed": EventDescription("it failed, and a retry cannot help", _ERROR),
    "job_dead_lettered": EventDescription("it failed, and no attempts or retries are left", _ERROR),
    "job_canceled": EventDescription(
        "it was canceled", "reason, and who canceled it, with the channel"
    ),
    "job_expired": EventDescription("a question expired", "the question"),
    # requests and control of jobs
    "request_joined": EventDescription(
        "another request asked for the same work",
        "key and digest of the request, its requester and text",
    ),
    "attachments_added": EventDescription(
        "people sent files", "names of the files, number of the message"
    ),
    "attachment_refused": EventDescription(
        "a file was not accepted", "name of the file, the reason"
    ),
    "cancel_requested": EventDescription("a person canceled the job while it ran", "the reason"),
    "job_paused": EventDescription("a person paused it", "the reason of the pause"),
    "job_unpaused": EventDescription("a person resumed it"),
    "message_sent": EventDescription(
        "a person sent a message to the agent", "number and text of the message"
    ),
    "message_delivered": EventDescription(
        "a checkpoint or the result has messages of people", "their numbers", EventWriter.RUN
    ),
    "action_refused": EventDescription(
        "a person had no right to an action",
        "the action, the reason, the id of its event in the channel",
    ),
    # order of queues
    "job_moved": EventDescription(
        "a person moved it in its queue", "place, the job beside it, new and former priority"
    ),
    "job_prioritized": EventDescription("a person changed its priority", "new and former priority"),
    "queue_reserved": EventDescription("its queue was reserved for it", "queue, seconds"),
    "reservation_ended": EventDescription("the reservation ended", "queue, the reason"),
    "retry_not_created": EventDescription(
        "`on_lost` = `new_job` had no effect", "the reason", EventWriter.SWEEP
    ),
    # questions
    "content_changed": EventDescription(
        "a question, step or spawned job came again with its key and another content",
        "`question`, `approval`, `step` or `spawn`, its key, the content before and now",
        EventWriter.RUN,
    ),
    "answer_received": EventDescription(
        "a question is decided",
        _ANSWER,
    ),
    "answer_refused": EventDescription(
        "an answer did not count", "the question, the reason, the voter"
    ),
    "answer_edited": EventDescription(
        "an answer was edited in its chat; the decision stays",
        "the question, the id of the answer, the new text",
    ),
    "answer_deleted": EventDescription(
        "an answer was deleted in its chat; the decision stays",
        "the question, the id of the answer",
    ),
    "vote_received": EventDescription(
        "an approval has a vote, and needs more", "the question, the voter, the number of votes"
    ),
    "rule_applied": EventDescription(
        "a permission rule answered a question", "the question, the rule"
    ),
    "question_acknowledged": EventDescription(
        "a person works on the answer", "the question, the person, until when"
    ),
    "question_unacknowledged": EventDescription(
        "the person no longer does", "the question, the person"
    ),
    "question_delegated": EventDescription(
        "a person delegated a question", "the question, both people, until when"
    ),
    "question_notified": EventDescription(
        "a step of a ladder was taken",
        "the question, the step, the ladder, who was notified, and who was not, with the reason",
    ),
    "question_extended": EventDescription(
        "a person gave a question more time", "the question, its expiry"
    ),
    "question_escalated": EventDescription(
        "a question expired, and other people may answer",
        "number and key of the question, the group or person, the new expiry",
        EventWriter.SWEEP,
    ),
    "question_expired": EventDescription(
        "a question expired", "number and key of the question, its outcome", EventWriter.SWEEP
    ),
    "token_minted": EventDescription(
        "an approval token was created", "the question, the approver, who created it"
    ),
    "token_redeemed": EventDescription("an approval token was used", "the question, the approver"),
    "token_refused": EventDescription(
        "an approval token was not accepted", "the question, the reason, the approver"
    ),
    "budget_raised": EventDescription(
        "an operator raised a budget of the job", "the budget, the question, the amount, the people"
    ),
    # deliveries
    "delivery_sent": EventDescription("a message was sent", _DELIVERY, EventWriter.DELIVERY),
    "delivery_dead_lettered": EventDescription(
        "a message could not be sent", _DELIVERY, EventWriter.DELIVERY
    ),
    "attachment_uploaded": EventDescription("a file was sent", _DELIVERY, EventWriter.DELIVERY),
    "attachment_failed": EventDescription(
        "a file could not be sent", _DELIVERY, EventWriter.DELIVERY
    ),
    "redelivered": EventDescription("a person had dead letters sent again", "the deliveries"),
    # runs of agents
    "repo_resolved": EventDescription(
        "the repository of the run is known",
        "owner, name, source, base commit, method and confidence",
        EventWriter.RUN,
    ),
    "clone_incomplete": EventDescription(
        "the job works without parts of its repository: contents of Git LFS, or submodules",
        "each part with its kind, paths and a text",
        EventWriter.RUN,
    ),
    "sandbox_applied": EventDescription(
        "the sandbox of the run or tool is ready", "mode, network, user id", EventWriter.RUN
    ),
    "iteration_started": EventDescription(
        "the agent started",
        "number of the iteration, agent, its version, and the version of the worker",
        EventWriter.RUN,
    ),
    "iteration_finished": EventDescription(
        "the work of the agent was validated",
        "number and outcome (`passed`, `failed`, `not_validated`, `unchanged`, `reported`,"
        " `message`, `left_out`, `denied` or `error`), changed files, failed commands, changed"
        " check files, commands that pass only because of them, tokens and cost",
        EventWriter.RUN,
    ),
    "command_executed": EventDescription("a command of the profile ran", _COMMAND, EventWriter.RUN),
    "validation_ran": EventDescription(
        "a validation command or a test ran",
        f"{_COMMAND}; of a test file also the file, on which tree it ran, and the exit code of each"
        " run",
        EventWriter.RUN,
    ),
    "base_updated": EventDescription(
        "the base branch moved, and was merged into the work",
        "the former and the new base commit",
        EventWriter.RUN,
    ),
    "branch_published": EventDescription(
        "the branch was pushed",
        "branch, commit, whether it is a draft, conflicts with other branches",
        EventWriter.RUN,
    ),
    "pr_created": EventDescription(
        "draftsman or the agent opened a pull request",
        "URL of the pull request, changed files and lines",
        EventWriter.RUN,
    ),
    # pull requests
    "follow_up_created": EventDescription(
        "events of its pull request made a new job",
        "the job, its ordinal, URL of the pull request, kinds of the events",
        EventWriter.SWEEP,
    ),
    "forge_event_ignored": EventDescription(
        "an event of its pull request had no effect",
        f"{_FORGE_EVENT}, the reason",
        EventWriter.SWEEP,
    ),
    "pull_request_ended": EventDescription(
        "its pull request was merged or closed", f"{_FORGE_EVENT}, the state", EventWriter.SWEEP
    ),
    "pull_request_reopened": EventDescription(
        "its pull request was opened again", _FORGE_EVENT, EventWriter.SWEEP
    ),
}
"""Kinds of draftsman's own events, in the order of docs/events.md."""
COMMON_KINDS: Final = frozenset({"job_created", "job_claimed", "job_started", "job_completed"})
"""Kinds that are not in the index `job_events_kind`, because most jobs have an event of each."""
