"""Table filters: `tidy status:failed,dead_letter repo:pay by:anna age<2h /time ?out/`.

All terms must match. Words are matched, ignoring case, against the text and the columns of a row;
a word that starts with `-` must not occur. A word with a colon is a field unless it is quoted.

Regular expressions use RE2, so that matching time is linear in the length of the row.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from draftsman.durations import format_duration, parse_age
from draftsman.entities.filter_values import ME
from draftsman.entities.terms import COMPARISON, ColumnTerm, FilteredColumn, Measure, needed_value
from draftsman.errors import UsageError, with_hint
from draftsman.formats.near_names import did_you_mean

FIELDS: Final = ("status", "repo", "by", "agent", "tag", "source", "group", "for", "job")
"""`channel:` is an alias of `source:`; `me` in `by:me` and `for:me` is the current user."""
_PLAIN: Final = ("repo", "by", "agent", "tag", "source", "group", "job")
_NO_TEXT: Final = dict.fromkeys((0, *range(0xD800, 0xE000)))
"""Characters that PostgreSQL does not store: NUL, and halves of surrogate pairs."""
MAX_LENGTH: Final = 500
"""Maximum characters of a filter."""
REGEX_INPUT: Final = 1000
"""Maximum characters of a row that a regular expression is matched against."""
_COMPARED_TEXT = re.compile(r"([A-Za-z]+)([<>])\D*")
_EQUATED = re.compile(r"([A-Za-z]+)(!=|>=|<=|==?)(.*)", re.DOTALL)
_NEAR_SIGNS: Final = {"=": ":", "==": ":", ">=": ">", "<=": "<"}
"""Signs of other languages, with the sign of filters that is meant."""
_NO_UNEQUAL: Final = "name the values that you want, as in status:failed,queued"
_AGE = re.compile(r"age([<>])(?!=)(.+)")
_REGEX = re.compile(r"(?:^|(?<=\s))/((?:[^/\\]|\\.)+)/(?=\s|$)")
_FIELD_ALIASES: Final = {
    "channel": "source",
    "repository": "repo",
    "state": "status",
    "kind": "status",
    "person": "by",
    "requester": "by",
}
HEADS: Final[dict[str, Measure | None]] = {}
"""Columns that filters know by the word in their head, with what they are compared with; other
fields have a value of their own."""
_FIELD = re.compile(r"(-?)([A-Za-z][A-Za-z_]+):(?!//)(.*)", re.DOTALL)
"""A field; `https://a.example`, `D-7:` and `12:30` are words."""
_SPACE: Final = " \t\r\n"
"""Token separators, as in `shlex`."""


@dataclass(frozen=True, slots=True)
class FilterFields:
    """Values of a row that a filter matches."""

    text: str
    status: str = ""
    repo: str = ""
    by: str = ""
    agent: str = ""
    tags: tuple[str, ...] = ()
    at: datetime | None = None
    source: str = ""
    responders: tuple[str, ...] = ()
    """People and groups that it waits for."""
    second_status: str = ""
    """Another status that matches: `paused`, or the kind of an event."""
    repo_host: str = ""
    column_text: str = ""
    """Text of its columns and aliases of its status; empty unless the filter searches text."""
    also_by: tuple[str, ...] = ()
    """Further people of a row that counts for several jobs."""

    @property
    def repo_names(self) -> tuple[str, ...]:
        """Names of the repository: `github.com/acme/pay`, `acme/pay` and `pay`."""
        segments = f"{self.repo_host}/{self.repo}".strip("/").split("/")
        return tuple("/".join(segments[start:]) for start in range(len(segments)))

    @property
    def people(self) -> tuple[str, ...]:
        """Its people with and without the channel of their account."""
        names = (self.by, *self.also_by)
        return tuple(form for name in names for form in (name, name.rpartition(":")[2]))

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The values that the fields of a filter match, by the name of the field."""
        return {
            "repo": self.repo_names,
            "by": self.people,
            "agent": (self.agent,),
            "tag": self.tags,
            "source": (self.source,),
            "for": self.responders,
        }


@dataclass(frozen=True, slots=True)
class Filter:
    """A parsed filter. `older` and `newer` are ages in seconds."""

    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    repo: str | None = None
    by: str | None = None
    agent: str | None = None
    tag: str | None = None
    source: str | None = None
    group: str | None = None
    """Matched by the query of the table."""
    job: str | None = None
    """A job, whose tree the query of the table selects."""
    columns: tuple[ColumnTerm, ...] = ()
    """Matched by the table."""
    responders: tuple[str, ...] = ()
    """A row must have at least one."""
    older: float | None = None
    newer: float | None = None
    since: datetime | None = None
    """From `age<` with a time, such as 2026-11-30."""
    until: datetime | None = None
    """From `age>` with a time."""
    regex: str | None = None

    def __bool__(self) -> bool:
        return self != NOTHING

    def __str__(self) -> str:
        return self.text()

    def text(self, kinds: Collection[str] = ()) -> str:
        """Return the filter as it is typed, with the statuses that are `kinds` as such."""
        terms = [_quoted(word) for word in self.words]
        terms += [_quoted(f"-{word}") for word in self.without]
        for field, is_kind in (("status", False), ("kind", True)):
            if names := [name for name in self.statuses if (name in kinds) is is_kind]:
                terms.append(shlex.quote(f"{field}:{','.join(names)}"))
        if self.responders:
            terms.append(shlex.quote(f"for:{','.join(self.responders)}"))
        for name in _PLAIN:
            if (value := getattr(self, name)) is not None:
                terms.append(shlex.quote(f"{name}:{value}"))
        terms += map(str, self.columns)
        for sign, age in ((">", self.older), ("<", self.newer)):
            if age is not None:
                terms.append(f"age{sign}{format_duration(age)}")
        for sign, time in ((">", self.until), ("<", self.since)):
            if time is not None:
                terms.append(f"age{sign}{time.isoformat()}")
        if self.regex is not None:
            terms.append(f"/{self.regex}/")
        return " ".join(terms)

    @property
    def fields(self) -> list[str]:
        """Names of its fields; `age` covers `older` and `newer`."""
        has = {name: getattr(self, name) is not None for name in _PLAIN}
        has |= {"status": bool(self.statuses), "for": bool(self.responders)}
        has["age"] = any(getattr(self, name) is not None for name in PERIOD)
        return [name for name in (*FIELDS, "age") if has[name]]

    def has_only(self, *names: str) -> bool:
        """Return whether it has no terms but those of these attributes."""
        return self == replace(NOTHING, **{name: getattr(self, name) for name in names})

    @property
    def values(self) -> dict[str, Any]:
        """The values of its fields and columns, by name."""
        columns = {term.head: term.value for term in self.columns if term.sign == ":"}
        return columns | {name: getattr(self, name) for name in _PLAIN} | {"for": self.responders}

    def period(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        """Return the times between which matching rows were created; None: without a bound."""
        newer = None if self.newer is None else now - timedelta(seconds=self.newer)
        older = None if self.older is None else now - timedelta(seconds=self.older)
        since = max(filter(None, (newer, self.since)), default=None)
        until = min(filter(None, (older, self.until)), default=None)
        return since, until

    def seconds(self, now: datetime, default: float) -> float:
        """Return the age of the oldest rows that match, in seconds."""
        since, _ = self.period(now)
        return default if since is None else (now - since).total_seconds()

    @property
    def searches(self) -> bool:
        """Whether it searches text."""
        return bool(self.words or self.without or self.regex)

    def matches(self, row: FilterFields, now: datetime) -> bool:
        """Return whether a row matches."""
        text = f"{row.text}\n{row.column_text}".casefold()
        return (
            all(word.casefold() in text for word in self.words)
            and not any(word.casefold() in text for word in self.without)
            and (not self.statuses or not {row.status, row.second_status}.isdisjoint(self.statuses))
            and _is_in(self.repo, row.repo_names)
            and _is_in(self.by, row.people)
            and _is_in(self.agent, (row.agent,))
            and _is_in(self.tag, row.tags)
            and _is_in(self.source, (row.source,))
            and (
                not self.responders or any(_is_in(name, row.responders) for name in self.responders)
            )
            and self._has_age(row.at, now)
            and self._has_regex(row)
        )

    def resolve_me(self, me: str) -> Filter:
        """Replace `me` in `by:` with the user; in `for:`, rows name the user by it."""
        return replace(self, by=me) if self.by == ME else self

    def _has_regex(self, row: FilterFields) -> bool:
        if self.regex is None or _is_found(self.regex, row.text):
            return True
        return bool(row.column_text) and _is_found(self.regex, row.column_text)

    def _has_age(self, at: datetime | None, now: datetime) -> bool:
        since, until = self.period(now)
        if since is None and until is None:
            return True
        return at is not None and (since is None or at > since) and (until is None or at < until)


NOTHING: Final = Filter()
"""Matches every row."""
PERIOD: Final = ("older", "newer", "since", "until")
"""The attributes of a filter that are about the age of a row."""


def add_heads(columns: Iterable[FilteredColumn]) -> None:
    """Let filters know the columns of a table."""
    for column in columns:
        head = column.head.casefold()
        if head.isalpha() and head not in {*FIELDS, *_FIELD_ALIASES, "age"}:
            HEADS[head] = HEADS.get(head) or column.measure


def parse(text: str) -> Filter:
    """Parse a filter; raises UsageError."""
    if len(text) > MAX_LENGTH:
        raise UsageError(f"filter is longer than {MAX_LENGTH} characters")
    if text.translate(_NO_TEXT) != text:
        raise UsageError("filter has a character that no text has; remove it")
    result = NOTHING
    for pattern in _REGEX.findall(text):
        if result.regex is not None:
            raise UsageError("only one regular expression is allowed; combine alternatives with |")
        _compiled(pattern)  # raises the error of an invalid one
        result = replace(result, regex=pattern)
    try:
        tokens = list(_tokens(_REGEX.sub(" ", text)))
    except ValueError:
        raise UsageError("missing closing quote; close or remove it") from None
    for token, is_quoted in tokens:
        if token:
            result = _add_token(result, token, is_quoted=is_quoted)
    return result


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each token and whether it starts with a quote; raises ValueError."""
    stream = io.StringIO(text)
    lexer = shlex.shlex(stream, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    start = 0
    while (token := lexer.get_token()) is not None:
        end = stream.tell()
        yield token, text[start:end].lstrip(_SPACE).startswith(("'", '"'))
        start = end


def _add_token(result: Filter, token: str, *, is_quoted: bool) -> Filter:
    if age := _AGE.fullmatch(token):
        bound = parse_age(age[2])
        names = ("until", "since") if isinstance(bound, datetime) else ("older", "newer")
        return _with(result, {names[age[1] == "<"]: bound})
    if not is_quoted:
        _check_comparison(token)
    if not is_quoted and (compared := COMPARISON.fullmatch(token)):
        return _add_column(result, ColumnTerm(compared[1].casefold(), compared[2], compared[3]))
    name, colon, value = token.partition(":")
    name = _FIELD_ALIASES.get(name.casefold(), name.casefold())
    if not is_quoted and colon and not value and name in HEADS:
        raise UsageError(needed_value(name, colon, HEADS[name]))
    if not is_quoted and value and name in HEADS:
        return _add_column(result, ColumnTerm(name, ":", value))
    if not is_quoted and (typed := _FIELD.fullmatch(token)) and (typed[1] or name not in FIELDS):
        raise UsageError(_unknown(typed[2], name, token))
    if colon and name in FIELDS:
        if not value:
            raise UsageError(f"{name}: needs a value, as in {name}:VALUE")
        if name == "status":
            return replace(result, statuses=(*result.statuses, *_statuses(value)))
        if name == "for":
            return replace(result, responders=(*result.responders, *filter(None, value.split(","))))
        return _with(result, {name: value})
    if token.startswith("-") and len(token) > 1:
        return replace(result, without=(*result.without, token[1:]))
    return replace(result, words=(*result.words, token))


def _check_comparison(token: str) -> None:
    """Raise UsageError for a field with a sign that filters do not have, or without a limit."""
    problem = ""
    if (equated := _EQUATED.fullmatch(token)) is not None:
        typed, sign, value = equated.groups()
        name = typed.casefold()
        near = _NEAR_SIGNS.get(sign)
        if name in {*FIELDS, *_FIELD_ALIASES, *HEADS, "age"}:
            problem = f"filters have no {sign}; "
            problem += f"did you mean {name}{near}{value or 'VALUE'}?" if near else _NO_UNEQUAL
    elif token in ("age<", "age>"):
        problem = f"{token} needs a duration or a time, as in {token}1d"
    elif (words := _COMPARED_TEXT.fullmatch(token)) and words[1].lower() in HEADS:
        head = words[1].lower()
        problem = needed_value(head, words[2], HEADS[head])
    if problem:
        raise UsageError(with_hint(problem, f"to search for this text, quote it: '{token}'"))


def _with(result: Filter, fields: Mapping[str, Any]) -> Filter:
    return replace(result, **fields)


def _add_column(result: Filter, term: ColumnTerm) -> Filter:
    """Add a condition on a column; raises UsageError if no table has the column."""
    if term.head not in HEADS:
        hint = did_you_mean(term.head, HEADS, 1)
        example = "; compare a column of the table, as in cost>1 or age<2h"
        quote = f"to search for this text, quote it: '{term.head}{term.sign}{term.value}'"
        raise UsageError(with_hint(f"unknown column {term.head!r}{hint or example}", quote))
    return replace(result, columns=(*result.columns, term))


def _statuses(value: str) -> list[str]:
    names = [
        name.strip().casefold().replace("-", "_").replace(" ", "_")
        for name in value.split(",")
        if name.strip()
    ]
    if not names:
        raise UsageError("status: needs a value, as in status:failed or status:failed,dead_letter")
    return names


def _unknown(typed: str, name: str, token: str) -> str:
    """Return an error message with the allowed fields and the quoted text."""
    names = [*FIELDS, *_FIELD_ALIASES]
    if token.startswith("-") and name.lstrip("-") in names:
        return f"{token!r}: - excludes words only, as in -attic; use {typed}: without it"
    if name == "age":
        return "age needs < or >, as in age<2h or age>1d"
    fields = " ".join(f"{field}:" for field in FIELDS)
    near = did_you_mean(f"{name}:", [f"{field}:" for field in names], 1)
    known = near or f"; fields: {fields} age< age>"
    quote = f"to search for this text, quote it: {_quoted(token)}"
    return with_hint(f"unknown field {typed!r}{known}", quote)


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> Any:
    import re2  # deferred, since importing it is slow

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        problem = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise UsageError(f"invalid regular expression /{pattern}/: {problem}") from None


def _is_found(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text[:REGEX_INPUT].encode("utf-8", "replace")) is not None


def _is_in(wanted: str | None, names: tuple[str, ...]) -> bool:
    return wanted is None or wanted.casefold() in {name.casefold() for name in names}


def repo_completions(rows: Iterable[FilterFields]) -> list[str]:
    """Return the repositories of rows, with the host where several hosts have the name."""
    hosts: dict[str, set[str]] = {}
    for row in rows:
        if row.repo:
            hosts.setdefault(row.repo, set()).add(row.repo_host)
    return sorted(
        f"{host}/{repo}".strip("/") if len(repo_hosts) > 1 else repo
        for repo, repo_hosts in hosts.items()
        for host in repo_hosts
    )


def _quoted(token: str) -> str:
    """Quote a word; unlike `shlex`, also if it has a sign, which would make it a field."""
    quoted = shlex.quote(token)
    return f"'{token}'" if not {":", "="}.isdisjoint(token) and quoted == token else quoted
