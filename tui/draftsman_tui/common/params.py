"""Kinds of arguments: each reads what a person types, or says in one line what is allowed.

They are read before a database is opened, so that a typing error is told at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.job import Status
from draftsman.domain.text import clean
from draftsman.errors import UsageError
from draftsman_tui.common import times

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.domain.ids import JobRef

    Param = click.ParamType[Any]
else:
    Param = click.ParamType  # generic for the type checker alone, in older versions

WAITING = "waiting"
"""Stands for both statuses that wait for a person."""


class JobParam(Param):
    """`D-142`, `142`, an id or its prefix."""

    name = "job"

    def convert(self, value: Any, param: object, ctx: object) -> JobRef:
        """Read it; raises UsageError."""
        from draftsman.domain.ids import JobRef, parse_job

        return value if isinstance(value, JobRef) else parse_job(str(value))


class QuestionParam(Param):
    """`D-142/2`; a bare job has no number, which is None then."""

    name = "question"

    def convert(self, value: Any, param: object, ctx: object) -> tuple[JobRef, int | None]:
        """Read it; raises UsageError."""
        from draftsman.domain.ids import parse_question

        return value if isinstance(value, tuple) else parse_question(str(value))


class DurationParam(Param):
    """`90s`, `10m`, `2h`, `1d` in seconds."""

    name = "duration"

    def convert(self, value: Any, param: object, ctx: object) -> float:
        """Read it; raises UsageError."""
        return value if isinstance(value, float) else times.parse_duration(str(value))


class ExtensionParam(DurationParam):
    """A duration, or `never`, which is infinity."""

    def convert(self, value: Any, param: object, ctx: object) -> float:
        """Read it; raises UsageError."""
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
        """Read it; raises UsageError."""
        return times.parse_instant(value) if isinstance(value, str) else value


class StatusParam(Param):
    """Statuses, with commas between them; `waiting` is both kinds of it."""

    name = "status"

    def convert(self, value: Any, param: object, ctx: object) -> tuple[Status, ...]:
        """Read them; raises UsageError with all that there are."""
        if isinstance(value, tuple):
            return value
        found: list[Status] = []
        for word in str(value).split(","):
            wanted = word.strip().lower().replace("-", "_").replace(" ", "_")
            if wanted == WAITING:
                found += [Status.WAITING_FOR_INPUT, Status.WAITING_FOR_APPROVAL]
            elif wanted in list(Status):
                found.append(Status(wanted))
            else:
                raise UsageError(
                    f"{word.strip()!r} is not a status; choose: {WAITING}, {', '.join(Status)}"
                )
        return tuple(found)


class TextParam(Param):
    """Text without what the database cannot keep; `-` reads it from stdin."""

    name = "text"

    def __init__(self, *, stdin: bool = False) -> None:
        self._stdin = stdin

    def convert(self, value: Any, param: object, ctx: object) -> str:
        """Read it."""
        return read_stdin() if self._stdin and value == "-" else str(clean(str(value)))


class JsonParam(Param):
    """A JSON object, or `@file` that holds one."""

    name = "json"

    def convert(self, value: Any, param: object, ctx: object) -> dict[str, Any]:
        """Read it; raises UsageError."""
        if isinstance(value, dict):
            return value
        text, origin = str(value), "--payload"
        if text.startswith("@"):
            origin = text[1:]
            text = read_text(Path(origin))
        return json_object(text, origin)


class PairParam(Param):
    """`key=value`; the value is read as JSON where it is, else taken as text."""

    name = "key=value"

    def convert(self, value: Any, param: object, ctx: object) -> tuple[str, Any]:
        """Read it; raises UsageError."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{value!r} is not key=value; give it as --override max_iterations=3")
        try:
            return clean(key.strip()), json.loads(text)
        except (ValueError, RecursionError):
            return clean(key.strip()), clean(text)


def json_object(text: str, origin: str) -> dict[str, Any]:
    """Read a JSON object; raises UsageError that names the origin and the place."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno} column {error.colno}"
        raise UsageError(f"{origin}: not JSON at {at}: {error.msg}") from None
    except ValueError:
        raise UsageError(f"{origin}: a number has too many digits; give it as text") from None
    except RecursionError:
        raise UsageError(f"{origin}: nested too deeply; flatten it") from None
    if not isinstance(found, dict):
        raise UsageError(f'{origin}: not a JSON object; give one such as {{"key": "value"}}')
    return found


def read_text(path: Path) -> str:
    """Return a file's text, or stdin's for `-`; raises UsageError."""
    if str(path) == "-":
        return read_stdin()
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give a file that can be read") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text; save it as such") from None


def read_stdin() -> str:
    """Return all of stdin; what is not UTF-8 in it is replaced."""
    return str(clean(sys.stdin.buffer.read().decode("utf-8", "replace")))


JOB = JobParam()
QUESTION = QuestionParam()
DURATION = DurationParam()
EXTENSION = ExtensionParam()
INSTANT = InstantParam()
STATUS = StatusParam()
TEXT = TextParam()
TEXT_OR_STDIN = TextParam(stdin=True)
JSON = JsonParam()
PAIR = PairParam()
