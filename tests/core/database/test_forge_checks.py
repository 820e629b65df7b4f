"""Constraints of events of forges, of pull requests and of their follow-ups."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from tests.core.database.test_group_checks import insert
from tests.support.cases import cases
from tests.support.statements import CHECK, refused, run

EVENT: Final = {
    "forge": "'acme'",
    "project": "'acme/pay'",
    "number": "1",
    "key": "'comment:1'",
    "kind": "'issue_comment'",
    "source": "'forge'",
    "author": "'anna'",
    "author_name": "'Anna'",
    "is_bot": "false",
    "title": "''",
    "text": "'x'",
}
DONE: Final = {"processed_at": "now()"}
EVENTS: Final = [
    ({"forge": "''"}, "forge_events_forge_check"),
    ({"project": "'Acme/pay'"}, "forge_events_project_check"),
    ({"number": "0"}, "forge_events_number_check"),
    ({"key": "''"}, "forge_events_key_check"),
    ({"kind": "'Poke'"}, "forge_events_kind_check"),
    ({"text": "repeat('x', 10001)"}, "forge_events_text"),
    ({"text": "repeat('x', 60001)", "kind": "'labeled_issue'"}, "forge_events_text"),
    (DONE | {"outcome": "'lost'"}, "forge_events_outcome_check"),
    (DONE | {"outcome": "'submitted'", "kind": "'comment'"}, "forge_events_outcome_check"),
    (DONE | {"outcome": "'answered'", "kind": "'review'"}, "forge_events_outcome_check"),
    ({"outcome": "'ignored'"}, "forge_events_processed"),
    (DONE, "forge_events_processed"),
    (DONE | {"outcome": "'sent'"}, "forge_events_sent"),
    (DONE | {"outcome": "'ignored'", "message": "1", "job": "1"}, "forge_events_sent"),
    (DONE | {"outcome": "'ignored'", "answered_at": "now()"}, "forge_events_answered"),
]
PULL: Final = {
    "root": "1",
    "forge": "'acme'",
    "project": "'acme/pay'",
    "number": "1",
    "url": "'u'",
    "branch": "'b'",
    "base": "'main'",
    "head": "'c'",
}
PULLS: Final = [
    ({"forge": "''"}, "pull_requests_forge_check"),
    ({"project": "'Acme/pay'"}, "pull_requests_project_check"),
    ({"number": "0"}, "pull_requests_number_check"),
    ({"state": "'lost'", "ended_at": "now()"}, "pull_requests_state_check"),
    ({"state": "'merged'"}, "pull_requests_ended"),
    ({"ended_at": "now()"}, "pull_requests_ended"),
]
FOLLOW_UP: Final = {"job": "2", "root": "1", "ordinal": "1", "parent": "1"}
FOLLOW_UPS: Final = [
    ({"ordinal": "0"}, "follow_ups_ordinal_check"),
    ({"parent": "2"}, "follow_ups_check"),
]
TABLES: Final = (EVENTS, PULLS, FOLLOW_UPS)


@cases(("wrong", "constraint"), EVENTS)
async def test_an_event_is_complete(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("forge_events", EVENT | wrong))


@cases(("wrong", "constraint"), PULLS)
async def test_a_pull_request_is_complete(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("pull_requests", PULL | wrong))


@cases(("wrong", "constraint"), FOLLOW_UPS)
async def test_a_follow_up_is_complete(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("follow_ups", FOLLOW_UP | wrong))
