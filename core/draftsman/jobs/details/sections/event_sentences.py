"""What people read of an event: a sentence of its kind, filled with its values. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from draftsman.events.event import Event
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.truncation import truncate
from draftsman.ids import is_machine, job_name, question_name, run_text
from draftsman.jobs.details.sections.section import Line, LineSpan, Reader, flat, name
from draftsman.jobs.event_kinds import AGENT_KIND, EVENTS
from draftsman.jobs.job import Status
from draftsman.jobs.retries import ErrorClass, next_try_text
from draftsman.jobs.status_display import Meaning, display_of
from draftsman.questions.question import CHANGES_REQUESTED, needed_answers
from draftsman.questions.review_comment import comments_of, request_text
from draftsman.text import capitalized, humanize, is_link
from draftsman.value_format import network_text, usage_lines

MAX_VALUE_LENGTH: Final = 160
"""Maximum number of characters of a value; the details have all of it."""
MAX_DEPTH: Final = 3
"""Levels of a value of another kind that are words; deeper values are left out."""
SHORT_COMMIT: Final = 12
"""Characters of a commit."""
UNKNOWN: Final = "?"
"""A value that a sentence needs and its event does not have."""
_PART: Final = re.compile(r"\[([^\]]*)\]|([^\[]+)")
_VALUE: Final = re.compile(r"\{(\w+)\}")
_AGENT_SENTENCES: Final = frozenset({"command_executed", "validation_ran"})
"""Kinds whose events of an agent have the same payload as those of draftsman."""
_CALM: Final = frozenset({Meaning.PENDING, Meaning.ACTIVE})
"""Meanings of a new status that are no news."""


@dataclass(frozen=True, slots=True)
class _Told:
    """An event, and the reader of its sentence."""

    event: Event
    reader: Reader

    @property
    def payload(self) -> dict[str, Any]:
        return self.event.payload

    def words(self, key: str) -> str:
        return truncate(_words(self.payload.get(key)), MAX_VALUE_LENGTH)

    def people(self, value: object) -> Line:
        """Return the names of people or accounts, separated by commas."""
        items = value if isinstance(value, list) else [value]
        spans = [span for item in items if item for span in (", ", self._person(str(item)))]
        return tuple(spans[1:])

    def _person(self, actor: str) -> LineSpan:
        return LineSpan(flat(self.reader.name_of(actor)), is_name=not is_machine(actor))

    def span(self, key: str) -> str:
        seconds = self.payload.get(key)
        return times.span(seconds) if isinstance(seconds, int | float) else ""


def event_sentence(event: Event, reader: Reader) -> Line:
    """Return what happened, as a sentence without a full stop.

    A handler and an agent may write other kinds: their sentence is the kind, and its values.
    """
    told = _Told(event, reader)
    kind = event.kind.removeprefix(AGENT_KIND)
    by_agent = kind != event.kind
    if event.kind in EVENTS:
        line = _filled(EVENTS[event.kind].sentence, told)
    elif by_agent and kind in _AGENT_SENTENCES:
        line = ("The agent: ", *_filled(EVENTS[kind].sentence, told))
    else:
        values = truncate(_words(event.payload), MAX_VALUE_LENGTH)
        label = f"The agent: {humanize(kind)}" if by_agent else capitalized(humanize(flat(kind)))
        line = (f"{label}: {values}" if values else label,)
    return _colored(_with_capital(line), event)


def _filled(sentence: str, told: _Told) -> Line:
    spans: list[LineSpan | str] = []
    for optional, required in _PART.findall(sentence):
        line = tuple(_values(optional or required, told))
        if required or "" not in line:
            spans += (span or UNKNOWN for span in line)
    return tuple(spans)


def _values(part: str, told: _Told) -> Iterator[LineSpan | str]:
    """Yield the words of a part, and its values; a missing value is ""."""
    for number, text in enumerate(_VALUE.split(part)):
        if number % 2:
            value = VALUES[text](told) if text in VALUES else told.words(text)
            yield from (value or "",) if isinstance(value, str | LineSpan) else value or ("",)
        elif text:
            yield text


def _words(value: object, depth: int = 0) -> str:
    """Return any value of a payload as words: `page 3, url https://…`."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
        case str():
            return flat(value)
        case _ if depth == MAX_DEPTH:
            return "…"
        case {"text": str() as text} if depth:
            return flat(text)
        case dict():
            items = ((humanize(flat(key)), _words(item, depth + 1)) for key, item in value.items())
            return ", ".join(f"{key} {text}".strip() for key, text in items)
        case list():
            return ", ".join(filter(None, (_words(item, depth + 1) for item in value)))
    return flat(value)


def _colored(line: Line, event: Event) -> Line:
    """Return the line with the words of the sentence in the color of the new status."""
    if not event.to_status:
        return line
    denied = event.payload.get("error_class") == ErrorClass.DENIED
    meaning = display_of(Status(event.to_status), denied=denied).meaning
    if meaning in _CALM:
        return line
    first, *others = line
    return (LineSpan(first, meaning) if isinstance(first, str) else first, *others)


def _with_capital(line: Line) -> Line:
    """Return the line with a capital, unless it begins with a name."""
    first, *others = line
    return (capitalized(first), *others) if isinstance(first, str) else line


# Values of sentences.


def _asked(told: _Told) -> Line:
    """Return `an answer to D-142/1`, `an approval, D-142/1` or `2 answers and 1 approval`."""
    asked = _questions(told)
    if len(asked) > 1:
        return (needed_answers([item.get("kind") for item in asked]),)
    question = _question(told) or UNKNOWN
    return "an approval, " if told.event.kind == "needs_approval" else "an answer to ", question


def _texts(told: _Told) -> str:
    """Return the texts of all questions of a run."""
    texts = [text for item in _questions(told) if (text := _words(item.get("text")))]
    return truncate(" · ".join(texts), MAX_VALUE_LENGTH)


def _questions(told: _Told) -> list[dict[str, Any]]:
    """Return the questions of a run, without their numbers except that of the first."""
    others = told.payload.get("others")
    rest = others if isinstance(others, list) else []
    return [told.payload, *(item for item in rest if isinstance(item, dict))]


def _by(key: str) -> Callable[[_Told], Line]:
    """Return the people of a value; without any, who caused the event."""
    return lambda told: told.people(told.payload.get(key)) or _actor(told)


def _people(key: str) -> Callable[[_Told], Line]:
    return lambda told: told.people(told.payload.get(key))


def _actor(told: _Told) -> Line:
    return told.people(told.event.actor)


def _moment(key: str) -> Callable[[_Told], LineSpan | str]:
    def value(told: _Told) -> LineSpan | str:
        with suppress(ValueError, TypeError):
            return told.reader.clock(datetime.fromisoformat(told.payload[key]))
        return ""

    return value


def _amount(key: str, noun: str) -> Callable[[_Told], str]:
    """Return a number, or the length of a list, with its noun."""

    def value(told: _Told) -> str:
        number = told.payload.get(key)
        number = len(number) if isinstance(number, list) else number
        return counted(number, noun) if isinstance(number, int) else ""

    return value


def _question(told: _Told) -> LineSpan | str:
    ordinal = told.payload.get("question")
    return name(question_name(told.event.job, ordinal)) if isinstance(ordinal, int) else ""


def _job(key: str) -> Callable[[_Told], LineSpan | str]:
    def value(told: _Told) -> LineSpan | str:
        number = told.payload.get(key)
        return name(job_name(number)) if isinstance(number, int) else ""

    return value


def _canceled(told: _Told) -> Line:
    """Return who canceled the job, or that its run stopped, of which a person had asked it."""
    by = told.payload.get("by")
    if is_machine(told.event.actor) and by and not is_machine(str(by)) and _run(told):
        return (f"{run_text(int(_run(told)))} stopped, and the job is canceled",)
    reason = told.words("reason")
    return *_by("by")(told), f" canceled the job{f': {reason}' if reason else ''}"


def _commit(key: str) -> Callable[[_Told], str]:
    return lambda told: told.words(key)[:SHORT_COMMIT]


def _link(key: str) -> Callable[[_Told], LineSpan | str]:
    def value(told: _Told) -> LineSpan | str:
        url = flat(told.payload.get(key) or "")
        return LineSpan(url, url=url if is_link(url) else "") if url else ""

    return value


def _run(told: _Told) -> str:
    return "" if told.event.run is None else str(told.event.run)


def _interruption(told: _Told) -> str:
    return "its worker was lost" if told.payload.get("lost") else told.words("reason")


def _next_try(told: _Told) -> str:
    """Return `retry 1 of 5 in 48 s`."""
    after = ""
    with suppress(KeyError, ValueError, TypeError):
        due = datetime.fromisoformat(told.payload["next_retry_at"])
        after = f" {times.until(due, told.event.created_at)}"
    return next_try_text(told.payload) + after


_DECISIONS: Final = {
    "answered": "answered",
    "approved": "approved",
    "denied": "denied",
    "changes_requested": "requested changes of",
}


def _decision(told: _Told) -> Line:
    """Return `Bruno answered` or `Carol approved D-142/2`."""
    payload = told.payload
    outcome = str(payload.get("outcome") or "answered")
    by = _actor(told) if payload.get("via") == "person" else ("the policy",)
    if payload.get("via") == "rule":
        by = (f"rule {told.words('rule')} ({told.words('reason')})",)
    by = told.people(payload.get("by")) or by
    verb = _DECISIONS.get(outcome, f"closed as {humanize(outcome)}")
    if outcome == "answered":
        return *by, f" {verb}"
    own = (" (own request)",) if payload.get("self_approved") else ()
    return *by, f" {verb} ", _question(told) or UNKNOWN, *own


def _closed(told: _Told) -> Line | str:
    """Return `D-142/2 was answered`, `changes to D-142/2 were requested` or `D-142/2 expired`."""
    question = _question(told)
    outcome = told.words("outcome")
    if not question or not outcome:
        return ""
    if outcome == CHANGES_REQUESTED:
        return "changes to ", question, " were requested"
    return question, f" {'' if outcome == 'expired' else 'was '}{humanize(outcome)}"


def _answer(told: _Told) -> str:
    payload = told.payload
    if payload.get("via") == "rule":
        return told.words("label") or told.words("value")
    answer = told.words("label") or told.words("text") or told.words("value")
    reason = payload.get("reason")
    said = request_text(reason if isinstance(reason, str) else "", comments_of(payload))
    return answer or truncate(flat(said), MAX_VALUE_LENGTH)


def _destination(told: _Told) -> Line:
    place = told.words("place")
    if place in ("top", "bottom"):
        return (f"to the {place} of its queue",)
    return f"{place} ", _job("anchor")(told) or UNKNOWN


def _notified(told: _Told) -> Line:
    notified = told.people(told.payload.get("notified"))
    skipped = told.payload.get("skipped")
    names = list(skipped) if isinstance(skipped, dict) else []
    left_out: Line = (", not ", *told.people(names)) if names else ()
    return "notified ", *(notified or ("nobody",)), *left_out


def _delivery(told: _Told) -> Line:
    kind = humanize(told.words("kind") or "message")
    question = _question(told)
    return (f"{kind} ", question) if question else (kind,)


def _target(told: _Told) -> str:
    channel, target = told.words("channel"), told.words("target")
    return target if channel in ("", target) else f"{channel}:{target}"


def _repo(told: _Told) -> str:
    named = "/".join(filter(None, (told.words("owner"), told.words("name"))))
    return named or told.words("source")


def _parts(told: _Told) -> str:
    parts = told.payload.get("parts")
    return (
        "; and without ".join(_words(item, 1) for item in parts) if isinstance(parts, list) else ""
    )


def _usage(told: _Told) -> str:
    usage = told.payload.get("usage")
    return usage_lines(usage) if isinstance(usage, dict) and usage else ""


def _reads(key: str) -> Callable[[_Told], str]:
    return lambda told: humanize(told.words(key))


VALUES: Final[Mapping[str, Callable[[_Told], Line | LineSpan | str]]] = {
    "actor": _actor,
    "added": lambda told: told.words("added"),
    "answer": _answer,
    "asked": _asked,
    "approver": _people("approver"),
    "base_sha": _commit("base_sha"),
    "by": _by("by"),
    "canceled": _canceled,
    "cause": _reads("reason"),
    "closed": _closed,
    "commit": _commit("commit"),
    "decision": _decision,
    "deliveries": _amount("deliveries", "message"),
    "delivery": _delivery,
    "destination": _destination,
    "draft": lambda told: "as a draft" if told.payload.get("draft") else "",
    "duration_seconds": lambda told: told.span("duration_seconds"),
    "escalate_to": _people("escalate_to"),
    "event": _reads("event"),
    "expires_at": _moment("expires_at"),
    "files_changed": _amount("files_changed", "changed file"),
    "follow_up": _job("job"),
    "from_commit": _commit("from"),
    "interruption": _interruption,
    "messages": _amount("messages", "message"),
    "name": lambda told: name(told.words("name")) if told.words("name") else "",
    "network": lambda told: network_text(told.payload.get("network"), "with network", "no network"),
    "next_try": _next_try,
    "notified": _notified,
    "outcome": _reads("outcome"),
    "parts": _parts,
    "pr_url": _link("pr_url"),
    "question": _question,
    "repo": _repo,
    "requester": _by("requester"),
    "retry_of": _job("retry_of"),
    "run": _run,
    "run_at": _moment("run_at"),
    "seconds": lambda told: told.span("seconds"),
    "target": _target,
    "texts": _texts,
    "to": _people("to"),
    "to_commit": _commit("to"),
    "until": _moment("until"),
    "url": _link("url"),
    "usage": _usage,
    "verdict": lambda told: "passed" if told.payload.get("passed") else "failed",
    "voter": _people("voter"),
    "votes": lambda told: (
        counted(told.payload["votes"], "vote") if isinstance(told.payload.get("votes"), int) else ""
    ),
    "waited": lambda told: told.span("waited"),
}
"""The values of sentences by name; any other is that of the payload as words."""
