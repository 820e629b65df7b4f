"""The messages of the agent protocol from an agent to its worker."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from draftsman.agent_runs.activity.activity import (
    PLAN_ENTRIES,
    TEXT_KINDS,
    Activity,
    ActivityKind,
    ActivityState,
)
from draftsman.agent_runs.protocol.protocol import (
    AgentErrorClass,
    Count,
    Data,
    Fields,
    FilePath,
    Id,
    Model,
    Seconds,
    Text,
)
from draftsman.errors import Failure
from draftsman.questions import question_spec
from draftsman.questions.permission_rules.command_pattern import plain_words
from draftsman.questions.permission_rules.permission_rule import described, is_reworded
from draftsman.questions.question import OnChanges, OnDeny, OnExpire, QuestionKind

MessageIds = Annotated[tuple[Id, ...], Field(max_length=200)] | None


class ChoiceBody(question_spec.Choice):
    """A choice; a plain string is short for its value."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class AskMessage(Model):
    """Ask a question. The reply is `answer`, `park` if there is no answer yet, or `refused`."""

    type: Literal["ask"] = "ask"
    id: Id = Field(description="id of the message, repeated in the reply")
    key: Id = Field(
        description="key of the question within the job; ask again with it after a park"
    )
    text: Text
    choices: tuple[ChoiceBody, ...] = Field(
        (),
        description="objects, or plain strings; choices that allow and refuse, such as `allow "
        "once` and `deny`, get draftsman's words, and yours are quoted",
    )
    freeform: bool | None = Field(
        None, description="whether free text is allowed; default: only without choices"
    )
    default: str | None = Field(None, description="the answer if the question expires")
    expires_in: Seconds | None = Field(
        None, description="seconds until the question expires; 0: never; default: as configured"
    )
    on_expire: OnExpire | None = Field(
        None,
        description="action on expiry; by default `default` with a default, else `expire`",
    )
    escalate_to: Id | None = Field(
        None, description="group or user that `escalate` asks as well, once; default: as configured"
    )
    context: str | None = Field(None, description="background information for the answer")
    command: str | None = Field(
        None,
        max_length=100_000,
        description="the exact command that a permission request is about; `text` has the line "
        "`$ COMMAND`. A permission rule may allow it if the choices are `allow once`, `deny` and "
        "`allow for this job`",
    )
    grace: Seconds = Field(
        0,
        description="seconds to wait before `park`, at most `[questions] ask_grace`: the latest "
        "checkpoint is current, and is not saved again after `park`",
    )

    @model_validator(mode="after")
    def _check_question(self) -> Self:
        self.question()
        return self

    def of_program(self) -> Self:
        """Return the question of another program of the run, which asks for no permission."""
        return self.model_copy(update={"command": None})

    def question(self) -> question_spec.QuestionSpec:
        """Return the question as a domain object."""
        on_expire = OnExpire.EXPIRE if self.default is None else OnExpire.DEFAULT
        return question_spec.QuestionSpec.model_validate(
            {
                "key": self.key,
                "text": self.text,
                "choices": [choice.model_dump() for choice in described(self.choices)],
                "freeform": not self.choices if self.freeform is None else self.freeform,
                "context": self.context,
                "expires_in": self.expires_in or None,
                "never_expires": self.expires_in == 0,
                "on_expire": self.on_expire or on_expire,
                "default": self.default,
                "escalate_to": self.escalate_to,
                "is_permission": self.command is not None,
                "command_words": self._command_words(),
            }
        )

    def _command_words(self) -> tuple[str, ...] | None:
        """Return the words of the command; None if no rule may allow it."""
        if self.command is None or is_reworded(self.choices):
            return None
        return plain_words(self.command)


class ApproveMessage(Model):
    """Ask for an approval; the reply is as for `ask`."""

    type: Literal["approve"] = "approve"
    id: Id = Field(description="id of the message, repeated in the reply")
    key: Id = Field(description="key of the approval within the job")
    text: Text
    action: Fields | None = Field(
        None, description="the exact action to approve; another action needs another approval"
    )
    on_deny: OnDeny = Field(
        OnDeny.FAIL, description="`fail` ends the job; `continue` sends the denial to the agent"
    )
    on_changes: Literal["refuse", "continue"] = Field(
        "refuse",
        description="`continue` lets people also request changes, which the agent gets to make",
    )
    expires_in: Seconds | None = Field(None, description="as for `ask`")
    on_expire: Literal["expire", "escalate"] = Field("expire", description="action on expiry")
    escalate_to: Id | None = Field(None, description="as for `ask`")
    context: str | None = Field(None, description="background information for the decision")

    @model_validator(mode="after")
    def _check_approval(self) -> Self:
        self.question()
        return self

    def of_program(self) -> Self:
        """Return the approval of another program of the run, which is the same."""
        return self

    def question(self) -> question_spec.QuestionSpec:
        """Return the approval as a domain object."""
        return question_spec.QuestionSpec(
            key=self.key,
            kind=QuestionKind.APPROVAL,
            text=self.text,
            context=self.context,
            expires_in=self.expires_in or None,
            never_expires=self.expires_in == 0,
            on_expire=OnExpire(self.on_expire),
            escalate_to=self.escalate_to,
            on_deny=self.on_deny,
            on_changes=OnChanges(self.on_changes),
            action=self.action,
        )


class OptionalReplyMessage(Model):
    """A message with an optional reply."""

    id: Id | None = Field(None, description="if set, the reply is `ack` or `refused` with this id")


class CheckpointMessage(OptionalReplyMessage):
    """Save `data`, the current workspace and files of `$HOME`; a later run starts from these."""

    type: Literal["checkpoint"] = "checkpoint"
    data: Data = Field(description="state of the agent, up to 1 MiB")
    home: tuple[FilePath, ...] = Field(
        (), description="files and folders below `$HOME` to store as well; empty: those stored last"
    )
    messages: MessageIds = Field(
        None, description="ids of the messages of people that `data` has; unset: all that were sent"
    )


class StepMessage(OptionalReplyMessage):
    """An effect outside the workspace: `pending` before it, `done` with its result after it."""

    type: Literal["step"] = "step"
    key: Id
    state: Literal["pending", "done"]
    invocation_id: Id | None = Field(
        None, description="id by which a later run can check whether a pending effect happened"
    )
    result: Data = None


class EventMessage(OptionalReplyMessage):
    """An event for the job's history."""

    type: Literal["event"] = "event"
    kind: str = Field(pattern=r"^[a-z][a-z0-9_.:-]{0,63}$", description="recorded as `agent.…`")
    payload: Fields = Field({}, description="truncated over 10 KB")


class LogMessage(OptionalReplyMessage):
    """A line for the run's log, like the output on standard error."""

    type: Literal["log"] = "log"
    text: str
    level: Literal["debug", "info", "warning", "error"] = "info"


class PlanEntryBody(Model):
    """A step of a plan."""

    text: Annotated[str, Field(max_length=20_000)]
    state: Literal["pending", "running", "completed"] = "pending"


class ActivityMessage(OptionalReplyMessage):
    """Activity of the agent, shown live: at most a few messages a second.

    `message` and `thought` are a text or, with `continues`, its next piece. `tool` is a call of a
    tool, sent again with its `key` when its `state` changes. `file` is a changed file, and `plan`
    the whole plan.
    """

    type: Literal["activity"] = "activity"
    kind: Literal["message", "thought", "tool", "file", "plan"]
    text: Annotated[str, Field(max_length=20_000)] = Field(
        "", description="text; title of a call; path of a file in the workspace"
    )
    continues: bool = Field(False, description="whether the text goes on with the one before it")
    key: Id | None = Field(None, description="id of the call of a tool")
    state: (
        Literal["pending", "running", "completed", "failed", "created", "changed", "deleted"] | None
    ) = Field(
        None,
        description="of a call: `pending`, `running`, `completed` or `failed`;"
        " of a file: `created`, `changed` or `deleted`",
    )
    tool: str | None = Field(
        None, max_length=100, description="kind of the tool, such as `execute` or `edit`"
    )
    entries: tuple[PlanEntryBody, ...] = Field((), description="steps of the plan, at most 50")

    def activity(self) -> Activity:
        """Return the activity as a domain object."""
        kind = ActivityKind(self.kind)
        entries = [
            {"text": entry.text, "state": entry.state} for entry in self.entries[:PLAN_ENTRIES]
        ]
        details: dict[ActivityKind, dict[str, Any]] = {
            ActivityKind.PLAN: {"entries": entries},
            ActivityKind.TOOL: {"tool": self.tool} if self.tool else {},
        }
        keys = {ActivityKind.FILE: self.text, ActivityKind.PLAN: "plan"}
        return Activity(
            kind=kind,
            text="" if kind is ActivityKind.PLAN else self.text,
            state=None if self.state is None else ActivityState(self.state),
            key=keys.get(kind, self.key or self.text if kind is ActivityKind.TOOL else None),
            detail=details.get(kind, {}),
            continues=self.continues and kind in TEXT_KINDS,
        )


class ArtifactMessage(OptionalReplyMessage):
    """A file of at most 25 MB to store with the job, of kind `report` (`.md`) or `file`."""

    type: Literal["artifact"] = "artifact"
    path: FilePath = Field(
        description="path in the workspace, or below `$HOME` for files outside of the patch"
    )
    name: str | None = Field(
        None, pattern=r"^[^/\x00-\x1f]{1,200}$", description="default: the last part of the path"
    )


class UsageMessage(OptionalReplyMessage):
    """Usage of a model call; calls are added up."""

    type: Literal["usage"] = "usage"
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0
    model: str | None = Field(None, max_length=200)


class ResultMessage(OptionalReplyMessage):
    """The work is complete; exit with code 0 after this message."""

    type: Literal["result"] = "result"
    summary: str = Field(max_length=20_000)
    data: Fields = Field({})
    messages: MessageIds = Field(
        None, description="ids of the messages of people that it has; unset: all that were sent"
    )


class ErrorMessage(OptionalReplyMessage):
    """The work failed; the class determines whether it is retried."""

    type: Literal["error"] = "error"
    error_class: AgentErrorClass = Field(alias="class", description="`PERMANENT` is never retried")
    code: str | None = Field(
        None, max_length=100, description="error code, such as `command_not_found`"
    )
    message: Text
    retry_after: Seconds | None = Field(None, description="minimum seconds before a retry")

    def failure(self) -> Failure:
        """Return the error of the run."""
        return Failure(
            self.message,
            origin="agent",
            code=self.code,
            retry_after=self.retry_after,
            declared=self.error_class,
        )


class ListenMessage(OptionalReplyMessage):
    """Send the messages of people as they arrive; without it they wait for the next `start`."""

    type: Literal["listen"] = "listen"


FromAgent = (
    AskMessage
    | ApproveMessage
    | CheckpointMessage
    | StepMessage
    | EventMessage
    | LogMessage
    | ActivityMessage
    | ArtifactMessage
    | UsageMessage
    | ListenMessage
    | ResultMessage
    | ErrorMessage
)
