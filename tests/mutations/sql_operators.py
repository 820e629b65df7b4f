"""Operators that change SQL: queries of the store, and views and functions of migrations.

The text is split into tokens, not parsed: PL/pgSQL and the parameters of psycopg need no grammar
of their own, and a change that is no longer valid SQL fails in the first test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.mutations.mutant import Mutant, numbered, shortened

_TOKEN: Final = re.compile(
    r"(?P<space>\s+|--[^\n]*)"
    r"|(?P<string>'(?:[^']|'')*')"
    r"|(?P<parameter>%\(\w+\)s|\$\d+)"
    r"|(?P<word>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<sign>\$\$|:=|::|<>|<=|>=|->>?|#>>?|\|\||%%|[-+*/<>=(),;.\[\]&|?@%:{}!~^#\\])"
)
_QUERY: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_PART: Final = re.compile(r"^-- part: \w+\n", re.MULTILINE)
_OBJECT: Final = re.compile(r"^CREATE OR REPLACE (?:FUNCTION|VIEW) draftsman\.(\w+)", re.MULTILINE)
_END: Final = {"FUNCTION": re.compile(r"\$\$;\n|^END;\n", re.MULTILINE), "VIEW": re.compile(r";\n")}
_OPENS: Final = ("WHERE", "ON", "HAVING", "WHEN", "IF", "ELSIF", "AND", "OR")
"""Words before a condition."""
_ENDS: Final = frozenset(
    {
        *("AND", "OR", "THEN", "GROUP", "ORDER", "LIMIT", "FOR", "RETURNING", "UNION", "LEFT"),
        *("CROSS", "JOIN", "FULL", "HAVING", "WHERE", "SET", "FROM", "INNER", "LOOP", "ELSE"),
        *("END", "DO"),
    }
)
"""Words after a condition, at its own level of parentheses."""
_CLAUSES: Final = frozenset(
    ("FROM", "SELECT", "UPDATE", "SET", "FOR", "ORDER", "RETURNING", "OR", "CROSS")
)
"""Words that end a search for the conditions beside another."""
_KEY: Final = re.compile(r"(?:\w+\.)?(?:number|job|ordinal|worker_id) = ")
_COMPARISONS: Final = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_WORDS: Final = {"least": "greatest", "greatest": "least", "bool_and": "bool_or"}


@dataclass(frozen=True, slots=True)
class Token:
    """A word, sign or literal, with its place in the file and its level of parentheses."""

    kind: str
    text: str
    start: int
    depth: int

    @property
    def end(self) -> int:
        """Return the offset behind it."""
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        """Return a word in capitals."""
        return self.text.upper() if self.kind == "word" else self.text


def mutants_of_queries(path: str, source: str) -> list[Mutant]:
    """Return the mutants of all queries of a file of the store, each with the parts before it."""
    names = [*_QUERY.finditer(source)]
    starts = list[int]()
    end_of_last = 0
    for name in names:
        part = _PART.search(source, end_of_last, name.start())
        starts.append(part.end() if part else name.end())
        end_of_last = name.end()
    ends = [*starts[1:], len(source)]
    return [
        mutant
        for name, start, end in zip(names, starts, ends, strict=True)
        for mutant in _Unit(path, name[1], source, start, end).mutants()
    ]


def mutants_of_objects(path: str, source: str, names: frozenset[str]) -> list[Mutant]:
    """Return the mutants of these views and functions of a migration."""
    found = []
    for match in _OBJECT.finditer(source):
        if match[1] in names:
            kind = "VIEW" if "VIEW" in match[0] else "FUNCTION"
            end = _END[kind].search(source, match.end())
            assert end is not None, match[1]
            found += _Unit(path, match[1], source, match.end(), end.end()).mutants()
    return found


class _Unit:
    """A query, view or function."""

    def __init__(self, path: str, name: str, source: str, start: int, end: int) -> None:
        self._path = path
        self._name = name
        self._source = source
        self._tokens = [*_tokens(source, start, end)]

    def mutants(self) -> list[Mutant]:
        """Return all its mutants, in order."""
        found = [
            mutant
            for position, token in enumerate(self._tokens)
            for operator in (
                self._conditions,
                self._locks,
                self._orders,
                self._signs,
                self._negations,
                self._assignments,
                self._fallbacks,
                self._keys,
            )
            for mutant in operator(position, token)
        ]
        return numbered(found)

    def _conditions(self, at: int, token: Token) -> Iterator[Mutant]:
        """Let each condition pass, and take each branch always and never."""
        if token.kind != "word" or token.upper not in _OPENS or self._is_between(at):
            return
        if token.upper == "ON" and self._word(at + 1) in ("CONFLICT", "CONSTRAINT"):
            return
        if token.upper == "IF" and self._word(at - 1) == "END":
            return
        last = self._end_of_condition(at + 1)
        if last < at + 1:
            return
        start = self._tokens[at + 1].start
        end = self._tokens[last].end
        text = self._source[start:end]
        if text.lower() in ("true", "false") or self._is_key_beside_token(at, last):
            return
        if last == at + 1 and self._tokens[last].kind == "string":  # a value of a simple CASE
            return
        follows = self._word(last + 1)
        disjoint = token.upper == "OR" or follows == "OR"
        yield self._mutant(
            f"{'false' if disjoint else 'true'} for {shortened(text)}",
            start,
            end,
            "false" if disjoint else "true",
        )
        if token.upper in ("WHEN", "IF", "ELSIF"):
            yield self._mutant(f"never {shortened(text)}", start, end, f"false AND ({text})")

    def _locks(self, at: int, token: Token) -> Iterator[Mutant]:
        """Drop SKIP LOCKED, and the whole lock."""
        if token.upper == "SKIP" and self._word(at + 1) == "LOCKED":
            end = self._tokens[at + 1].end
            yield self._mutant("drop SKIP LOCKED", token.start, end, "")
        if token.upper == "FOR" and self._word(at + 1) in ("NO", "UPDATE", "KEY", "SHARE"):
            last = at + 1
            while self._word(last + 1) in ("KEY", "UPDATE", "SHARE", "OF", "SKIP", "LOCKED") or (
                self._word(last) == "OF"
            ):
                last += 1
            end = self._tokens[last].end
            text = shortened(self._source[token.start : end])
            yield self._mutant(f"drop {text}", token.start, end, "")

    def _orders(self, at: int, token: Token) -> Iterator[Mutant]:
        """Remove each ORDER BY, and turn each of its keys."""
        if token.upper != "ORDER" or self._is_probe(at):
            return
        last = at + 1
        keys = [at + 1]
        while (after := self._token(last + 1)) is not None and not self._ends(after, token.depth):
            last += 1
            if after.text == "," and after.depth == token.depth:
                keys.append(last)
        end = self._tokens[last].end
        text = shortened(self._source[token.start : end])
        yield self._mutant(f"drop {text}", token.start, end, "")
        for first, final in zip(keys, [*(key - 1 for key in keys[1:]), last], strict=True):
            key = self._tokens[final]
            text = shortened(self._source[self._tokens[first + 1].start : key.end])
            if key.upper == "DESC":
                yield self._mutant(f"ascending {text}", key.start, key.end, "ASC")
            elif key.upper not in ("FIRST", "LAST"):
                yield self._mutant(f"descending {text}", key.end, key.end, " DESC")

    def _signs(self, at: int, token: Token) -> Iterator[Mutant]:
        """Change comparisons, sums, numbers and aggregates."""
        around = self._around(at)
        if token.kind == "sign" and (other := _COMPARISONS.get(token.text)):
            yield self._mutant(f"{other} in {around}", token.start, token.end, other)
        elif token.text in ("+", "-") and self._word(at - 1) not in ("", "THEN", "SELECT", ","):
            other = "-" if token.text == "+" else "+"
            yield self._mutant(f"{other} in {around}", token.start, token.end, other)
        elif token.kind == "number" and token.text.isdecimal() and not self._is_bound(at):
            other = str(int(token.text) + 1)
            yield self._mutant(f"{other} in {around}", token.start, token.end, other)
        elif token.kind == "word" and (other := _WORDS.get(token.text)):
            yield self._mutant(f"{other} in {around}", token.start, token.end, other)

    def _negations(self, at: int, token: Token) -> Iterator[Mutant]:
        """Turn tests for NULL outside of conditions."""
        if self._is_in_condition(at):
            return
        if token.upper == "IS" and self._word(at + 1) in ("NULL", "NOT"):
            around = self._around(at)
            if self._word(at + 1) == "NULL":
                yield self._mutant(f"NOT in {around}", token.end, token.end, " NOT")
            else:
                following = self._tokens[at + 1]
                yield self._mutant(f"no NOT in {around}", following.start, following.end, "")

    def _assignments(self, at: int, token: Token) -> Iterator[Mutant]:
        """Drop each assignment of an UPDATE that has others."""
        if token.upper != "SET" or self._word(at + 1) in ("SEARCH_PATH", "JIT", "ENABLE_SEQSCAN"):
            return
        first = at + 1
        starts = [at + 1]
        last = at + 1
        while (after := self._token(last + 1)) is not None and not (
            after.depth < token.depth
            or (
                after.depth == token.depth
                and (after.text in (";", ")") or after.upper in ("FROM", "WHERE", "RETURNING"))
            )
        ):
            last += 1
            if after.text == "," and after.depth == token.depth:
                starts.append(last + 1)
        if len(starts) == 1:
            return
        for begin, following in zip(starts, [*starts[1:], last + 2], strict=True):
            final = min(following - 2, last)
            name = self._tokens[begin].text
            start = self._tokens[begin].start
            end = self._tokens[final].end
            if begin == first:
                end = self._tokens[following].start
            else:
                start = self._tokens[begin - 1].start
            yield self._mutant(f"drop SET {name}", start, end, "")

    def _fallbacks(self, at: int, token: Token) -> Iterator[Mutant]:
        """Take either value of a coalesce."""
        if token.text != "coalesce" or (self._token(at + 1) or token).text != "(":
            return
        depth = token.depth
        position = at + 2
        commas = []
        while self._tokens[position].depth > depth:
            if self._tokens[position].text == "," and self._tokens[position].depth == depth + 1:
                commas.append(position)
            position += 1
        if len(commas) != 1:
            return
        opened = self._tokens[at + 1]
        comma = self._tokens[commas[0]]
        closed = position - 1
        end = self._tokens[closed].end
        text = shortened(self._source[token.start : end])
        second = self._source[comma.end : end - 1].strip()
        if second.lower() not in ("null", "''", "'{}'"):
            first = self._source[opened.end : comma.start].strip()
            yield self._mutant(f"only the first of {text}", token.start, end, f"({first})")
        yield self._mutant(f"only the second of {text}", token.start, end, f"({second})")

    def _keys(self, at: int, token: Token) -> Iterator[Mutant]:
        """Compare numbers of jobs instead of lease tokens."""
        sign = self._token(at + 1)
        right = at + 2
        if sign is None or sign.text != "=" or "token" not in token.text:
            return
        while (after := self._token(right + 1)) and (
            after.text == "." or self._tokens[right].text == "."
        ):
            right += 1
        if "token" not in self._tokens[right].text:
            return
        text = self._around(at + 1)
        start = token.start
        end = self._tokens[right].end
        pair = self._source[start:end]
        changed = pair.replace("lease_token", "NUMBER").replace("%(token)s", "%(job)s")
        changed = re.sub(r"\btoken\b", "job", changed)
        of_run = self._token(at - 2)
        number = "job" if of_run is not None and of_run.text == "r" else "number"
        yield self._mutant(
            f"job instead of token in {text}", start, end, changed.replace("NUMBER", number)
        )

    # Helpers ----------------------------------------------------------------------------------

    def _mutant(self, change: str, start: int, end: int, text: str) -> Mutant:
        return Mutant(self._path, self._name, change, start, end, text)

    def _token(self, at: int) -> Token | None:
        return self._tokens[at] if 0 <= at < len(self._tokens) else None

    def _word(self, at: int) -> str:
        token = self._token(at)
        return "" if token is None else token.upper

    def _around(self, at: int) -> str:
        """Return the tokens around a sign, which tell it from others."""
        first = max(0, at - 3)
        last = min(len(self._tokens) - 1, at + 3)
        return shortened(self._source[self._tokens[first].start : self._tokens[last].end])

    def _ends(self, token: Token, depth: int) -> bool:
        """Whether a clause of this depth ends before the token."""
        return token.depth < depth or (
            token.depth == depth and (token.upper in _ENDS or token.text in (";", ")"))
        )

    def _is_in_condition(self, at: int) -> bool:
        """Whether a token is a part of a condition, which is changed as a whole."""
        depth = self._tokens[at].depth
        for position in range(at - 1, -1, -1):
            token = self._tokens[position]
            if token.depth < depth:
                return False
            if token.depth == depth and (token.text == "," or token.kind == "word"):
                if token.upper in _OPENS:
                    return True
                if token.text == "," or token.upper in ("SELECT", "RETURNING", "SET", "THEN"):
                    return False
        return False

    def _is_between(self, at: int) -> bool:
        """Whether an AND belongs to BETWEEN."""
        if self._word(at) != "AND":
            return False
        for position in range(at - 1, max(-1, at - 12), -1):
            token = self._tokens[position]
            if token.depth == self._tokens[at].depth and token.upper in ("BETWEEN", "AND", "WHEN"):
                return token.upper == "BETWEEN"
        return False

    def _end_of_condition(self, first: int) -> int:
        """Return the last token of the condition that begins with a token."""
        begin = self._token(first)
        if begin is None:
            return first - 1
        position = first
        cases = 0
        between = 0
        depth = self._tokens[first - 1].depth
        while (token := self._token(position)) is not None:
            if token.depth < depth:
                break
            if token.depth == depth and token.text == ")":
                break
            if token.depth == depth:
                if token.upper == "CASE":
                    cases += 1
                elif token.upper == "END" and cases:
                    cases -= 1
                    position += 1
                    continue
                elif token.upper == "BETWEEN":
                    between += 1
                elif token.upper == "AND" and between:
                    between -= 1
                elif not cases and (
                    (token.upper in _ENDS and not self._is_distinct_from(position))
                    or token.text in (";", ",", "$$")
                ):
                    break
            position += 1
        return position - 1

    def _is_bound(self, at: int) -> bool:
        """Whether a number is an estimate, or the LIMIT of a search for a single row by its key."""
        return self._word(at - 1) == "ROWS" or (
            self._word(at - 1) == "LIMIT" and self._tokens[at].text == "1"
        )

    def _is_probe(self, at: int) -> bool:
        """Whether a clause is of a query that only asks for existence: it names an index."""
        for position in range(at - 1, -1, -1):
            token = self._tokens[position]
            if token.depth == self._tokens[at].depth and token.upper == "SELECT":
                return self._word(position + 1) == "FROM"
        return False

    def _is_key_beside_token(self, at: int, last: int) -> bool:
        """Whether the condition finds a row by index that the token beside it identifies anyway.

        Without it only the plan would differ, which has tests of its own.
        """
        start = self._tokens[at + 1].start
        end = self._tokens[last].end
        if not _KEY.match(self._source[start:end]):
            return False
        before = self._clause(range(at, max(-1, at - 16), -1), self._tokens[at].depth)
        after = self._clause(
            range(last + 1, min(len(self._tokens), last + 16)), self._tokens[at].depth
        )
        return "token =" in before or "token =" in after

    def _clause(self, positions: Iterable[int], depth: int) -> str:
        """Return the conjuncts of this depth in a direction."""
        found = []
        for position in positions:
            token = self._tokens[position]
            if token.depth < depth or token.text == ";" or token.upper in _CLAUSES:
                break
            found.append(position)
        if not found:
            return ""
        return self._source[self._tokens[min(found)].start : self._tokens[max(found)].end]

    def _is_distinct_from(self, at: int) -> bool:
        return self._word(at) == "FROM" and self._word(at - 1) == "DISTINCT"


def _tokens(source: str, start: int, end: int) -> Iterator[Token]:
    depth = 0
    for match in _TOKEN.finditer(source, start, end):
        kind = match.lastgroup or ""
        if kind == "space":
            continue
        if match[0] in (")", "]"):
            yield Token(kind, match[0], match.start(), depth)
            depth -= 1
        elif match[0] in ("(", "["):
            depth += 1
            yield Token(kind, match[0], match.start(), depth)
        else:
            yield Token(kind, match[0], match.start(), depth)
