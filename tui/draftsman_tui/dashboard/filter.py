"""What `/` takes: `tidy status:failed,dead_letter repo:pay by:anna age<2h /time ?out/`.

Everything given must hold. Words are searched in what a row says and in what its columns show,
whatever their case; a word that begins with `-` must not be there. A word with a colon is a field
unless it is quoted. Pure: parsed, matched and written without a database.

Regular expressions are those of RE2: no row and no expression makes one take longer than its length
times that of the row.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from draftsman.errors import UsageError
from draftsman_tui.common import times

FIELDS: Final = ("status", "repo", "by", "agent", "tag", "source", "for")
"""`channel:` is `source:`; `by:me` and `for:me` are whoever looks."""
_PLAIN: Final = ("repo", "by", "agent", "tag", "source")
ANYBODY: Final = "anybody"
"""For whom a question is that names nobody."""
LONGEST: Final = 500
"""Characters of a filter."""
SEARCHED: Final = 1000
"""Characters of a row that a regular expression is tried on."""
_AGE = re.compile(r"age([<>])(.+)")
_REGEX = re.compile(r"(?:^|(?<=\s))/((?:[^/\\]|\\.)+)/(?=\s|$)")
_OTHER_NAMES: Final = {"channel": "source", "repository": "repo", "state": "status"}
_FIELD = re.compile(r"(-?)([A-Za-z][A-Za-z_]+):(?!//)(.*)", re.DOTALL)
"""A field, as it is typed; `https://a.example`, `D-7:` and `12:30` are words."""
_SPACE: Final = " \t\r\n"
"""What parts tokens, as in `shlex`."""


@dataclass(frozen=True, slots=True)
class FilterFields:
    """What a filter looks at of one row."""

    text: str
    status: str = ""
    repo: str = ""
    by: str = ""
    agent: str = ""
    tags: tuple[str, ...] = ()
    at: datetime | None = None
    source: str = ""
    asked: tuple[str, ...] = ()
    """People and groups whom it waits for."""
    shown: str = ""
    """What its columns show, and the names of its status; empty where no word is searched."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What is wanted. Ages are in seconds: `older` than, `newer` than."""

    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    repo: str | None = None
    by: str | None = None
    agent: str | None = None
    tag: str | None = None
    source: str | None = None
    asked: tuple[str, ...] = ()
    """Any of them."""
    older: float | None = None
    newer: float | None = None
    regex: str | None = None

    def __bool__(self) -> bool:
        return self != NOTHING

    def __str__(self) -> str:
        parts = [_quoted(word) for word in self.words]
        parts += [_quoted(f"-{word}") for word in self.without]
        if self.statuses:
            parts.append(shlex.quote(f"status:{','.join(self.statuses)}"))
        if self.asked:
            parts.append(shlex.quote(f"for:{','.join(self.asked)}"))
        for name in _PLAIN:
            if (value := getattr(self, name)) is not None:
                parts.append(shlex.quote(f"{name}:{value}"))
        for sign, age in ((">", self.older), ("<", self.newer)):
            if age is not None:
                parts.append(f"age{sign}{times.format_duration(age)}")
        if self.regex is not None:
            parts.append(f"/{self.regex}/")
        return " ".join(parts)

    @property
    def fields(self) -> list[str]:
        """Names of the fields that it gives; `age` for both of its signs."""
        has = {name: getattr(self, name) is not None for name in _PLAIN}
        has |= {"status": bool(self.statuses), "for": bool(self.asked)}
        has["age"] = self.older is not None or self.newer is not None
        return [name for name in (*FIELDS, "age") if has[name]]

    @property
    def searches(self) -> bool:
        """Whether it looks for text."""
        return bool(self.words or self.without or self.regex)

    def matches(self, row: FilterFields, now: datetime) -> bool:
        """Return whether a row is wanted."""
        text = f"{row.text}\n{row.shown}".casefold()
        return (
            all(word.casefold() in text for word in self.words)
            and not any(word.casefold() in text for word in self.without)
            and (not self.statuses or row.status in self.statuses)
            and _is_in(self.repo, (row.repo, row.repo.rpartition("/")[2]))
            and _is_in(self.by, (row.by, row.by.rpartition(":")[2]))
            and _is_in(self.agent, (row.agent,))
            and _is_in(self.tag, row.tags)
            and _is_in(self.source, (row.source,))
            and (not self.asked or any(_is_in(one, row.asked) for one in self.asked))
            and self._has_age(row.at, now)
            and self._has_regex(row)
        )

    def of(self, me: str, asked: Iterable[str] | None) -> Filter:
        """Return it with `me` replaced, by who looks and by how questions name them.

        None: every question is for them.
        """
        found = replace(self, by=me) if self.by == "me" else self
        if "me" not in self.asked:
            return found
        others = tuple(one for one in self.asked if one != "me")
        return replace(found, asked=() if asked is None else (*others, *asked))

    def _has_regex(self, row: FilterFields) -> bool:
        if self.regex is None or _is_found(self.regex, row.text):
            return True
        return bool(row.shown) and _is_found(self.regex, row.shown)

    def _has_age(self, at: datetime | None, now: datetime) -> bool:
        if self.older is None and self.newer is None:
            return True
        if at is None:
            return False
        age = (now - at).total_seconds()
        return (self.older is None or age > self.older) and (self.newer is None or age < self.newer)


NOTHING: Final = Filter()
"""Wants every row."""


def parse(text: str) -> Filter:
    """Read a filter; raises UsageError, whose message says what is allowed."""
    if len(text) > LONGEST:
        raise UsageError(f"a filter has at most {LONGEST} characters")
    found = NOTHING
    for pattern in _REGEX.findall(text):
        if found.regex is not None:
            raise UsageError("one regular expression is enough; join two with |")
        found = replace(found, regex=_checked(pattern))
    try:
        tokens = list(_tokens(_REGEX.sub(" ", text)))
    except ValueError:
        raise UsageError("a quotation mark is not closed; close it, or leave it out") from None
    for token, is_quoted in tokens:
        if token:
            found = _with(found, token, is_quoted=is_quoted)
    return found


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each token and whether it begins with a quotation mark; raises ValueError."""
    stream = io.StringIO(text)
    lexer = shlex.shlex(stream, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    start = 0
    while (token := lexer.get_token()) is not None:
        end = stream.tell()
        yield token, text[start:end].lstrip(_SPACE).startswith(("'", '"'))
        start = end


def _with(found: Filter, token: str, *, is_quoted: bool) -> Filter:
    if age := _AGE.fullmatch(token):
        seconds = times.parse_duration(age[2])
        return replace(found, older=seconds) if age[1] == ">" else replace(found, newer=seconds)
    name, colon, value = token.partition(":")
    name = _OTHER_NAMES.get(name.casefold(), name.casefold())
    if not is_quoted and (typed := _FIELD.fullmatch(token)) and (typed[1] or name not in FIELDS):
        raise UsageError(_unknown(typed[2], name, token))
    if colon and name in FIELDS:
        if not value:
            raise UsageError(f"{name}: what? give {name}:VALUE, or leave it out")
        if name == "status":
            return replace(found, statuses=(*found.statuses, *_statuses(value)))
        if name == "for":
            return replace(found, asked=(*found.asked, *filter(None, value.split(","))))
        fields: dict[str, Any] = {name: value}
        return replace(found, **fields)
    if token.startswith("-") and len(token) > 1:
        return replace(found, without=(*found.without, token[1:]))
    return replace(found, words=(*found.words, token))


def _statuses(value: str) -> list[str]:
    names = [name.strip().casefold().replace("-", "_") for name in value.split(",") if name.strip()]
    if not names:
        raise UsageError("status: which? give status:failed, or status:failed,dead_letter")
    return names


def _unknown(typed: str, name: str, token: str) -> str:
    """Say which fields there are, and how to search for text that looks like one."""
    known = [*FIELDS, *_OTHER_NAMES]
    if token.startswith("-") and name.lstrip("-") in known:
        return f"{token!r}: - is for words alone, as in -attic; give {typed}: without it"
    if name == "age":
        return "age takes < or >: age<2h, age>1d"
    near = "".join(f"; did you mean {one}:?" for one in get_close_matches(name, known, 1))
    fields = " ".join(f"{field}:" for field in FIELDS)
    return (
        f"unknown field {typed!r}{near}; fields: {fields} age< age>;"
        f" to search for this text, quote it: {_quoted(token)}"
    )


def _checked(pattern: str) -> str:
    _compiled(pattern)
    return pattern


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> Any:
    import re2  # only who types an expression pays for it

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise UsageError(f"/{pattern}/ is no regular expression of RE2: {said}") from None


def _is_found(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text[:SEARCHED].encode("utf-8", "replace")) is not None


def _is_in(wanted: str | None, values: tuple[str, ...]) -> bool:
    return wanted is None or wanted.casefold() in {value.casefold() for value in values}


def _quoted(token: str) -> str:
    """Quote a word for a filter: `shlex` would leave a colon bare, which makes a field of it."""
    quoted = shlex.quote(token)
    return f"'{token}'" if ":" in token and quoted == token else quoted
