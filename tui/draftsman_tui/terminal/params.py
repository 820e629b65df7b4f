"""Click parameter types of the command line.

Arguments are parsed before the database is opened, so errors in them are reported immediately.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import click

from draftsman.durations import MAX_DURATION, parse_duration, parse_instant
from draftsman.errors import UsageError
from draftsman.ids import JobRef, job_number, parse_job, parse_question
from draftsman.jobs.job import Status
from draftsman.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from click.shell_completion import CompletionItem

    from draftsman.ids import JobRef

    Param = click.ParamType[Any]
else:
    Param = click.ParamType  # older versions are generic only for the type checker

WAITING = "waiting"
"""Alias of both waiting statuses."""
PAUSED = "paused"
"""Name for jobs that are paused, whatever their status."""
Completed = Literal["job", "question", "agent", "repo"]
"""Kinds of values that the shell completes from the configuration or the database."""


class Completer(Protocol):
    """Object of the root context that knows values for completion."""

    def complete(self, kind: Completed) -> Sequence[tuple[str, str]]:
        """Return values with a description."""


def _completions(ctx: click.Context, kind: Completed, incomplete: str) -> list[CompletionItem]:
    """Return the values that start with a text in any case; `14` completes `D-142`, too."""
    from click.shell_completion import CompletionItem

    completer: Completer | None = ctx.find_root().obj
    values = () if completer is None else completer.complete(kind)
    if incomplete.isdigit():
        values = [(value.removeprefix("D-"), help) for value, help in values]
    return [
        CompletionItem(value, help=" ".join(help.split()) or None)
        for value, help in values
        if value.casefold().startswith(incomplete.casefold())
    ]


class JobParam(Param):
    """A job: `D-142`, `142`, an id or its prefix."""

    name = "job"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the newest jobs."""
        return _completions(ctx, "job", incomplete)

    def convert(self, value: Any, param: object, ctx: object) -> JobRef:
        """Parse the job; raises UsageError."""
        return value if isinstance(value, JobRef) else parse_job(str(value))


class JobOfParam(JobParam):
    """A job, or a question of it, for a command that changes nothing."""

    def convert(self, value: Any, param: object, ctx: object) -> JobRef:
        """Parse the job or question; raises UsageError."""
        return JOB_OR_QUESTION.convert(value, param, ctx)[0]


class ParentsParam(Param):
    """Jobs by number, separated by commas: `D-1,D-2`."""

    name = "jobs"

    def convert(self, value: Any, param: object, ctx: object) -> tuple[int, ...]:
        """Parse the jobs; raises UsageError."""
        if isinstance(value, tuple):
            return value
        numbers = []
        for text in str(value).split(","):
            if (number := job_number(text)) is None:
                shown = text.strip()[:60]
                raise UsageError(f"--after: {shown!r} is not a job; use D-142 or D-1,D-2")
            numbers.append(number)
        return tuple(numbers)


class QuestionParam(Param):
    """A question `D-142/2`; the ordinal of a bare job is None."""

    name = "question"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the open questions."""
        return _completions(ctx, "question", incomplete)

    def convert(self, value: Any, param: object, ctx: object) -> tuple[JobRef, int | None]:
        """Parse the question; raises UsageError."""
        return value if isinstance(value, tuple) else parse_question(str(value))


class JobOrQuestionParam(QuestionParam):
    """A job `D-142`, or a question of it; the ordinal of a job is None."""

    name = "job"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the jobs."""
        return _completions(ctx, "job", incomplete)

    def convert(self, value: Any, param: object, ctx: object) -> tuple[JobRef, int | None]:
        """Parse the job or question; raises UsageError."""
        text = str(value)
        if isinstance(value, tuple):
            return value
        name, slash, number = text.rpartition("/")
        if name and slash and number.isdecimal():
            return parse_question(text)
        return parse_job(text), None


class DurationParam(Param):
    """A duration such as `90s`, `10m`, `2h` or `1d`, in seconds."""

    name = "duration"

    def __init__(self, most: float = MAX_DURATION) -> None:
        self._most = most

    def convert(self, value: Any, param: object, ctx: object) -> float:
        """Parse the duration; raises UsageError."""
        if isinstance(value, float):
            return value
        return parse_duration(str(value), most=self._most)


class ExtensionParam(DurationParam):
    """A duration, or `never` for infinity."""

    def convert(self, value: Any, param: object, ctx: object) -> float:
        """Parse the duration; raises UsageError."""
        if str(value).strip().lower() == "never":
            return float("inf")
        try:
            return super().convert(value, param, ctx)
        except UsageError as error:
            raise UsageError(f"{error}, or never") from None


class InstantParam(Param):
    """An ISO 8601 time."""

    name = "time"

    def convert(self, value: Any, param: object, ctx: object) -> datetime:
        """Parse the time; raises UsageError."""
        return parse_instant(value) if isinstance(value, str) else value


class WordsParam(Param):
    """Names separated by commas."""

    name = "names"

    def convert(self, value: Any, param: object, ctx: object) -> tuple[str, ...]:
        """Split the names."""
        if isinstance(value, tuple):
            return value
        return tuple(word.strip() for word in clean(str(value)).split(",") if word.strip())


class StatusParam(Param):
    """Statuses separated by commas; `waiting` matches both waiting statuses.

    With `paused`, that name is allowed too: jobs of any status may be paused.
    """

    name = "status"

    def __init__(self, *, paused: bool = False) -> None:
        self._paused = paused

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last status."""
        from click.shell_completion import CompletionItem

        before, comma, last = incomplete.rpartition(",")
        names = (WAITING, *((PAUSED,) if self._paused else ()), *Status)
        return [CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(last)]

    def convert(self, value: Any, param: object, ctx: object) -> tuple[str, ...]:
        """Parse the statuses; raises UsageError with the allowed values."""
        if isinstance(value, tuple):
            return value
        statuses: list[str] = []
        for word in str(value).split(","):
            name = word.strip().lower().replace("-", "_").replace(" ", "_")
            if name == WAITING:
                statuses += [Status.WAITING_FOR_INPUT, Status.WAITING_FOR_APPROVAL]
            elif name in list(Status):
                statuses.append(Status(name))
            elif self._paused and name == PAUSED:
                statuses.append(PAUSED)
            else:
                paused = f"{PAUSED}, " if self._paused else ""
                raise UsageError(
                    f"unknown status {word.strip()!r}; available: {WAITING}, {paused}"
                    f"{', '.join(Status)}"
                )
        return tuple(statuses)


class TextParam(Param):
    """Text without characters that the database cannot store; `-` reads it from stdin."""

    name = "text"

    def __init__(self, *, stdin: bool = False) -> None:
        self._stdin = stdin

    def convert(self, value: Any, param: object, ctx: object) -> str:
        """Clean the text."""
        return read_stdin() if self._stdin and value == "-" else str(clean(str(value)))


class AgentParam(TextParam):
    """Name of an agent."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the configured agents."""
        return _completions(ctx, "agent", incomplete)


class RepoParam(TextParam):
    """Name, path or URL of a repository."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the registered repositories, and paths."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith((".", "/", "~")):
            return [CompletionItem(incomplete, type="dir")]
        return _completions(ctx, "repo", incomplete)


class JsonParam(Param):
    """A JSON object, or `@FILE`."""

    name = "json"

    def __init__(self, option: str = "--payload") -> None:
        self._option = option

    def convert(self, value: Any, param: object, ctx: object) -> dict[str, Any]:
        """Parse the object; raises UsageError."""
        if isinstance(value, dict):
            return value
        text = str(value)
        origin = self._option
        if text.startswith("@"):
            origin = text[1:]
            text = read_text(Path(origin))
        return json_object(text, origin)


class PairParam(Param):
    """A pair `key=value`; the value is parsed as JSON if possible, otherwise it is text."""

    name = "key=value"

    def convert(self, value: Any, param: object, ctx: object) -> tuple[str, Any]:
        """Parse the pair; raises UsageError."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{value!r} is not key=value; example: --override call_timeout=60")
        try:
            return clean(key.strip()), json.loads(text)
        except (ValueError, RecursionError):
            return clean(key.strip()), clean(text)


class TextPairParam(Param):
    """A pair `key=value`; the value is text."""

    name = "key=value"

    def convert(self, value: Any, param: object, ctx: object) -> tuple[str, str]:
        """Parse the pair; raises UsageError."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{value!r} is not key=value; example: --param days=7")
        return clean(key.strip()), clean(text)


def json_object(text: str, origin: str) -> dict[str, Any]:
    """Parse a JSON object; errors name the origin and the position."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno} column {error.colno}"
        raise UsageError(f"{origin}: invalid JSON at {position}: {error.msg}") from None
    except ValueError:
        raise UsageError(f"{origin}: number has too many digits; use a string") from None
    except RecursionError:
        raise UsageError(f"{origin}: nested too deeply") from None
    if not isinstance(data, dict):
        raise UsageError(f'{origin}: must be a JSON object, e.g. {{"key": "value"}}')
    return data


def read_text(path: Path) -> str:
    """Read a text file, or stdin for `-`; raises UsageError."""
    if str(path) == "-":
        return read_stdin()
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; use a readable file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text; convert the file to UTF-8") from None


def read_stdin() -> str:
    """Read stdin, replacing invalid UTF-8."""
    return str(clean(sys.stdin.buffer.read().decode("utf-8", "replace")))


JOB = JobParam()
JOB_OF = JobOfParam()
PARENTS = ParentsParam()
QUESTION = QuestionParam()
JOB_OR_QUESTION = JobOrQuestionParam()
DURATION = DurationParam()
REMINDER_DELAY = DurationParam(most=86_400.0)
EXTENSION = ExtensionParam()
INSTANT = InstantParam()
STATUS = StatusParam()
STATUS_OR_PAUSED = StatusParam(paused=True)
WORDS = WordsParam()
TEXT = TextParam()
AGENT = AgentParam()
REPO = RepoParam()
TEXT_OR_STDIN = TextParam(stdin=True)
JSON = JsonParam()
PAIR = PairParam()
TEXT_PAIR = TextPairParam()

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
"""The option of commands that ask before they destroy."""
