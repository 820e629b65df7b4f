"""Click parameter types of the command line.

Arguments are parsed before the database is opened, so errors in them are reported immediately.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import click

from draftsman.durations import parse_duration, parse_instant, parse_since
from draftsman.errors import UsageError
from draftsman.formats.near_names import near_or_all
from draftsman.ids import JobRef, job_number, parse_job, parse_jobs, parse_question
from draftsman.jobs.job import Status
from draftsman.jobs.status_display import named_statuses
from draftsman.text import clean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Param = click.ParamType[Any]
else:
    Param = click.ParamType  # older versions are generic only for the type checker

WAITING = "waiting"
"""Alias of both waiting statuses."""
PAUSED = "paused"
"""Name for jobs that are paused, whatever their status."""
Completed = Literal["job", "question", "agent", "repo", "type"]
"""Kinds of values that the shell completes from the configuration or the database."""


Option = Callable[[Any], Any]
"""A decorator that adds parameters to a command."""


class Completer(Protocol):
    """Object of the root context that knows values for completion."""

    def complete(self, kind: Completed) -> Sequence[tuple[str, str]]:
        """Return values with a description."""


Complete = Callable[[click.Context, str], "list[CompletionItem]"]
"""Returns the completions of an incomplete text."""


class Parsed(Param):
    """A value that a function parses from its text; it raises UsageError."""

    def __init__(
        self, name: str, parse: Callable[[str], Any], complete: Complete = lambda *_: []
    ) -> None:
        self.name = name
        self._parse = parse
        self._complete = complete

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the value."""
        return self._complete(ctx, incomplete)

    def convert(self, value: Any, param: object = None, ctx: object = None) -> Any:
        """Parse a text; other values, such as a default, are parsed already."""
        return self._parse(value) if isinstance(value, str) else value


def _stored(kind: Completed) -> Complete:
    """Complete values that start with a text in any case; `14` completes `D-142`, too."""

    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
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

    return complete


def last_word(words: Mapping[str, str | None]) -> Complete:
    """Complete the last of several names that commas separate; `words` have their descriptions."""

    def complete(_: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        before, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(f"{before}{comma}{word}", help=help)
            for word, help in words.items()
            if word.startswith(last)
        ]

    return complete


def _complete_repo(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete the registered repositories, and paths."""
    from click.shell_completion import CompletionItem

    if incomplete.startswith((".", "/", "~")):
        return [CompletionItem(incomplete, type="dir")]
    return _stored("repo")(ctx, incomplete)


def _parents(text: str) -> tuple[int, ...]:
    """Parse jobs by number, separated by commas."""
    numbers = []
    for name in text.split(","):
        if (number := job_number(name)) is None:
            shown = name.strip()[:60]
            raise UsageError(f"--after: {shown!r} is not a job; use D-142 or D-1,D-2")
        numbers.append(number)
    return tuple(numbers)


def _job_or_question(text: str) -> tuple[JobRef, int | None]:
    """Parse a job, or a question of it; the ordinal of a job is None."""
    name, slash, number = text.rpartition("/")
    if name and slash and number.isdecimal():
        return parse_question(text)
    return parse_job(text), None


def _extension(text: str) -> float:
    """Parse a duration, or `never` for infinity."""
    if text.strip().lower() == "never":
        return float("inf")
    try:
        return parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{error}, or never") from None


def words(text: str) -> tuple[str, ...]:
    """Split names that commas separate."""
    return tuple(word.strip() for word in clean(text).split(",") if word.strip())


def _statuses(names: Sequence[str], text: str) -> tuple[str, ...]:
    """Parse statuses that commas separate, also by the other words of filters."""
    statuses: list[str] = []
    for word in text.split(","):
        name = word.strip().lower().replace("-", "_").replace(" ", "_")
        if not (named := named_statuses(name, names)):
            known = near_or_all(name, (WAITING, *names), "available", 2)
            raise UsageError(f"unknown status {word.strip()!r}{known}")
        statuses += [name if name == PAUSED else Status(name) for name in named]
    return tuple(statuses)


def _status(*others: str) -> Parsed:
    """Return the type of statuses and `others`."""
    names = (*others, *Status)
    return Parsed("status", partial(_statuses, names), last_word(dict.fromkeys((WAITING, *names))))


def _text(text: str) -> str:
    """Remove characters that the database cannot store."""
    return str(clean(text))


def _json(option: str, text: str) -> dict[str, Any]:
    """Parse a JSON object, or `@FILE`."""
    if not text.startswith("@"):
        return json_object(text, option)
    return json_object(read_text(Path(text[1:])), text[1:])


def json_param(option: str) -> Parsed:
    """Return the type of the JSON object of an option."""
    return Parsed("json", partial(_json, option))


def _text_pair(example: str, text: str) -> tuple[str, str]:
    """Parse a pair `key=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{text!r} is not key=value; example: {example}")
    return clean(key.strip()), clean(value)


def pair(text: str) -> tuple[str, Any]:
    """Parse a pair `key=value`; the value is parsed as JSON if possible, otherwise it is text."""
    key, value = _text_pair("--override call_timeout=60", text)
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


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


JOB = Parsed("job", parse_job, _stored("job"))
"""A job: `D-142`, `142`, an id or its prefix."""
JOB_OF = Parsed("job", lambda text: _job_or_question(text)[0], _stored("job"))
"""A job, or a question of it, for a command that changes nothing."""
JOBS = Parsed("jobs", parse_jobs, _stored("job"))
PARENTS = Parsed("jobs", _parents)
QUESTION = Parsed("question", parse_question, _stored("question"))
"""A question `D-142/2`; the ordinal of a bare job is None."""
JOB_OR_QUESTION = Parsed("job", _job_or_question, _stored("job"))
DURATION = Parsed("duration", parse_duration)
"""A duration such as `90s`, `10m`, `2h` or `1d`, in seconds."""
REMINDER_DELAY = Parsed("duration", partial(parse_duration, most=86_400.0))
EXTENSION = Parsed("duration", _extension)
INSTANT = Parsed("time", parse_instant)
"""An ISO 8601 time, or such as `tomorrow 9:00`."""
SINCE = Parsed("time", parse_since)
"""A duration or a time in the past, as the seconds since then."""
STATUS = _status()
STATUS_OR_PAUSED = _status(PAUSED)
"""A status, or that of jobs that are paused, whatever their status."""
PRIORITY = click.IntRange(-1000, 1000)
"""The priority of a job: higher numbers run first."""
PORT = click.IntRange(0, 65_535)
"""A TCP port; 0: any free port."""
ROW = click.IntRange(1, 2**63 - 1)
"""The number of a row, such as that of a rule."""
COUNT = click.IntRange(1, 2**31 - 1)
"""A number of rows, or of a version."""
LINES = click.IntRange(0, 2**31 - 1)
"""A number of lines, or none."""
TEXT = Parsed("text", _text)
AGENT = Parsed("text", _text, _stored("agent"))
REPO = Parsed("text", _text, _complete_repo)
"""Name, path or URL of a repository."""
JOB_TYPE = Parsed("text", _text, _stored("type"))
TEXT_OR_STDIN = Parsed("text", lambda text: read_stdin() if text == "-" else _text(text))
JSON = json_param("--payload")
PAIR = Parsed("key=value", pair)
TEXT_PAIR = Parsed("key=value", partial(_text_pair, "--param days=7"))


def together(*options: Option) -> Option:
    """Return a decorator that adds several parameters to a command, in this order."""

    def add(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def duration_argument(metavar: str, type: Param, *, required: bool = False) -> Option:
    """Return the argument `duration`, which may have blanks: `2h`, `1 h 30 min`."""

    def parse(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> Any:
        return type.convert(" ".join(words), param, ctx) if words else None

    return click.argument(
        "duration", metavar=metavar, nargs=-1, type=TEXT, required=required, callback=parse
    )


def jobs_argument(*, required: bool = False) -> Option:
    """Return the argument `jobs`: several of them, and ranges such as `D-10..D-20`."""
    return click.argument(
        "jobs",
        metavar="JOB..." if required else "[JOB...]",
        nargs=-1,
        required=required,
        type=JOBS,
        callback=lambda _, __, groups: tuple(job for group in groups for job in group),
    )


def period_options(rows: str, since: str = "", **more: Any) -> Option:
    """Return the options `--since` and `--until` for the time of rows.

    `since` is the help of the first, if it is not the usual one.
    """
    usual = f"{rows} since then: 2h, 2026-11-30, yesterday 9:00."
    return together(
        click.option("--since", type=SINCE, help=since or usual, **more),
        click.option("--until", type=SINCE, help="Until then, in the same forms as --since."),
    )


def check_period(since: float | None, until: float | None) -> None:
    """Raise UsageError for a period that ends before it begins."""
    if since and until and until >= since:
        raise UsageError("--until has to be later than --since; exchange them")


def period(since: float | None, until: float | None) -> tuple[datetime | None, datetime | None]:
    """Return the times of a period, given in seconds before now; raises UsageError."""
    check_period(since, until)
    now = datetime.now(UTC)
    first, last = (now - timedelta(seconds=age) if age else None for age in (since, until))
    return first, last


def limit_option(rows: str, default: int = 50, most: int = 1000) -> Option:
    """Return the option for the number of rows to list."""
    return click.option(
        "--limit",
        type=click.IntRange(1, most),
        metavar="N",
        default=default,
        show_default=True,
        help=f"Maximum number of {rows} to list.",
    )


class TargetOption(click.Option):
    """An option whose help has the notations of the channels that are installed."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names and the help of the option."""
        from draftsman.channels.targets import target_forms

        record = super().get_help_record(ctx)
        return None if record is None else (record[0], f"{record[1]}: {target_forms()}.")


def notify_option(purpose: str) -> Option:
    """Return the option for the targets of messages."""
    return click.option(
        "--notify",
        type=TEXT,
        multiple=True,
        metavar="TARGET",
        cls=TargetOption,
        help=f"{purpose}; repeatable",
    )


yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
"""The option of commands that ask before they destroy."""
