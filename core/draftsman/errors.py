"""Error hierarchy of draftsman, with the exit code of a command for each.

A message is one line for people: the problem, the allowed values, the next step. Programs use the
attributes instead (subject, hint, field, job), and each front end words a hint in its own way.

    DraftsmanError                1  the operation failed
    ├── UsageError                2  an invalid argument or request
    │   ├── InvalidParameters     2  parameters that their schema refuses
    │   ├── AmbiguousName         2  a name of both a template and a job type
    │   ├── ConfigError           2  a wrong key or value in the configuration
    │   └── FieldError            2  an invalid field of a request
    │       └── RejectedField     2  a valid field that this installation cannot accept
    ├── NotFound                  3  no such job, question, run, artifact, worker
    │   ├── UnknownRepo           3  no repository with this name
    │   └── UndescribedType       3  no job type with this name that workers have described
    ├── Refused                   1  a valid request that is not allowed now
    │   ├── NotPermitted          1  the actor lacks the role or is not among the approvers
    │   └── QuestionClosed        1  the question was resolved before this answer
    ├── Conflict                  4  a concurrent change was first
    │   ├── IdempotencyConflict   4  the same key with a different request
    │   ├── LostRace              4  the job changed between the read and the write
    │   └── LeaseLost             4  the run no longer owns its job: it stops and writes nothing
    ├── AnswerTimeout             5  a question expired without an answer
    ├── DatabaseUnreachable       6  no server, or a lost connection
    │   ├── EmbeddedServerError   6  the embedded server cannot be started
    │   └── SchemaOutdated        6  migrations are missing, or were edited
    └── Failure                   1  work failed; see `domain.retries.error_classes`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

QUERY_CANCELED: Final = "57014"
"""SQLSTATE of a statement that ran for longer than its time limit."""
TEMPORARY_STATES: Final = ("08", "25", "40", "53", "55", "57", "58")
"""Classes of SQLSTATE with which the same statement may succeed later: no connection, a read-only
transaction, a conflict, no resources, a lock, a time limit or a shutdown, a system error."""
DATA_STATES: Final = ("22", "23", "54")
"""Classes of SQLSTATE of values that the database cannot store."""
INT_MAX: Final = 2**31 - 1
"""Largest exit code, as of an integer of PostgreSQL."""


@dataclass(frozen=True, slots=True)
class CommandHint:
    """A command that helps, with the word that introduces it.

    Its text is for a terminal: `see: draftsman artifacts list D-5`.
    """

    name: str
    arguments: str = ""
    lead: str = "see"

    @property
    def line(self) -> str:
        """The command line without the program: `artifacts D-5`."""
        return f"{self.name} {self.arguments}".rstrip()

    def __str__(self) -> str:
        return f"{self.lead}: draftsman {self.line}" if self.lead else f"draftsman {self.line}"


@dataclass(frozen=True, slots=True)
class OptionHint:
    """An option with which the same command succeeds: `use --again`."""

    name: str
    lead: str = "use"

    def __str__(self) -> str:
        return f"{self.lead} --{self.name}"


Hint = CommandHint | OptionHint


def with_hint(text: str, hint: object) -> str:
    """Return a sentence with what to do after it; without a `;` after `did you mean A?`."""
    return f"{text}{'' if text.endswith('?') else ';'} {hint}"


class DraftsmanError(Exception):
    """The operation failed.

    The message consists of `subject` (`D-13`), `reason` and `hint`. The first line of the class's
    docstring is the default reason.
    """

    exit_code: ClassVar[int] = 1
    sqlstate: str | None = None
    """The SQLSTATE of the database's error that this one translates."""

    @property
    def is_outage(self) -> bool:
        """Whether the database answers no statement now, whatever its values are."""
        return False

    @property
    def is_temporary(self) -> bool:
        """Whether the same call may succeed later: after an outage, a conflict or a lock."""
        return self.sqlstate is not None and self.sqlstate.startswith(TEMPORARY_STATES)

    @property
    def is_data_error(self) -> bool:
        """Whether the database cannot store a value, of this statement or of a later step."""
        return self.sqlstate is not None and self.sqlstate.startswith(DATA_STATES)

    def __init__(
        self, message: str | None = None, *, subject: str = "", hint: Hint | None = None
    ) -> None:
        self.subject = subject
        self.reason = message or (type(self).__doc__ or type(self).__name__).splitlines()[0]
        self.hint = hint
        text = f"{subject} {self.reason}" if subject else self.reason
        super().__init__(text if hint is None else with_hint(text, hint))


class UsageError(DraftsmanError):
    """Invalid argument or request."""

    exit_code = 2


class FieldError(UsageError):
    """Invalid field of a request.

    `field` is its name, or empty for the whole request; `problem` is the message without the name;
    `rule` is pydantic's error type.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str = "",
        problem: str = "",
        rule: str = "",
        hint: Hint | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.field = field
        self.problem = problem
        self.rule = rule


class RejectedField(FieldError):
    """A field of a request that the configuration, repositories or workers do not allow.

    `rule` is required, unknown, not_configured, not_found, too_long or no_repos; `value` is the
    rejected value; `known` has the allowed names, or None; `skippable` tells whether an unchecked
    submission accepts it.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str,
        rule: str,
        problem: str = "",
        value: str = "",
        known: tuple[str, ...] | None = None,
        skippable: bool = False,
        hint: Hint | None = None,
    ) -> None:
        super().__init__(message, field=field, problem=problem or message, rule=rule, hint=hint)
        self.value = value
        self.known = known
        self.skippable = skippable

    def reworded(self, message: str) -> RejectedField:
        """Return an error with the same data and the message of a front end."""
        return RejectedField(
            message,
            field=self.field,
            rule=self.rule,
            problem=self.problem,
            value=self.value,
            known=self.known,
            skippable=self.skippable,
        )


class InvalidParameters(UsageError):
    """The parameters do not match the schema of their template or job type.

    `problems` has the problem of each parameter that is wrong or missing.
    """

    def __init__(self, message: str | None = None, *, problems: Mapping[str, str]) -> None:
        super().__init__(message)
        self.problems = problems


class AmbiguousName(UsageError):
    """A name of both a template and a job type."""


class ConfigError(UsageError):
    """The configuration has a wrong key or value."""


class InvalidDatabaseUrl(ConfigError):
    """The URL of the database is no connection string of libpq."""


class NotFound(DraftsmanError):
    """Not found."""

    exit_code = 3


class UnknownRepo(NotFound):
    """Unknown repository.

    `known` has the names of existing repositories.
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


class UndescribedType(NotFound):
    """No worker has published this job type.

    `near` has the described types with similar names.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        near: tuple[str, ...] = (),
        hint: Hint | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.near = near


class Refused(DraftsmanError):
    """Not allowed now."""


class NotPermitted(Refused):
    """Permission denied.

    `actor` is the refused account (`cli:anna`) where the subject of the message is its display
    name.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        subject: str = "",
        hint: Hint | None = None,
        actor: str = "",
    ) -> None:
        super().__init__(message, subject=subject, hint=hint)
        self.actor = actor


class QuestionClosed(Refused):
    """The question is already resolved."""


CORRECTABLE: Final = (NotFound, Refused, UsageError)
"""Errors of what a person wrote, whose text is the reply to them."""


class Conflict(DraftsmanError):
    """Conflict with a concurrent change."""

    exit_code = 4


class IdempotencyConflict(Conflict):
    """The idempotency key was used for a different request.

    `job` is the number of the job of that request, `place` the index of this request in its batch.
    """

    def __init__(
        self, message: str | None = None, *, job: int | None = None, place: int | None = None
    ) -> None:
        super().__init__(message)
        self.job = job
        self.place = place


class LostRace(Conflict):
    """The job was changed by another process."""


class LeaseLost(Conflict):
    """The run no longer owns its job."""


class AnswerTimeout(DraftsmanError):
    """The question expired without an answer."""

    exit_code = 5


class DatabaseUnreachable(DraftsmanError):
    """The database cannot be reached."""

    exit_code = 6
    is_temporary = True

    @property
    def is_outage(self) -> bool:
        """Whether the database answers no statement now; a time limit is that of a statement."""
        return self.sqlstate != QUERY_CANCELED


class EmbeddedServerError(DatabaseUnreachable):
    """The embedded PostgreSQL could not be started."""


class SchemaOutdated(DatabaseUnreachable):
    """The database schema is not up to date."""


class Failure(DraftsmanError):
    """Work failed.

    Handlers and adapters raise it for a foreign error. `origin` names the adapter (`http`, `os`,
    `agent`, `chat`, `git`, …); `code` is the origin's error code (an errno name, an API's error
    string); `retry_after` is in seconds; `declared` is an error class that the origin sets, which
    `classify` uses; `program_exit` is the exit code of the failed program, stored with the run.
    Raises TypeError for an argument that could not be stored, where the mistake was made.
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
        hint: Hint | None = None,
    ) -> None:
        _check_text("origin", origin)
        _check_text("code", code, optional=True)
        _check_text("declared", declared, optional=True)
        _check_integer("http_status", http_status)
        _check_integer("program_exit", program_exit)
        if program_exit is not None and not -INT_MAX - 1 <= program_exit <= INT_MAX:
            raise TypeError(f"Failure: program_exit must have at most 32 bits, not {program_exit}")
        _check_seconds("retry_after", retry_after)
        super().__init__(message, hint=hint)
        self.origin = origin
        self.code = code
        self.http_status = http_status
        self.retry_after = retry_after
        self.declared = declared
        self.program_exit = program_exit


class NotOnThisWorker(Failure):
    """This worker lacks something that a job names, and another worker may have it.

    A job that needs it is retried without spending a retry: no worker decides for the others.
    """


def _check_text(name: str, value: object, *, optional: bool = False) -> None:
    if not (isinstance(value, str) or (optional and value is None)):
        raise TypeError(f"Failure: {name} must be a text, not {value!r:.100}")


def _check_integer(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise TypeError(f"Failure: {name} must be an integer, not {value!r:.100}")


def _check_seconds(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"Failure: {name} must be a number of seconds, not {value!r:.100}")
