"""Every error that draftsman raises on purpose.

Each message is one line: what was wrong, what is allowed, what to do. The exit code is what a
command ends with when the error reaches it.

    DraftsmanError                1  refused, or it did not work
    ├── UsageError                2  an argument or a request that cannot be meant
    │   └── ConfigError           2  a wrong key or value in the configuration
    ├── NotFound                  3  no such job, question, run, artifact, worker
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
    └── Failure                   1  work failed; `draftsman.domain.classify` says what follows
"""

from __future__ import annotations

from typing import ClassVar


class DraftsmanError(Exception):
    """It did not work."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__ or type(self).__name__)


class UsageError(DraftsmanError):
    """This argument or request cannot be meant."""

    exit_code = 2


class ConfigError(UsageError):
    """The configuration has a wrong key or value."""


class NotFound(DraftsmanError):
    """There is no such thing."""

    exit_code = 3


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
    """This key was used for another request."""


class LostRace(Conflict):
    """The job moved on in the meantime."""


class LeaseLost(Conflict):
    """This run no longer owns its job."""


class NobodyAnswered(DraftsmanError):
    """Nobody answered in time."""

    exit_code = 5


class DatabaseUnreachable(DraftsmanError):
    """The database cannot be reached."""

    exit_code = 6


class EmbeddedServerError(DatabaseUnreachable):
    """The embedded PostgreSQL cannot be started."""


class SchemaOutdated(DatabaseUnreachable):
    """The database schema is not the one this version needs; run: draftsman migrate."""


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
