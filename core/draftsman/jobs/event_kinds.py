"""Kinds of events: when draftsman writes each, by whom, its sentence and payload. Pure."""

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
    """A kind of event: when it is written, its sentence, and its payload for a reader."""

    text: str
    sentence: str
    """What people read, as `event_sentence` fills it: `{name}` is a value of the event, and a part
    in brackets is left out with a value that the event does not have."""
    payload: str = ""
    writer: EventWriter = EventWriter.DATABASE


_ERROR: Final = "error, its class and code, attempts and retries"
_RETRY: Final = (
    "error, its class and code, the number of the next attempt or retry, their most, and its time"
)
_QUESTION: Final = "number and key of the question, its text, and the id of the latest checkpoint"
_ANSWER: Final = (
    "the question, the id of the answer, its source and responder, the checkpoint, and the seconds"
    " from question to answer"
)
_DELIVERY: Final = "delivery, channel, target, message in the channel, artifact, error"
_FORGE_EVENT: Final = "the kind of the event, its author and URL"
_COMMAND: Final = "command, exit code, duration, summary, start and end of the output"

EVENTS: Final[dict[str, EventDescription]] = {
    # transitions
    "job_created": EventDescription(
        "the job was requested",
        "{actor} submitted the job[ as a retry of {retry_of}]",
        "type, source, mode, agent, repository, the job that it retries; the request itself never"
        " changes",
    ),
    "job_promoted": EventDescription("it was due for the first time", "The job is due"),
    "job_woken": EventDescription("it was due after a sleep", "The job woke up"),
    "job_claimed": EventDescription("a worker claimed it", "{actor} claimed the job"),
    "job_started": EventDescription("a run began", "Run {run} started"),
    "job_returned": EventDescription(
        "the worker drained or died before the start",
        "The job went back to its queue before its start[: {interruption}]",
    ),
    "needs_input": EventDescription(
        "the run asked questions and ended",
        "The job waits for {asked}[: {texts}]",
        _QUESTION,
    ),
    "needs_approval": EventDescription(
        "the run requested an approval and ended",
        "The job waits for {asked}[: {texts}]",
        _QUESTION,
    ),
    "job_snoozed": EventDescription("its handler sleeps", "The job sleeps[ until {run_at}]"),
    "job_resumed": EventDescription(
        "its questions are answered", "The job can go on[: {closed}]", _ANSWER
    ),
    "job_released": EventDescription(
        "the run was interrupted, and goes on from its checkpoint",
        "Run {run} was interrupted[: {interruption}]; the job goes on from its checkpoint",
    ),
    "job_retrying": EventDescription(
        "the run failed, and is repeated later", "Run {run} failed: {error}; {next_try}", _RETRY
    ),
    "job_retried": EventDescription("its next attempt was due", "The next attempt is due"),
    "job_completed": EventDescription(
        "its handler returned",
        "Run {run} completed the job[: {summary}]",
        "the `summary` of the result, if it has one",
    ),
    "job_failed": EventDescription(
        "it failed, and a retry cannot help", "The job failed[ in run {run}]: {error}", _ERROR
    ),
    "job_dead_lettered": EventDescription(
        "it failed, and no attempts or retries are left",
        "The job failed[ in run {run}] and will not be retried: {error}",
        _ERROR,
    ),
    "job_canceled": EventDescription(
        "it was canceled",
        "{canceled}",
        "reason, and who canceled it, with the channel",
    ),
    "job_expired": EventDescription(
        "a question expired", "The job expired without an answer[ to {question}]", "the question"
    ),
    # requests and control of jobs
    "request_joined": EventDescription(
        "another request asked for the same work",
        "{requester} asked for the same work[: {title}]",
        "key and digest of the request, its requester and text",
    ),
    "attachments_added": EventDescription(
        "people sent files",
        "{actor} sent files: {names}",
        "names of the files, number of the message",
    ),
    "attachment_refused": EventDescription(
        "a file was not accepted",
        "The file {name} was not accepted: {reason}",
        "name of the file, the reason",
    ),
    "cancel_requested": EventDescription(
        "a person canceled the job while it ran",
        "{actor} asked to cancel the running job[: {reason}]",
        "the reason",
    ),
    "job_paused": EventDescription(
        "a person paused it", "{actor} paused the job[: {reason}]", "the reason of the pause"
    ),
    "job_unpaused": EventDescription("a person resumed it", "{actor} resumed the job"),
    "job_dismissed": EventDescription(
        "a person took the failure out of attention",
        "{actor} dismissed the failure[: {reason}]",
        "the reason",
    ),
    "job_undismissed": EventDescription(
        "a person took the dismissal back", "{actor} took the dismissal of the failure back"
    ),
    "message_sent": EventDescription(
        "a person sent a message to the agent",
        "{actor} sent a message to the agent: {text}",
        "number and text of the message",
    ),
    "message_delivered": EventDescription(
        "a checkpoint or the result has messages of people",
        "The agent got {messages}",
        "their numbers",
        EventWriter.RUN,
    ),
    "action_refused": EventDescription(
        "a person had no right to an action",
        "{actor} may not {action}[: {reason}]",
        "the action, the reason, the id of its event in the channel",
    ),
    # order of queues
    "job_moved": EventDescription(
        "a person moved it in its queue",
        "{actor} moved the job {destination}",
        "place, the job beside it, new and former priority",
    ),
    "job_prioritized": EventDescription(
        "a person changed its priority",
        "{actor} changed the priority from {from} to {priority}",
        "new and former priority",
    ),
    "queue_reserved": EventDescription(
        "its queue was reserved for it",
        "{actor} reserved the queue {queue} for the job, for {seconds}",
        "queue, seconds",
    ),
    "reservation_ended": EventDescription(
        "the reservation ended",
        "The queue {queue} is no longer reserved for the job[: {cause}]",
        "queue, the reason",
    ),
    "retry_not_created": EventDescription(
        "`on_lost` = `new_job` had no effect",
        "No new job was made after the loss of the worker: {reason}",
        "the reason",
        EventWriter.SWEEP,
    ),
    # questions
    "content_changed": EventDescription(
        "a question, step or spawned job came again with its key and another content",
        "The {what} {key} came again with another content: {now}",
        "`question`, `approval`, `step` or `spawn`, its key, the content before and now",
        EventWriter.RUN,
    ),
    "answer_received": EventDescription(
        "a question is decided",
        "{decision}[: {answer}][ ({waited})]",
        _ANSWER,
    ),
    "answer_refused": EventDescription(
        "an answer did not count",
        "The answer of {voter} to {question} did not count: {reason}",
        "the question, the reason, the voter",
    ),
    "answer_edited": EventDescription(
        "an answer was edited in its chat; the decision stays",
        "{actor} edited the answer to {question}[ to: {text}]; the decision stays",
        "the question, the id of the answer, the new text",
    ),
    "answer_deleted": EventDescription(
        "an answer was deleted in its chat; the decision stays",
        "{actor} deleted the answer to {question}; the decision stays",
        "the question, the id of the answer",
    ),
    "vote_received": EventDescription(
        "an approval has a vote, and needs more",
        "{voter} approved {question}, {votes} so far",
        "the question, the voter, the number of votes",
    ),
    "rule_applied": EventDescription(
        "a permission rule answered a question", "{decision}[: {answer}]", "the question, the rule"
    ),
    "question_acknowledged": EventDescription(
        "a person works on the answer",
        "{by} works on {question}[ until {until}]",
        "the question, the person, until when",
    ),
    "question_unacknowledged": EventDescription(
        "the person no longer does",
        "{by} no longer works on {question}",
        "the question, the person",
    ),
    "question_delegated": EventDescription(
        "a person delegated a question",
        "{by} asked {to} to answer {question}[ until {until}]",
        "the question, both people, until when",
    ),
    "question_notified": EventDescription(
        "a step of a ladder was taken",
        "Step {step} of the ladder {ladder} for {question}: {notified}",
        "the question, the step, the ladder, who was notified, and who was not, with the reason",
    ),
    "question_extended": EventDescription(
        "a person gave a question more time",
        "{actor} gave {question} more time[, until {expires_at}]",
        "the question, its expiry",
    ),
    "question_escalated": EventDescription(
        "a question expired, and other people may answer",
        "{question} expired, and {escalate_to} may answer it[ until {expires_at}]",
        "number and key of the question, the group or person, the new expiry",
        EventWriter.SWEEP,
    ),
    "question_expired": EventDescription(
        "a question expired",
        "{question} expired[; the default counts: {answer}]",
        "number and key of the question, its outcome",
        EventWriter.SWEEP,
    ),
    "token_minted": EventDescription(
        "an approval token was created",
        "{by} created a token with which {approver} can decide {question}",
        "the question, the approver, who created it",
    ),
    "token_redeemed": EventDescription(
        "an approval token was used",
        "{approver} decided {question} with a token",
        "the question, the approver",
    ),
    "token_refused": EventDescription(
        "an approval token was not accepted",
        "A token[ of {approver}] for {question} was not accepted: {reason}",
        "the question, the reason, the approver",
    ),
    "budget_raised": EventDescription(
        "an operator raised a budget of the job",
        "{by} raised the budget {budget} by {added}",
        "the budget, the question, the amount, the people",
    ),
    # deliveries
    "delivery_sent": EventDescription(
        "a message was sent", "The {delivery} was sent to {target}", _DELIVERY, EventWriter.DELIVERY
    ),
    "delivery_dead_lettered": EventDescription(
        "a message could not be sent",
        "The {delivery} could not be sent to {target}: {error}",
        _DELIVERY,
        EventWriter.DELIVERY,
    ),
    "attachment_uploaded": EventDescription(
        "a file was sent",
        "The file {artifact} was sent to {target}",
        _DELIVERY,
        EventWriter.DELIVERY,
    ),
    "attachment_failed": EventDescription(
        "a file could not be sent",
        "The file {artifact} could not be sent to {target}: {error}",
        _DELIVERY,
        EventWriter.DELIVERY,
    ),
    "redelivered": EventDescription(
        "a person had dead letters sent again",
        "{actor} had {deliveries} sent again",
        "the deliveries",
    ),
    # runs of agents
    "repo_resolved": EventDescription(
        "the repository of the run is known",
        "The repository is {repo}[ at {base_sha}]",
        "owner, name, source, base commit, method and confidence",
        EventWriter.RUN,
    ),
    "clone_incomplete": EventDescription(
        "the job works without parts of its repository: contents of Git LFS, or submodules",
        "The job works without {parts}",
        "each part with its kind, paths and a text",
        EventWriter.RUN,
    ),
    "sandbox_applied": EventDescription(
        "the sandbox of the run or tool is ready",
        "The sandbox is ready: {mode}, {network}",
        "mode, network, user id",
        EventWriter.RUN,
    ),
    "iteration_started": EventDescription(
        "the agent started",
        "The agent {agent}[ {version}] began iteration {iteration}",
        "number of the iteration, agent, its version, and the version of the worker",
        EventWriter.RUN,
    ),
    "iteration_finished": EventDescription(
        "the work of the agent was validated",
        "Iteration {iteration} ended: {outcome}[, {files_changed}][, failed: {failed}][, {usage}]"
        "[: {error}]",
        "number and outcome (`passed`, `failed`, `not_validated`, `unchanged`, `reported`,"
        " `message`, `left_out`, `denied` or `error`), changed files, failed commands, changed"
        " check files, commands that pass only because of them, tokens and cost",
        EventWriter.RUN,
    ),
    "command_executed": EventDescription(
        "a command of the profile ran",
        "{name} {verdict}[ after {duration_seconds}][: {summary}]",
        _COMMAND,
        EventWriter.RUN,
    ),
    "validation_ran": EventDescription(
        "a validation command or a test ran",
        "{name} {verdict}[ on {file}][ after {duration_seconds}][: {summary}]",
        f"{_COMMAND}; of a test file also the file, on which tree it ran, and the exit code of each"
        " run",
        EventWriter.RUN,
    ),
    "base_updated": EventDescription(
        "the base branch moved, and was merged into the work",
        "The base branch moved from {from_commit} to {to_commit}, and was merged into the work",
        "the former and the new base commit",
        EventWriter.RUN,
    ),
    "branch_published": EventDescription(
        "the branch was pushed",
        "The branch {branch} was pushed at {commit}[, {draft}]",
        "branch, commit, whether it is a draft, conflicts with other branches",
        EventWriter.RUN,
    ),
    "pr_created": EventDescription(
        "draftsman or the agent opened a pull request",
        "The pull request was opened: {pr_url}[, {files_changed}]",
        "URL of the pull request, changed files and lines",
        EventWriter.RUN,
    ),
    # pull requests
    "follow_up_created": EventDescription(
        "events of its pull request made a new job",
        "{follow_up} follows up on {pr_url}",
        "the job, its ordinal, URL of the pull request, kinds of the events",
        EventWriter.SWEEP,
    ),
    "forge_event_ignored": EventDescription(
        "an event of its pull request had no effect",
        "{event}[ of {author}] had no effect: {reason}",
        f"{_FORGE_EVENT}, the reason",
        EventWriter.SWEEP,
    ),
    "pull_request_ended": EventDescription(
        "its pull request was merged or closed",
        "The pull request was {state}[ by {author}][: {url}]",
        f"{_FORGE_EVENT}, the state",
        EventWriter.SWEEP,
    ),
    "pull_request_reopened": EventDescription(
        "its pull request was opened again",
        "The pull request was opened again[ by {author}][: {url}]",
        _FORGE_EVENT,
        EventWriter.SWEEP,
    ),
}
"""Kinds of draftsman's own events, in the order of docs/events.md."""
COMMON_KINDS: Final = frozenset({"job_created", "job_claimed", "job_started", "job_completed"})
"""Kinds that are not in the index `job_events_kind`, because most jobs have an event of each."""
