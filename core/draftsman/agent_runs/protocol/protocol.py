"""The messages of the agent protocol from the worker to an agent: JSON lines, one message each.

`agent_messages` has those of the agent; `protocol_codec` parses and formats the lines.
`docs/agent-protocol.md` is generated from these models, so their docstrings and descriptions are
written for authors of agents. Unknown fields are ignored, since an agent may be newer than its
worker.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
)

from draftsman.questions.question import Answered, NoAnswer
from draftsman.repos.command_exits import error_exits
from draftsman.sandbox.processes.environment import expand
from draftsman.settings.profiles import (
    CommandSettings,
    FixSettings,
    ProfileSettings,
    without_report,
)

VERSION: Final = 1


def _finite(value: Any) -> Any:
    """Reject numbers that JSON cannot encode: 1e999 is parsed as infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _finite(item)
    return value


AnyCommand = TypeVar("AnyCommand", CommandSettings, FixSettings)
Data = Annotated[JsonValue, AfterValidator(_finite)]
Fields = Annotated[dict[str, JsonValue], AfterValidator(_finite)]
Id = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=10_000)]
FilePath = Annotated[str, Field(min_length=1, max_length=4096)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[float, Field(ge=0, le=86_400 * 366, allow_inf_nan=False)]
AgentErrorClass = Literal["TRANSIENT_INFRA", "TRANSIENT_APP", "PERMANENT", "INVALID_OUTPUT"]


class Model(BaseModel):
    """A message or a part of it."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class CommentBody(Model):
    """A comment of a request for changes."""

    path: str
    line: int | None = Field(None, description="number in the new version; unset: the whole file")
    text: str


class AnswerBody(Model):
    """The outcome of a question."""

    outcome: str = Field(
        description="`answered`, `approved`, `denied`, `changes_requested` or `expired`"
    )
    value: str | None = Field(None, description="the chosen value, or the default")
    text: str | None = Field(None, description="free text")
    by: tuple[str, ...] = Field((), description="the users who answered; empty if a rule answered")
    at: AwareDatetime | None = Field(None, description="time of the answer")
    reason: str | None = Field(None, description="the reason for a denial, or what to change")
    comments: tuple[CommentBody, ...] = Field(
        (), description="comments of a request for changes, on files and lines"
    )
    question: str | None = Field(None, description="the text of the question, in `start` only")

    @classmethod
    def of(
        cls, answer: Answered | NoAnswer, shown: Callable[[str], str], **fields: str | None
    ) -> Self:
        """Return an answer with `shown` of its texts, what people see of them."""
        if isinstance(answer, NoAnswer):
            return cls.model_validate({"outcome": answer.outcome, **fields})
        body = {
            "outcome": answer.outcome,
            "value": answer.value,
            "text": None if answer.text is None else shown(answer.text),
            "by": answer.by,
            "at": answer.at,
            "reason": None if answer.reason is None else shown(answer.reason),
            "comments": [item.as_json() | {"text": shown(item.text)} for item in answer.comments],
        }
        return cls.model_validate({**body, **fields})


class StepState(Model):
    """A step recorded by an earlier run."""

    state: Literal["pending", "done"]
    invocation_id: str | None = None
    result: Data = None


class RequestBody(Model):
    """Title and text of the request."""

    title: str | None = None
    text: str | None = None


class ParentBody(Model):
    """A job that this job waited for, as `after` says."""

    job: str = Field(description="its name: `D-141`")
    status: str = Field(description="`completed`, `failed`, `dead_letter`, `expired` or `canceled`")
    type: str
    title: str | None = None
    result: Data = Field(None, description="its result, if it completed")
    error: str | None = Field(None, description="its last error")
    truncated: bool = Field(False, description="left out: results and errors have at most 1 MiB")


class AttachmentBody(Model):
    """A file that a person sent with the request or with a message; its content is untrusted."""

    name: str
    path: str | None = Field(None, description="below HOME; unset: see `reason`")
    media_type: str | None = Field(None, description="as its sender says")
    size: int | None = None
    reason: str | None = Field(None, description="why it is not there")
    message: str | None = Field(None, description="id of its message; unset: the request")


class MessageBody(Model):
    """A message of a person to the job."""

    id: str = Field(description="id of the message within the job")
    text: str
    by: str = Field(description="the person")
    at: AwareDatetime = Field(description="when it was sent")
    attachments: tuple[AttachmentBody, ...] = Field((), description="files of the message")


class Profile(Model):
    """The commands that validate and fix the repository, to be run in the workspace."""

    validation_commands: tuple[CommandSettings, ...] = ()
    fix_commands: tuple[FixSettings, ...] = ()
    path: str = Field(
        "", description="folder of the workspace in which to run them; empty: its top folder"
    )
    skills: tuple[str, ...] = Field((), description="skills of the request, then of the repository")

    @classmethod
    def of(cls, settings: ProfileSettings, python: str = sys.executable) -> Self:
        """Return the profile with all exit codes, and commands that can be run as they are."""
        validation = (_expand(command, python) for command in settings.validation_commands)
        fixes = (_expand(command, python) for command in settings.fix_commands)
        return cls(validation_commands=tuple(validation), fix_commands=tuple(fixes))


class FailedValidator(Model):
    """A required validation command that failed on the work of the previous iteration."""

    name: str
    command: str
    exit_code: int | None = Field(None, description="unset if it exceeded its timeout")
    output: str = Field(description="the first and last 2,000 bytes")


class StartMessage(Model):
    """The first line: the job, its workspace, and the state of earlier runs."""

    type: Literal["start"] = "start"
    v: int = Field(VERSION, description="version of this protocol")
    job: str = Field(description="the job's name: `D-142`")
    run: int = Field(description="the run's number within its job, from 1")
    repo: str = Field(description="path or URL of the source repository; do not write to it")
    workspace: str = Field(description="absolute path of the clone, which is the working directory")
    branch: str = Field(description="the branch checked out in the workspace: `draftsman/D-142`")
    base_sha: str = Field(description="the base commit of the branch")
    checkpoint: Data = Field(None, description="`data` of the latest checkpoint of earlier runs")
    steps: dict[str, StepState] = Field({}, description="steps of earlier runs, by key")
    answers: dict[str, AnswerBody] = Field({}, description="answers so far, by key of the question")
    deadline: AwareDatetime | None = Field(None, description="time when the run is stopped")
    limits: Fields = Field({}, description="limits of the run; empty: no limits")
    mode: Literal["investigate", "fix"] = Field(
        "fix", description="`investigate`: report only, changes are not published"
    )
    request: RequestBody = RequestBody()
    parents: tuple[ParentBody, ...] = Field((), description="the jobs of `after`; at most 1,000")
    messages: tuple[MessageBody, ...] = Field(
        (), description="messages of people that no checkpoint of an earlier run has"
    )
    attachments: tuple[AttachmentBody, ...] = Field((), description="files of the request")
    missing: tuple[str, ...] = Field(
        (), description="what the workspace lacks of the repository: of Git LFS, and submodules"
    )
    profile: Profile = Profile()
    iteration: int = Field(
        1, description="from 2: the work in the workspace is that of the previous iteration"
    )
    failed: tuple[FailedValidator, ...] = Field(
        (), description="required validators that have to pass before the work is published"
    )


class AnswerMessage(AnswerBody):
    """The answer to the `ask` or `approve` with this `id`."""

    type: Literal["answer"] = "answer"
    id: str
    key: str


class AckMessage(Model):
    """The message with this `id` is stored durably."""

    type: Literal["ack"] = "ack"
    id: str
    tree: str | None = Field(None, description="of a checkpoint: the git id of the stored tree")


class RefusedMessage(Model):
    """The message with this `id`, or a malformed line, was rejected and has no effect.

    An agent that ends because of it should send an `error` with the same `class`.
    """

    type: Literal["refused"] = "refused"
    id: str | None = None
    line: int | None = Field(
        None, description="number of the line of the agent, from 1, if that has no `id`"
    )
    reason: str
    error_class: AgentErrorClass = Field(
        "PERMANENT",
        alias="class",
        description="if not `PERMANENT`, a later run may succeed with the same message",
    )


class ParkMessage(Model):
    """Save a checkpoint if needed, then exit with code 0, within ten seconds.

    With an `id`, this question waits for an answer. Without an `id`, the worker shuts down, the job
    is paused, or another program asked. A later run, perhaps on another host, has the checkpoint
    and the answers.
    """

    type: Literal["park"] = "park"
    id: str | None = None


class PersonMessage(MessageBody):
    """A message of a person, to an agent that has sent `listen`; it arrives at any time."""

    type: Literal["message"] = "message"


ToAgent = StartMessage | AnswerMessage | AckMessage | RefusedMessage | ParkMessage | PersonMessage


def _expand(settings: AnyCommand, python: str) -> AnyCommand:
    exits = settings.error_exits or error_exits(settings.command)
    command = expand(without_report(settings.command), python)
    return settings.model_copy(update={"command": command, "error_exits": exits})
