"""What `run_agent` and an agent say to each other: JSON lines, one message each.

`parse_line` reads what an agent writes and never raises; `encode` writes what the worker says.
`docs/agent-protocol.md` is generated from these models, so their docstrings and descriptions are
written for the author of an agent. Fields that a message does not know are ignored: an agent may
be newer than its worker.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import from_json

from draftsman import field_errors
from draftsman.domain import question
from draftsman.domain.question import OnDeny, OnExpire, QuestionKind
from draftsman.handlers.subprocesses.environment import expand
from draftsman.settings import CommandSettings, FixSettings, ProfileSettings

VERSION: Final = 1
MAX_LINE: Final = 1024 * 1024
"""Bytes of a line from an agent, without its newline."""
MAX_REASON: Final = 300
"""Characters of the reason for refusing a line."""


def _finite(value: Any) -> Any:
    """Refuse what JSON cannot write again: 1e999 is read as an infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        _finite(item)
    return value


AnyCommand = TypeVar("AnyCommand", CommandSettings, FixSettings)
Data = Annotated[JsonValue, AfterValidator(_finite)]
Fields = Annotated[dict[str, JsonValue], AfterValidator(_finite)]
Id = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=10_000)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[float, Field(ge=0, le=86_400 * 366, allow_inf_nan=False)]


class Model(BaseModel):
    """A message, or a part of one."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


# --- to the agent -------------------------------------------------------------------------------


class AnswerBody(Model):
    """How a question ended."""

    outcome: str = Field(description="`answered`, `approved`, `denied` or `expired`")
    value: str | None = Field(None, description="the chosen value, or the default")
    text: str | None = Field(None, description="free text")
    by: tuple[str, ...] = Field((), description="who answered; empty where a rule did")
    at: AwareDatetime | None = Field(None, description="when")
    reason: str | None = Field(None, description="why a gate was denied")


class StepState(Model):
    """A step that an earlier run recorded."""

    state: Literal["pending", "done"]
    invocation_id: str | None = None
    result: Data = None


class RequestBody(Model):
    """What was asked for."""

    title: str | None = None
    text: str | None = None


class Profile(Model):
    """How the repository is validated and fixed; the commands are to be run in the workspace."""

    validation_commands: tuple[CommandSettings, ...] = ()
    fix_commands: tuple[FixSettings, ...] = ()
    path: str = Field("", description="the folder of the workspace to run them in; empty: its top")
    skills: tuple[str, ...] = Field((), description="of the request, then the repository's own")

    @classmethod
    def of(cls, settings: ProfileSettings) -> Self:
        """Return the profile with `{python}` replaced: an agent may be of any language."""
        validation = (_expanded(command) for command in settings.validation_commands)
        fixes = (_expanded(command) for command in settings.fix_commands)
        return cls(validation_commands=tuple(validation), fix_commands=tuple(fixes))


class StartMessage(Model):
    """The first line, once: everything there is to know, of earlier runs too."""

    type: Literal["start"] = "start"
    v: int = Field(VERSION, description="version of this protocol")
    job: str = Field(description="the job's name: `D-142`")
    run: int = Field(description="the run's number within its job, from 1")
    repo: str = Field(description="where the work comes from; not for writing to")
    workspace: str = Field(description="the clone to work in, absolute; the working directory too")
    branch: str = Field(description="the branch checked out there: `draftsman/D-142`")
    base_sha: str = Field(description="the commit it started from")
    checkpoint: Data = Field(None, description="`data` of the latest checkpoint of earlier runs")
    steps: dict[str, StepState] = Field({}, description="steps of earlier runs, by key")
    answers: dict[str, AnswerBody] = Field({}, description="what people answered so far, by key")
    deadline: AwareDatetime | None = Field(None, description="when the run is stopped")
    limits: Fields = Field({}, description="what the run may spend; empty: no limit")
    mode: Literal["investigate", "fix"] = Field(
        "fix", description="`investigate`: look and report, the tree is not kept"
    )
    request: RequestBody = RequestBody()
    profile: Profile = Profile()


class AnswerMessage(AnswerBody):
    """The answer to the `ask` or `approve` with this `id`."""

    type: Literal["answer"] = "answer"
    id: str
    key: str


class AckMessage(Model):
    """The message with this `id` is kept, whatever happens now."""

    type: Literal["ack"] = "ack"
    id: str


class RefusedMessage(Model):
    """The message with this `id`, or a line that could not be read, is as if never written."""

    type: Literal["refused"] = "refused"
    id: str | None = None
    reason: str


class ParkMessage(Model):
    """Save a checkpoint if there is something to save, then exit 0, within ten seconds.

    With an `id`, that question waits for a person. Without one, the worker is shutting down. A
    later run, maybe on another host, starts with the checkpoint and the answers.
    """

    type: Literal["park"] = "park"
    id: str | None = None


# --- from the agent -----------------------------------------------------------------------------


class ChoiceBody(question.Choice):
    """One thing to choose; a plain string stands for its value."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class AskMessage(Model):
    """Ask people. The reply is `answer`, or `park` when it takes longer, or `refused`."""

    type: Literal["ask"] = "ask"
    id: Id = Field(description="the reply carries it")
    key: Id = Field(description="names the question within the job; ask it again after a park")
    text: Text
    choices: tuple[ChoiceBody, ...] = Field((), description="objects, or plain strings")
    freeform: bool | None = Field(
        None, description="whether other text is allowed; unset: where there are no choices"
    )
    default: str | None = Field(None, description="the answer if nobody gives one")
    expires_in: Seconds | None = Field(
        None, description="seconds until nobody answered; 0: never; unset: as configured"
    )
    on_expire: OnExpire | None = Field(
        None, description="what then; unset: `default` with a default, else `expire` (the job ends)"
    )
    escalate_to: Id | None = Field(
        None, description="whom `escalate` asks as well, once; unset: as configured"
    )
    context: str | None = Field(None, description="what one should know to answer")

    @model_validator(mode="after")
    def _is_a_question(self) -> Self:
        self.question()
        return self

    def question(self) -> question.QuestionSpec:
        """Return what is asked, in the terms of the domain."""
        when_over = OnExpire.EXPIRE if self.default is None else OnExpire.DEFAULT
        return question.QuestionSpec.model_validate(
            {
                "key": self.key,
                "text": self.text,
                "choices": [choice.model_dump() for choice in self.choices],
                "freeform": not self.choices if self.freeform is None else self.freeform,
                "context": self.context,
                "expires_in": self.expires_in or None,
                "never_expires": self.expires_in == 0,
                "on_expire": self.on_expire or when_over,
                "default": self.default,
                "escalate_to": self.escalate_to,
            }
        )


class ApproveMessage(Model):
    """Ask for a gate to be opened; the reply is as for `ask`."""

    type: Literal["approve"] = "approve"
    id: Id = Field(description="the reply carries it")
    key: Id = Field(description="names the gate within the job")
    text: Text
    action: Fields | None = Field(
        None, description="exactly what is approved: with another action it is asked anew"
    )
    on_deny: OnDeny = Field(
        OnDeny.FAIL, description="`fail` ends the job; `continue` lets the agent hear of it"
    )
    expires_in: Seconds | None = Field(None, description="as for `ask`")
    on_expire: Literal["expire", "escalate"] = Field("expire", description="what then")
    escalate_to: Id | None = Field(None, description="as for `ask`")
    context: str | None = Field(None, description="what one should know to decide")

    @model_validator(mode="after")
    def _is_a_gate(self) -> Self:
        self.question()
        return self

    def question(self) -> question.QuestionSpec:
        """Return the gate in the terms of the domain."""
        return question.QuestionSpec(
            key=self.key,
            kind=QuestionKind.APPROVAL,
            text=self.text,
            context=self.context,
            expires_in=self.expires_in or None,
            never_expires=self.expires_in == 0,
            on_expire=OnExpire(self.on_expire),
            escalate_to=self.escalate_to,
            on_deny=self.on_deny,
            action=self.action,
        )


class OptionalReplyMessage(Model):
    """A message that needs no reply, and gets one if it wants it."""

    id: Id | None = Field(None, description="if given, an `ack` or a `refused` with it follows")


class CheckpointMessage(OptionalReplyMessage):
    """Save `data`, and the workspace as it is now; a later run starts from both."""

    type: Literal["checkpoint"] = "checkpoint"
    data: Data = Field(description="the agent's own, up to 1 MiB")


class StepMessage(OptionalReplyMessage):
    """An effect outside the workspace: `pending` before it, `done` with its result after."""

    type: Literal["step"] = "step"
    key: Id
    state: Literal["pending", "done"]
    invocation_id: Id | None = Field(
        None, description="by which a later run finds out whether a pending effect happened"
    )
    result: Data = None


class EventMessage(OptionalReplyMessage):
    """Something for the job's timeline."""

    type: Literal["event"] = "event"
    kind: str = Field(pattern=r"^[a-z][a-z0-9_.:-]{0,63}$", description="kept as `agent.…`")
    payload: Fields = Field({}, description="10 KB are kept")


class LogMessage(OptionalReplyMessage):
    """A line for the run's log; so is everything on standard error."""

    type: Literal["log"] = "log"
    text: str
    level: Literal["debug", "info", "warning", "error"] = "info"


class ArtifactMessage(OptionalReplyMessage):
    """A file of at most 25 MB to keep with the job, its kind `report` (`.md`) or `file`."""

    type: Literal["artifact"] = "artifact"
    path: str = Field(
        min_length=1,
        max_length=4096,
        description="in the workspace, or below `$HOME` (what should not become part of the patch)",
    )
    name: str | None = Field(
        None, pattern=r"^[^/\x00-\x1f]{1,200}$", description="unset: the last part of the path"
    )


class UsageMessage(OptionalReplyMessage):
    """What a model call cost; calls add up."""

    type: Literal["usage"] = "usage"
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0
    model: str | None = Field(None, max_length=200)


class ResultMessage(OptionalReplyMessage):
    """The work is done; exit 0 after it."""

    type: Literal["result"] = "result"
    summary: str = Field(max_length=20_000)
    data: Fields = {}


class ErrorMessage(OptionalReplyMessage):
    """The work failed, and the class says whether trying again may help."""

    type: Literal["error"] = "error"
    error_class: Literal["TRANSIENT_INFRA", "TRANSIENT_APP", "PERMANENT", "INVALID_OUTPUT"] = Field(
        alias="class", description="`PERMANENT` is never tried again"
    )
    code: str | None = Field(None, max_length=100, description="like `command_not_found`")
    message: Text
    retry_after: Seconds | None = Field(None, description="seconds")


ToAgent = StartMessage | AnswerMessage | AckMessage | RefusedMessage | ParkMessage
FromAgent = (
    AskMessage
    | ApproveMessage
    | CheckpointMessage
    | StepMessage
    | EventMessage
    | LogMessage
    | ArtifactMessage
    | UsageMessage
    | ResultMessage
    | ErrorMessage
)
TYPES: Final = tuple(model.model_fields["type"].default for model in get_args(FromAgent))
_Tagged = Annotated[FromAgent, Field(discriminator="type")]
_READ: Final[TypeAdapter[FromAgent]] = TypeAdapter(_Tagged)


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """A line that is no message: why, in one line, and its `id` if that could be read."""

    reason: str
    id: str | None = None


def parse_line(line: bytes) -> FromAgent | MalformedLine:
    """Read one line of an agent, with or without its newline; never raises."""
    line = line.strip()
    if len(line) > MAX_LINE:
        return MalformedLine(f"a line of {len(line):,} bytes; at most {MAX_LINE:,} are read")
    try:
        return _READ.validate_json(line, strict=True)
    except ValidationError as error:
        return MalformedLine(_reason(error), _id_of(line))


def encode(message: ToAgent | FromAgent) -> bytes:
    """Return the message as one line with its newline: `type` first, and no spaces between."""
    fields = message.model_dump(mode="json", by_alias=True)
    return json.dumps({"type": message.type, **fields}, separators=(",", ":")).encode() + b"\n"


def _expanded(settings: AnyCommand) -> AnyCommand:
    return settings.model_copy(update={"command": expand(settings.command)})


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"].startswith("union_tag"):
        given = f"unknown type {tag[:60]!r}" if (tag := first["ctx"].get("tag")) else "no type"
        return f"{given}; known are: {', '.join(TYPES)}"
    text = ": ".join(filter(None, field_errors.first_error(error)))
    return " ".join(text.split())[:MAX_REASON]


def _id_of(line: bytes) -> str | None:
    try:
        found = from_json(line)
    except ValueError:
        return None
    name = found.get("id") if isinstance(found, dict) else None
    return name if isinstance(name, str) and 0 < len(name) <= 200 else None
