"""The database names the rules that statements break; the programs have a sentence for each."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

import draftsman
from draftsman.database.database import Connection, to_domain_error
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


async def test_a_single_function_raises_errors(conn: Connection) -> None:
    raising = {name for name, text in await rows(conn, FUNCTIONS) if RAISE.search(text)}
    assert raising == {"refuse"}


async def test_each_rule_has_a_sentence_and_each_sentence_a_rule(conn: Connection) -> None:
    texts = "\n".join(text for _, text in await rows(conn, FUNCTIONS))
    arguments = [text.removesuffix(r"\000") for (text,) in await rows(conn, TRIGGERS)]
    packages = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.rglob("sentences.py")
    }
    named = {f"{package}.{name}" for package in packages for name in of_package(package)}
    rules = {rule for rule in RULE.findall(texts) if rule.partition(".")[0] in packages}
    assert rules | set(arguments) == named


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
