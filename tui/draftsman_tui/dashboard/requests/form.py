"""Form of a new job: its fields, and their conversion to a request.

Each field is parsed and validated like the option of `draftsman submit` with its name.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from draftsman.deliveries.target import parse
from draftsman.durations import NoUnit, OutOfRange, parse_duration, parse_instant
from draftsman.errors import FieldError, UsageError
from draftsman.jobs.job import AGENT_TYPE, Job, Mode, OnLost
from draftsman.jobs.requests.invocation import PAYLOAD_VERSION
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.uncommitted_changes import FIELD as CHANGES
from draftsman.repos.repo_catalog import Catalog
from draftsman.repos.repo_url import is_repo_url
from draftsman.text import first_line
from draftsman_tui.terminal import params

_CUSTOM_RULES: Final = ("value_error", "assertion_error")
"""Pydantic's names of the rules whose messages come from this project's validators."""
Typed = Mapping[str, str]
"""Text by field name."""


@dataclass(frozen=True, slots=True)
class Field:
    """A form field. `read` converts its text to fields of an Invocation."""

    name: str
    label: str
    hint: str
    read: Callable[[str], dict[str, Any]]
    is_main: bool = False
    """Whether it is always shown."""
    choices: tuple[str, ...] = ()
    """The only allowed values; the first is the default."""
    multiple: bool = False
    """Whether it takes multiple words, each of which is completed."""
    allowed: str = ""
    """Allowed values in words, in place of the schema's message."""


class FormErrors(UsageError):
    """Problems by field name; '' has the problem of the whole form."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(problems.values()))
        self.problems = problems


def _plain(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {name: text}


def _words(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {name: tuple(text.replace(",", " ").split())}


def _number(name: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        try:
            return {name: int(text)}
        except ValueError:
            raise UsageError(f"{text[:20]!r} is not a whole number") from None

    return read


def _notify(text: str) -> dict[str, Any]:
    names = tuple(text.replace(",", " ").split())
    for target in names:
        if target != "none":
            parse(target)
    return {"notify": names}


def _when(text: str) -> dict[str, Any]:
    try:
        return {"delay": parse_duration(text)}
    except (NoUnit, OutOfRange):
        raise
    except UsageError:
        pass
    try:
        return {"run_at": parse_instant(text)}
    except UsageError:
        problem = f"invalid time {text[:40]!r}; examples: 10m, 2h, 1d, 2030-12-31T18:00"
        raise UsageError(problem) from None


def _overrides(text: str) -> dict[str, Any]:
    try:
        pairs = shlex.split(text)
    except ValueError:
        raise UsageError("missing closing quote") from None
    return {"overrides": dict(map(params.pair, pairs))}


FIELDS: Final = (
    Field("text", "Task", "instructions; ctrl+j: new line", _plain("text"), is_main=True),
    Field("repo", "Repo", "registered name, URL or path; (the job asks)", _plain("repo"),
          is_main=True),
    Field("agent", "Agent", "(repository's default)", _plain("agent"),
          is_main=True),
    Field("mode", "Mode", "investigate makes no changes", _plain("mode"), is_main=True,
          choices=tuple(str(mode) for mode in reversed(Mode))),
    Field("title", "Title", "(first line of the task)", _plain("title")),
    Field("ref", "Ref", "branch, tag or commit to start from", _plain("ref")),
    Field("tags", "Tags", "for example: urgent billing", _words("tags"), multiple=True),
    Field("notify", "Notify", "log  webhook:NAME  slack:CHANNEL  trello:CARD  none", _notify,
          multiple=True),
    Field("when", "Not before", "10m, 2h, 1d, or 2030-12-31T18:00", _when,
          allowed="at most 366 days from now"),
    Field("priority", "Priority", "-1000 to 1000; higher runs first", _number("priority"),
          allowed="a whole number from -1000 to 1000"),
    Field("run_timeout", "Run time", "total run time: 10m, 2h",
          lambda text: {"overrides": {"timeout": parse_duration(text)}}),
    Field("max_retries", "Retries", "retries after the job's own errors", _number("max_retries"),
          allowed="a whole number from 0 to 100"),
    Field("max_attempts", "Attempts", "runs that may be lost or fail by the infrastructure",
          _number("max_attempts"), allowed="a whole number from 1 to 100"),
    Field("on_lost", "On lost", "when the worker is lost", _plain("on_lost"),
          choices=("default", *(str(policy) for policy in OnLost))),
    Field("skills", "Skills", "skills to request", _words("skills"), multiple=True),
    Field("subject_key", "Subject", "joins a live job with the same subject",
          _plain("subject_key")),
    Field("unique", "Unique for", "joins an equal job of this time: 1h, 1d",
          lambda text: {"unique": {"seconds": parse_duration(text)}}),
    Field("concurrency_key", "Concurrency", "one job with this key at a time",
          _plain("concurrency_key")),
    Field("queue", "Queue", "(default)", _plain("queue")),
    Field("overrides", "Overrides", "key=value …", _overrides),
    Field("type", "Type", "(run_agent)", _plain("type")),
    Field("payload", "Payload", '{"key": "value"}',
          lambda text: {"payload": params.json_object(text, "the payload")}),
)  # fmt: skip
BY_NAME: Final = {field.name: field for field in FIELDS}


def hints(catalog: Catalog) -> dict[str, str]:
    """Return placeholders that depend on the repository catalog."""
    if not catalog.repos:
        return {"repo": "path or URL of a git repository"}
    default = next((repo.full_name for repo in catalog.repos if repo.is_default), None)
    return {"repo": f"registered name, URL or path; ({default})"} if default else {}


def read(typed: Typed) -> dict[str, Any]:
    """Return the fields of the Invocation; raises FormErrors with every problem."""
    fields, problems = partition(typed)
    if problems:
        raise FormErrors(problems)
    return fields


def partition(typed: Typed) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the valid fields of the Invocation, and the problems of the others."""
    fields: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for field in FIELDS:
        text = typed.get(field.name, "").strip()
        if not text or text == next(iter(field.choices), None):
            continue
        try:
            field_values = field.read(text)
        except UsageError as error:
            problems[field.name] = str(error)
            continue
        try:
            invocation(**field_values)
        except FieldError as error:
            problems[field.name] = _problem_text(field, error)
            continue
        except UsageError as error:
            problems[field.name] = str(error)
            continue
        fields |= _merge(fields, field_values)
    return fields, problems


def _problem_text(field: Field, error: FieldError) -> str:
    is_bound = error.rule not in _CUSTOM_RULES
    return f"allowed: {field.allowed}" if field.allowed and is_bound else error.problem


def from_job(job: Job) -> dict[str, str]:
    """Return the form that submits a copy of the job."""
    payload = dict(job.payload)
    repo = payload.pop("repo", None) or {}
    for name in ("labels", CHANGES):
        payload.pop(name, None)
    kept_elsewhere = ("answers", PAYLOAD_VERSION)
    overrides = {key: value for key, value in job.overrides.items() if key not in kept_elsewhere}
    timeout = overrides.pop("timeout", None)
    notify = overrides.pop("notify", "")
    source = repo.get("source") or ""
    path = repo.get("path")
    asked = job.request
    repo_name = asked and asked.repo
    typed = {
        "text": (asked and asked.text) or "",
        "repo": f"{repo_name}//{path}" if path and repo_name else source,
        "agent": (asked and asked.agent) or "",
        "mode": str(asked.mode) if asked else "",
        "title": _own_title(job),
        "ref": repo.get("ref") or "",
        "tags": " ".join(job.tags),
        "notify": notify,
        "priority": str(job.priority or ""),
        "run_timeout": f"{timeout:g}s" if isinstance(timeout, int | float) else "",
        "skills": " ".join(asked.skills) if asked else "",
        "queue": "" if job.queue == "default" else job.queue,
        "overrides": " ".join(
            shlex.quote(f"{key}={json.dumps(value)}") for key, value in overrides.items()
        ),
        "type": "" if job.type == AGENT_TYPE else job.type,
        "payload": json.dumps(payload, ensure_ascii=False) if payload else "",
    }
    return {name: text for name, text in typed.items() if text}


def from_line(text: str, catalog: Catalog) -> dict[str, str]:
    """Parse `fix acme/pay "Tidy the stock"`: optional mode, optional repository, task.

    Raises UsageError.
    """
    try:
        tokens = shlex.split(text)
    except ValueError:
        raise UsageError("missing closing quote; close or remove it") from None
    typed: dict[str, str] = {}
    if tokens and tokens[0] in set(Mode):
        typed["mode"] = tokens.pop(0)
    if tokens and _is_repo(tokens[0], catalog):
        typed["repo"] = tokens.pop(0)
    if tokens:
        typed["text"] = " ".join(tokens)
    return typed


def _is_repo(word: str, catalog: Catalog) -> bool:
    return " " not in word and (is_repo_url(word) or bool(catalog.find_by_name(word)))


def _merge(fields: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested objects; an earlier field wins."""
    return {
        name: {**value, **fields[name]} if isinstance(value, dict) and name in fields else value
        for name, value in new.items()
    }


def _own_title(job: Job) -> str:
    title = job.own_title or ""
    text = job.request and job.request.text
    return "" if text and title == first_line(text) else title
