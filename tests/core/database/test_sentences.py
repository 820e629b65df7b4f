"""The database names the rules that statements break; the programs have a sentence for each."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import draftsman
from draftsman.channels.registry import channel, channels
from draftsman.database.database import Connection, to_domain_error
from draftsman.database.migration_files import available
from draftsman.database.sentences import of_package, sentence, stored_text
from draftsman.errors import Refused
from tests.support.statements import rows, run

RAISE = re.compile(r"\bRAISE\b(?!;)")
RULE = re.compile(r"'([a-z]+\.[a-z_]+)'")
FUNCTIONS = """
SELECT p.proname, coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) FROM pg_proc p
 WHERE p.pronamespace = 'draftsman'::regnamespace
"""
TRIGGERS = """
SELECT DISTINCT encode(t.tgargs, 'escape') FROM pg_trigger t
 WHERE t.tgfoid = 'draftsman.refuse_change'::regproc
"""
ROOT = Path(draftsman.__path__[0])
COMMENT = re.compile(r"--.*|^\\.*|^COMMENT ON (?:'(?:[^']|'')*'|[^;'])*;", re.MULTILINE)
"""A comment, a command of psql or the description of an object."""
LITERAL = re.compile(r"'((?:[^']|'')*)'")
WORDS = re.compile(r"[a-z]{2,}[,;:]? +\(?[a-z]{2,}|^\W? +[a-z]{2,}|(?<![\w.])[a-z]{2,}[,;:]? +$")
"""Words of a sentence, or a part of it that others are joined to."""
STATEMENT = re.compile(
    r"(ALTER|CREATE|DELETE|DROP|EXECUTE|FUNCTION|GRANT|INSERT|LOCK|NOT|POLICY|SELECT|TRIGGER|UPDATE"
    r"|USAGE|VIEW)\b"
)
"""The beginning of a part of a statement."""
ROLES = {"worker", "bot", "person", "reader"}
TERMS = {
    "autovacuum worker",
    "client backend",
    "timestamp with time zone",
    "rule %%s proposed",
    " slack:",
    "allow once",
    "allow for this job",
    "{{allow once,allow once},{deny,deny},{allow for this job,allow for this job}}",
}
"""Terms of PostgreSQL, keys and choices."""


async def test_a_single_function_raises_errors(conn: Connection) -> None:
    raising = {name for name, text in await rows(conn, FUNCTIONS) if RAISE.search(text)}
    assert raising == {"refuse"}


async def test_each_rule_has_a_sentence_and_each_sentence_a_rule(conn: Connection) -> None:
    texts = "\n".join([text for _, text in await rows(conn, FUNCTIONS)] + list(_queries().values()))
    arguments = [text.removesuffix(r"\000") for (text,) in await rows(conn, TRIGGERS)]
    packages = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.rglob("sentences.py")
    }
    packages |= {channel.name for channel in channels() if channel.sentences is not None}
    named = {f"{package}.{name}" for package in packages for name in of_package(package)}
    rules = {rule for rule in RULE.findall(texts) if rule.partition(".")[0] in packages}
    assert rules | set(arguments) == named


def test_no_sentence_is_in_a_migration_or_a_query() -> None:
    texts = {item.name: item.sql for item in available()}
    sentences = [
        (name, literal)
        for name, text in (texts | _queries()).items()
        for literal in LITERAL.findall(COMMENT.sub("", text))
        if WORDS.search(literal)
        and not STATEMENT.match(literal)
        and literal not in TERMS
        and not ROLES.issuperset(literal.split())
    ]
    assert sentences == []


def _queries() -> dict[str, str]:
    """Return the texts of the files of queries by their paths."""
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in sorted(ROOT.rglob("*.sql"))
    }


async def test_a_refusal_is_a_sentence_for_people_and_names_for_the_owner(conn: Connection) -> None:
    with pytest.raises(psycopg.Error) as caught:
        await run(
            conn,
            "SELECT draftsman.deny_access('questions.answer', %s)",
            ('{"voter": "anna", "job": 13, "question": 1}',),
        )
    assert caught.value.diag.message_primary == "questions.answer"
    error = to_domain_error(caught.value)
    assert isinstance(error, Refused)
    assert str(error) == "permission denied for the database role: anna may not answer D-13/1"


async def test_a_rule_of_a_newer_schema_is_named_with_its_values(conn: Connection) -> None:
    for rule in ("questions.new_rule", "new_package.rule"):
        with pytest.raises(psycopg.Error) as caught:
            await run(conn, "SELECT draftsman.refuse('DM004', %s, '{\"job\": 13}')", (rule,))
        assert str(to_domain_error(caught.value)) == f'{rule} {{"job": 13}}'


def test_a_stored_sentence_is_read_as_its_text() -> None:
    stored = '{"values": {"job": 7}, "sentence": "workflows.dead_letter"}'
    assert stored_text(stored) == "D-7 is a dead letter"
    for text in (
        "because",
        "{}",
        '{"values": {"job": 7}}',
        '{"values": {}, "sentence": 5}',
        '{"values": {}, "values": 5, "sentence": "jobs.control"}',
        '{"values": {"a": ' + "[" * 100_000,
        stored[:-1],
    ):
        assert stored_text(text) == text


def test_an_unknown_name_is_returned_with_its_values() -> None:
    for name in ("", ".", "jobs", "jobs.", "jobs.x", "a b.c", "..x", "text.x", "jobs.control"):
        assert sentence(name, {}) == f"{name} {{}}"


def test_the_sentence_of_a_channel_is_in_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sentence("pager.event_kept", {}) == "an event of a pager is kept"
    broken = replace(channel("pager"), sentences="draftsman_bots.pagers.absent")
    monkeypatch.setattr("draftsman.channels.registry.find", lambda _name: broken)
    assert sentence("pager.event_kept", {}) == "pager.event_kept {}"
