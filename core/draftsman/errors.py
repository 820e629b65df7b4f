"""Every error that draftsman raises on purpose.

Each message is one line: what was wrong, what is allowed, what to do. Only people read it: what a
program needs of an error (its subject, a command that helps, a field, another job) is data, and a
front end that is no terminal words the command in its own way. The exit code is what a command ends
with when the error reaches it.

    DraftsmanError                1  refused, or it did not work
    ├── UsageError                2  an argument or a request that cannot be meant
    │   ├── ConfigError           2  a wrong key or value in the configuration
    │   └── FieldError            2  a field of a request that cannot be meant
    ├── NotFound                  3  no such job, question, run, artifact, worker
    │   └── UnknownRepo           3  a name that no repository has
    ├── Refused                   1  understood, and not allowed now
    │   ├── NotPermitted          1  the actor lacks the role or is not among the approvers
    │   └── QuestionClosed        1  the question was resolved before this answer
    ├── Conflict                  4  somebody else was first
    │   ├── IdempotencyConflict   4  the same key with another request
    │   ├── LostRace              4  the job moved on between looking and writing
    │   └── LeaseLost             4  the run no longer owns its job: it stops and writes nothing
    ├── NobodyAnswered            5  the time for an answer was over
    ├── DatabaseUnreachable       6  no server, or it went away
    │   ├── EmbeddedServerError   6  the embedded server cannot be started
    │   └── SchemaOutdated        6  migrations are missing, or were edited
    │       └── SchemaUnsupported 6  the schema of a version before the first release
    └── Failure                   1  work failed; see `domain.retries.error_classes`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class CommandHint:
    """A command that helps: `name` and `arguments` of the command line, and what introduces it.

    As text it is worded for a terminal: `see: draftsman artifacts D-5`.
    """

    name: str
    arguments: str = ""
    lead: str = "see"

    @property
    def line(self) -> str:
        """The command without the program: `artifacts D-5`."""
        return f"{self.name} {self.arguments}".rstrip()

    def __str__(self) -> str:
        return f"{self.lead}: draftsman {self.line}" if self.lead else f"draftsman {self.line}"


@dataclass(frozen=True, slots=True)
class OptionHint:
    """An option that helps, with which the same command does not refuse: `give --again`."""

    name: str
    lead: str = "give"

    def __str__(self) -> str:
        return f"{self.lead} --{self.name}"


Hint = CommandHint | OptionHint


class DraftsmanError(Exception):
    """It did not work.

    `subject` names what the error is about (`D-13`), `reason` says what is wrong with it, and
    `hint` is a command that helps; the message is all three.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self, message: str | None = None, *, subject: str = "", hint: Hint | None = None
    ) -> None:
        self.subject = subject
        self.reason = message or (type(self).__doc__ or type(self).__name__).splitlines()[0]
        self.hint = hint
        text = f"{subject} {self.reason}" if subject else self.reason
        super().__init__(text if hint is None else f"{text}; {hint}")


class UsageError(DraftsmanError):
    """This argument or request cannot be meant."""

    exit_code = 2


class FieldError(UsageError):
    """A field of a request cannot be meant.

    `field` is its name, or empty for the whole request; `problem` says what is wrong, without the
    name; `rule` is pydantic's name for the kind of error.
    """

    def __init__(
        self, message: str | None = None, *, field: str = "", problem: str = "", rule: str = ""
    ) -> None:
        super().__init__(message)
        self.field = field
        self.problem = problem
        self.rule = rule


class ConfigError(UsageError):
    """The configuration has a wrong key or value."""


class NotFound(DraftsmanError):
    """There is no such thing."""

    exit_code = 3


class UnknownRepo(NotFound):
    """No repository is called so.

    `known` names repositories that there are.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        known: tuple[str, ...] = (),
        hint: Hint | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.known = known


class Refused(DraftsmanError):
    """That is not allowed now."""


class NotPermitted(Refused):
    """You may not do that."""


class QuestionClosed(Refused):
    """The question was resolved before this answer came."""


class Conflict(DraftsmanError):
    """Somebody else was first."""

    exit_code = 4


class IdempotencyConflict(Conflict):
    """This key was used for another request.

    `job` is the number of the job that the other request made.
    """

    def __init__(self, message: str | None = None, *, job: int | None = None) -> None:
        super().__init__(message)
        self.job = job


class LostRace(Conflict):
    """The job moved on in the meantime."""


class LeaseLost(Conflict):
    """This run no longer owns its job."""


class AnswerTimeout(DraftsmanError):
    """Nobody answered in time."""

    exit_code = 5


class DatabaseUnreachable(DraftsmanError):
    """The database cannot be reached."""

    exit_code = 6


class EmbeddedServerError(DatabaseUnreachable):
    """The embedded PostgreSQL cannot be started."""


class SchemaOutdated(DatabaseUnreachable):
    """The database schema is not the one this version needs; run: draftsman migrate."""


class SchemaUnsupported(SchemaOutdated):
    """The database was created by a development version before the first release.

    No version upgrades it.
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            message
            or "the database was created by a development version before the first release, and"
            " cannot be upgraded; dump it if you need its data, and use an empty database (embedded"
            " PostgreSQL: move away the data folder that draftsman db status shows)",
            hint=None if message else CommandHint("migrate", lead="then run"),
        )


class Failure(DraftsmanError):
    """Work failed.

    Handlers and adapters raise it after translating a foreign error. `origin` names the adapter
    (`http`, `os`, `agent`, `slack`, `git`, …); `code` is that origin's own code (an errno name, an
    API's error string); `retry_after` is in seconds; `declared` is an error class that the origin
    states itself and that `classify` believes; `program_exit` is the exit code of the program that
    failed, kept with the run.
    """

    def __init__(
        self,
        message: str,
        *,
        origin: str = "handler",
        code: str | None = None,
        http_status: int | None = None,
        retry_after: float | None = None,
        declared: str | None = None,
        program_exit: int | None = None,
    ) -> None:
        super().__init__(message)
        self.origin = origin
        self.code = code
        self.http_status = http_status
        self.retry_after = retry_after
        self.declared = declared
        self.program_exit = program_exit
