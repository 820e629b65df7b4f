"""Constraints of permission rules, and patterns: the database decides as the domain does."""

from __future__ import annotations

import random
from typing import Final

from draftsman.database.database import Connection
from draftsman.questions.permission_rules.command_pattern import matches, parse_pattern, plain_words
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.database.test_group_checks import insert
from tests.support.cases import cases
from tests.support.permissions import asked, ratified
from tests.support.statements import CHANGE, CHECK, UNIQUE, refused, rows, run

RULE: Final = {
    "repo": "'acme/shop'",
    "pattern": "'{pytest,tests/**}'",
    "decisions": "5",
    "seconds": "60",
    "proposed_by": "'system'",
}
REQUEST: Final = {"job": "1", "question": "1", "repo": "'acme/shop'", "words": "'{ls}'"}
ACTIVE: Final = {
    "status": "'active'",
    "ratified_at": "now()",
    "ratified_by": "'olga'",
    "expires_at": "now()",
}
ENDED: Final = {"ended_at": "now()", "ended_by": "'olga'", "end_reason": "'wrong'"}
RULES: Final = [
    *(
        ({"pattern": pattern}, "permission_rules_pattern_check")
        for pattern in (
            *("'{}'", "'{tests/**}'", "'{pytest,/**}'", "'{pytest,../*}'", "'{pytest,a;b}'"),
            *("'{pytest,**}'", "'{pytest,tests*}'", "'{pytest,a::b/*}'", "'{pytest,\"a b\"}'"),
            "'{FOO=1,ls}'",
        )
    ),
    ({"repo": "''"}, "permission_rules_repo_check"),
    ({"decisions": "-1"}, "permission_rules_decisions_check"),
    ({"seconds": "0"}, "permission_rules_seconds_check"),
    ({"seconds": "1e9"}, "permission_rules_seconds_check"),
    ({"proposed_by": "''"}, "permission_rules_proposed_by_check"),
    ({"status": "'active'"}, "permission_rules_ratified"),
    (ACTIVE | {"ratified_by": "''"}, "permission_rules_ratified_by_check"),
    (ACTIVE | {"ratified_by": "NULL"}, "permission_rules_ratified"),
    (ACTIVE | {"status": "'proposed'"}, "permission_rules_ratified"),
    (ACTIVE | {"expires_at": "now() + interval '400 days'"}, "permission_rules_expiry"),
    ({"status": "'revoked'"}, "permission_rules_ended"),
    (ENDED, "permission_rules_ended"),
    (ENDED | {"status": "'revoked'", "ended_by": "''"}, "permission_rules_ended_by_check"),
    (ENDED | {"status": "'revoked'", "end_reason": "''"}, "permission_rules_end_reason_check"),
    (ENDED | {"status": "'revoked'", "end_reason": "NULL"}, "permission_rules_ended"),
]
REQUESTS: Final = [
    ({"repo": "''"}, "permission_requests_repo_check"),
    ({"words": "'{\"ls -l\"}'"}, "permission_requests_words_check"),
    ({"words": "'{ls,NULL}'"}, "permission_requests_words_check"),
]
TABLES: Final = (RULES, REQUESTS)
PATTERNS: Final = (
    "pytest tests/**",
    "pytest tests/*",
    "pytest tests/unit/** -q",
    "python -m pytest a/**",
    "go test",
)
PIECES: Final = (
    *("pytest", "python", "go", "test", "-m", "-q", "tests", "unit", "tests/", "a.py", "::test"),
    *("/", "..", ".", "//", ".git", "-x", ";", "|", "$x", "…", " ", "\n", "é", "a", "a/b", "x::y"),
)


@cases(("columns", "constraint"), RULES)
async def test_rules_are_whole(conn: Connection, columns: dict[str, str], constraint: str) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("permission_rules", RULE | columns))


@cases(("columns", "constraint"), REQUESTS)
async def test_permission_requests_have_plain_words(
    conn: Connection, columns: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("permission_requests", REQUEST | columns))


async def test_a_pattern_has_a_single_current_rule_and_its_end_is_final(
    conn: Connection, rt: Runtime, people: People, make: Factory
) -> None:
    rule = await ratified(rt, "pytest tests/**", people.olga, repo="acme/shop")
    async with refused(UNIQUE, "permission_rules_current"):
        await run(conn, insert("permission_rules", RULE))
    change = "UPDATE draftsman.permission_rules SET "
    for wrong in ("expires_at = expires_at + interval '1 day'", "repo = 'x'", "pattern = '{ls}'"):
        async with refused(CHANGE, "a rule that ended and its pattern are kept"):
            await run(conn, change + wrong)
    await rt.rules.revoke(rule.id, people.olga)
    async with refused(CHANGE, "a rule that ended and its pattern are kept"):
        await run(conn, change + "end_reason = 'other'")
    async with refused(CHANGE, "rules are never deleted"):
        await run(conn, "DELETE FROM draftsman.permission_rules")
    await asked(make, "ls")
    for table in ("permission_requests", "rule_uses", "permission_rules"):
        async with refused(CHANGE, "never deleted"):
            await run(conn, f"TRUNCATE draftsman.{table} CASCADE")


async def test_the_database_matches_patterns_as_the_domain_does(conn: Connection) -> None:
    chosen = random.Random(22)
    commands = [
        *("pytest tests/a.py", "pytest tests/unit/a.py -q", "python -m pytest a/b", "go test"),
        *("".join(chosen.choices(PIECES, k=chosen.randint(1, 8))) for _ in range(20_000)),
        *(f"pytest tests/{''.join(chosen.choices(PIECES, k=3))}" for _ in range(5_000)),
    ]
    plain = [words for command in commands if (words := plain_words(command)) is not None]
    assert len(plain) > 500
    matched = 0
    for text in PATTERNS:
        pattern = parse_pattern(text)
        assert pattern is not None
        found = await rows(
            conn,
            "SELECT draftsman.is_pattern(%(pattern)s::text[])"
            " AND draftsman.matches_pattern(%(pattern)s::text[], string_to_array(w, ' '))"
            " AND draftsman.are_plain_words(string_to_array(w, ' '))"
            " FROM unnest(%(commands)s::text[]) WITH ORDINALITY AS c (w, n) ORDER BY n",
            {"pattern": list(pattern), "commands": [" ".join(words) for words in plain]},
        )
        expected = [matches(pattern, words) for words in plain]
        assert [row[0] for row in found] == expected
        matched += sum(expected)
    assert matched > 100
