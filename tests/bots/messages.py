"""Strategies for messages with any text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.jobs.job import Mode, RequestSummary, Status
from draftsman.people.policy import Person
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman_testing.channel import samples

Words = st.SearchStrategy[str]
TIMES = st.datetimes(timezones=st.just(UTC))
WHEN = st.none() | TIMES


def words(marks: str) -> Words:
    """Return any text, with many characters that have a meaning in a chat."""
    return st.text(st.characters(), max_size=200) | st.text(
        f"{marks}\n\u0301👩\u200d ", max_size=4000
    )


@st.composite
def messages(
    draw: st.DrawFn,
    any_words: Words,
    accounts: Words,
    person: Callable[[str, str | None], Person],
) -> Message:
    """Draw a message of any kind, about a job and a question in any state.

    `person` creates a person from a name and optionally one of the `accounts`.
    """
    progress = st.fixed_dictionaries({"plan": any_words, "line": any_words})
    listed = {"name": any_words, "jobs": st.integers(1, 3), "text": any_words, "title": any_words}
    expires = {"expires_at": st.none() | TIMES.map(datetime.isoformat)}
    digest = st.lists(st.fixed_dictionaries(listed, optional=expires), max_size=60)
    payload = {
        "questions": digest,
        "text": any_words,
        "name": any_words,
        "to": accounts,
        "progress": progress,
    }
    asked = draw(st.dictionaries(any_words, st.none() | accounts))
    created = samples.message(
        draw(st.sampled_from(DeliveryKind)),
        question=draw(_questions(any_words)),
        payload=draw(st.fixed_dictionaries({}, optional=payload)),
        recipients=tuple(person(name, account) for name, account in asked.items()),
    )
    return replace(created, subject=_subject(draw, any_words, created.subject))


@st.composite
def _questions(draw: st.DrawFn, any_words: Words) -> Question:
    optional = st.none() | any_words
    choice = st.fixed_dictionaries(
        {"value": any_words, "label": any_words}, optional={"description": optional}
    )
    resolution = st.fixed_dictionaries(
        {"outcome": any_words, "via": any_words, "by": st.lists(any_words, max_size=3)},
        optional={"value": optional, "text": optional, "reason": optional},
    )
    return samples.question(
        kind=draw(st.sampled_from(QuestionKind)),
        status=draw(st.sampled_from(QuestionStatus)),
        text=draw(any_words),
        choices=draw(st.lists(choice, max_size=130)),
        freeform_allowed=draw(st.booleans()),
        context_snippet=draw(optional),
        action=draw(st.none() | st.dictionaries(any_words, _json(any_words), max_size=3)),
        resolution=draw(st.none() | resolution),
        expires_at=draw(WHEN),
        escalate_to=draw(optional),
        escalated_at=draw(WHEN),
        quorum=draw(st.integers(1, 5)),
    )


def requests(texts: st.SearchStrategy[str | None]) -> st.SearchStrategy[RequestSummary]:
    """Return requests of agents with any texts."""
    return st.builds(RequestSummary, st.sampled_from(Mode), texts, texts, texts, texts)


def _subject(draw: st.DrawFn, any_words: Words, subject: Subject) -> Subject:
    optional = st.none() | any_words
    return replace(
        subject,
        title=draw(any_words),
        status=draw(st.sampled_from(Status)),
        request=draw(st.none() | requests(optional)),
        url=draw(optional),
        invoker=draw(any_words),
        error=draw(optional),
        canceled_by=draw(optional),
        cancel_reason=draw(optional),
        next_retry_at=draw(WHEN),
        finished_at=draw(WHEN),
        result=draw(st.none() | shown(any_words) | _result(any_words)),
    )


def _result(any_words: Words) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(any_words, _json(any_words) | shown(any_words), max_size=4)


def shown(texts: Words) -> st.SearchStrategy[dict[str, object]]:
    """Return values of results that say how they are shown, and data that is only similar."""
    urls = texts.map(lambda text: f"https://x.example/{text}") | texts
    marks = st.sampled_from(["# {}", "**{}**", "- {}", "```\n{}\n```", "[{}](https://x.example/)"])
    lines = st.lists(st.builds(str.format, marks, texts), max_size=4)
    return st.one_of(
        st.lists(texts, max_size=3).flatmap(lambda columns: _table(columns, texts)),
        _value("markdown", text=lines.map("\n".join)),
        _value("link", url=urls, text=texts),
        _value("picture", source=urls, text=texts),
        _value("table", columns=texts, rows=texts),
    )


def _table(columns: list[str], texts: Words) -> st.SearchStrategy[dict[str, object]]:
    cells = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
    row = st.tuples(*[cells] * len(columns)).map(list)
    return _value("table", columns=st.just(columns), rows=st.lists(row, max_size=4))


def _value(kind: str, **fields: Any) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({"shown": st.just(kind), **fields})


def _json(any_words: Words) -> st.SearchStrategy[object]:
    return st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | any_words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_words, inner, max_size=3),
        max_leaves=6,
    )
