"""What the form of a new job asks, and what is typed there read as a request. Pure.

Each field is read, and checked, as `draftsman submit` does with its option of that name.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from draftsman.domain.job import Job, Mode, OnLost
from draftsman.domain.messages.target import parse
from draftsman.domain.repos.repo_catalog import Catalog
from draftsman.domain.repos.repo_url import is_repo_url
from draftsman.domain.text import first_line
from draftsman.errors import FieldError, UsageError
from draftsman.services.jobs.submissions import invocation
from draftsman_tui.common import params, times
from draftsman_tui.common.job_request import AGENT_TYPE

_OWN: Final = ("value_error", "assertion_error")
"""Rules, by pydantic's names, that a validator of ours words for people."""
Typed = Mapping[str, str]
"""What stands in each field."""


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the form. `read` makes of its text what an Invocation takes."""

    name: str
    label: str
    hint: str
    read: Callable[[str], dict[str, Any]]
    more: bool = True
    either: tuple[str, ...] = ()
    """What alone it may be; the first where nothing is chosen."""
    several: bool = False
    """Whether it has words of which each is completed."""
    allowed: str = ""
    """What may stand there, where what core says of it is a rule for programs."""


class Errors(UsageError):
    """Something typed cannot be meant: what is wrong, beside which field; '' is beside none."""

    def __init__(self, beside: Mapping[str, str]) -> None:
        super().__init__("; ".join(beside.values()))
        self.beside = beside


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
    named = tuple(text.replace(",", " ").split())
    for one in named:
        if one != "none":
            parse(one)
    return {"notify": named}


def _when(text: str) -> dict[str, Any]:
    try:
        return {"delay": times.parse_duration(text)}
    except times.OutOfRange:
        raise
    except UsageError:
        pass
    try:
        return {"run_at": times.parse_instant(text)}
    except UsageError:
        said = f"{text[:40]!r} is no time; give 10m, 2h, 1d, or 2030-12-31T18:00"
        raise UsageError(said) from None


def _overrides(text: str) -> dict[str, Any]:
    try:
        pairs = shlex.split(text)
    except ValueError:
        raise UsageError("a quotation mark is not closed") from None
    return {"overrides": dict(params.PAIR.convert(pair, None, None) for pair in pairs)}


def _timeout(text: str) -> dict[str, Any]:
    return {"overrides": {"timeout": times.parse_duration(text)}}


def _payload(text: str) -> dict[str, Any]:
    return {"payload": params.json_object(text, "the payload")}


FIELDS: Final = (
    Field("text", "What", "what is to be done; ctrl+j: a new line", _plain("text"), more=False),
    Field("repo", "Repo", "known name, URL or path; none: the job asks", _plain("repo"),
          more=False),
    Field("agent", "Agent", "none: that of the repository, or the only one", _plain("agent"),
          more=False),
    Field("mode", "Mode", "investigate looks, and changes nothing", _plain("mode"), more=False,
          either=tuple(str(mode) for mode in reversed(Mode))),
    Field("title", "Title", "none: the first line of what is to be done", _plain("title")),
    Field("ref", "Ref", "branch, tag or commit to start from", _plain("ref")),
    Field("tags", "Tags", "words: urgent billing", _words("tags"), several=True),
    Field("notify", "Notify", "log  webhook:NAME  slack:CHANNEL  trello:CARD  none", _notify,
          several=True),
    Field("when", "Not before", "10m, 2h, 1d, or 2030-12-31T18:00", _when,
          allowed="in 366 days at the latest"),
    Field("priority", "Priority", "-1000 to 1000; higher runs first", _number("priority"),
          allowed="a whole number from -1000 to 1000"),
    Field("run_timeout", "Run time", "running time in all: 10m, 2h", _timeout),
    Field("max_retries", "Retries", "failures of the work it survives", _number("max_retries"),
          allowed="a whole number from 0 to 100"),
    Field("max_attempts", "Attempts", "lost runs and failures of machines it survives",
          _number("max_attempts"), allowed="a whole number from 0 to 100"),
    Field("on_lost", "On lost", "when its worker dies", _plain("on_lost"),
          either=("default", *(str(one) for one in OnLost))),
    Field("skills", "Skills", "skills it asks for", _words("skills"), several=True),
    Field("subject_key", "Subject", "what it is about; a live job of it is joined",
          _plain("subject_key")),
    Field("queue", "Queue", "none: default", _plain("queue")),
    Field("overrides", "Overrides", "key=value …", _overrides),
    Field("type", "Type", "none: run_agent", _plain("type")),
    Field("payload", "Payload", '{"key": "value"}', _payload),
)  # fmt: skip
BY_NAME: Final = {field.name: field for field in FIELDS}


def hints(catalog: Catalog) -> dict[str, str]:
    """Return what stands in an empty field, where that depends on what is known."""
    if not catalog.repos:
        return {"repo": "path or URL of a git repository"}
    named = next((repo.full_name for repo in catalog.repos if repo.is_default), None)
    return {"repo": f"known name, URL or path; none: {named}"} if named else {}


def read(typed: Typed) -> dict[str, Any]:
    """Return the fields of the Invocation; raises Errors with all that is wrong."""
    found, wrong = partition(typed)
    if wrong:
        raise Errors(wrong)
    return found


def partition(typed: Typed) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields of the Invocation that can be meant, and what is wrong with the others."""
    found: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for field in FIELDS:
        text = typed.get(field.name, "").strip()
        if not text or text == next(iter(field.either), None):
            continue
        try:
            value = field.read(text)
        except UsageError as error:
            wrong[field.name] = str(error)
            continue
        try:
            invocation(**value)
        except FieldError as error:
            wrong[field.name] = _worded(field, error)
            continue
        except UsageError as error:
            wrong[field.name] = str(error)
            continue
        found |= _merged(found, value)
    return found, wrong


def _worded(field: Field, error: FieldError) -> str:
    """Return what is wrong with a value, without the field's name, which stands beside it."""
    is_bound = error.rule not in _OWN
    return f"allowed: {field.allowed}" if field.allowed and is_bound else error.problem


def of_job(job: Job) -> dict[str, str]:
    """Return what would be typed to ask for the same once more."""
    payload = dict(job.payload)
    place = payload.pop("repo", None) or {}
    payload.pop("labels", None)
    overrides = {key: value for key, value in job.overrides.items() if key != "answers"}
    timeout = overrides.pop("timeout", None)
    source, path = place.get("source") or "", place.get("path")
    typed = {
        "text": job.ticket_text or "",
        "repo": f"{job.repo}//{path}" if path and job.repo else source,
        "agent": job.agent or "",
        "mode": str(job.mode),
        "title": _own_title(job),
        "ref": place.get("ref") or "",
        "tags": " ".join(job.tags),
        "priority": str(job.priority or ""),
        "run_timeout": f"{timeout:g}s" if isinstance(timeout, int | float) else "",
        "skills": " ".join(job.requested_skills),
        "queue": "" if job.queue == "default" else job.queue,
        "overrides": " ".join(
            shlex.quote(f"{key}={json.dumps(value)}") for key, value in overrides.items()
        ),
        "type": "" if job.type == AGENT_TYPE else job.type,
        "payload": json.dumps(payload, ensure_ascii=False) if payload else "",
    }
    return {name: text for name, text in typed.items() if text}


def of_line(text: str, catalog: Catalog) -> dict[str, str]:
    """Read `fix acme/pay "Tidy the stock"`: a mode and a repository, where they are, and the rest.

    Raises UsageError.
    """
    try:
        tokens = shlex.split(text)
    except ValueError:
        raise UsageError("a quotation mark is not closed; close it, or leave it out") from None
    typed: dict[str, str] = {}
    if tokens and tokens[0] in set(Mode):
        typed["mode"] = tokens.pop(0)
    if tokens and _is_repo(tokens[0], catalog):
        typed["repo"] = tokens.pop(0)
    if tokens:
        typed["text"] = " ".join(tokens)
    return typed


def _is_repo(word: str, catalog: Catalog) -> bool:
    return " " not in word and (is_repo_url(word) or bool(catalog.named(word)))


def _merged(found: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value, with what an earlier field said of the same, which counts."""
    return {
        key: {**one, **found[key]} if isinstance(one, dict) and key in found else one
        for key, one in value.items()
    }


def _own_title(job: Job) -> str:
    title = job.ticket_title or ""
    return "" if job.ticket_text and title == first_line(job.ticket_text) else title
