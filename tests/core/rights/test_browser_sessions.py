"""Rights on links and sessions of the web inbox, by database role."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import psycopg
import pytest

from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.people.browser_session import SignInMethod
from draftsman.people.service.browser_sessions import BrowserSessions
from draftsman.people.store import browser_sessions as store
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from tests.core.rights.conftest import As
from tests.support.statements import FORBIDDEN, refused

LINK = "1" * 64
SESSION = "2" * 64
OTHER = "3" * 64
Session = Callable[[str], Awaitable[Connection]]


async def _open(
    conn: Connection, digest: str, *, link: str | None = None, person: str | None = None
) -> str | None:
    method = SignInMethod.LINK if link else SignInMethod.PROXY
    return await store.open_session(
        conn, digest, method, link=link, person=person, user_agent="", seconds=600
    )


async def test_people_create_links_for_themselves_only(session: Session) -> None:
    anna = await session("anna")
    bot = await session("bot")
    await store.create_link(anna, "anna", LINK, 900)
    async with refused(FORBIDDEN, "cannot create a link for ben"):
        await store.create_link(anna, "ben", OTHER, 900)
    for seconds in (0, 3601):
        async with refused(FORBIDDEN, "at most an hour"):
            await store.create_link(anna, "anna", OTHER, seconds)
    await store.create_link(bot, "anna", LINK, 900)
    async with refused(FORBIDDEN, "a link for mallory"):
        await store.create_link(bot, "mallory", OTHER, 900)
    stranger = await session("stranger")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await store.create_link(stranger, "anna", OTHER, 900)
    assert await store.person_of_link(bot, LINK) == "anna"
    assert await _open(bot, SESSION, link=LINK) == "anna"
    assert await _open(bot, OTHER, link=LINK) is None


async def test_people_see_and_end_their_own_sessions_operators_all(session: Session) -> None:
    bot = await session("bot")
    for digest, person in ((SESSION, "anna"), (OTHER, "ben")):
        assert await _open(bot, digest, person=person) == person
    async with refused(FORBIDDEN, "there is no person mallory"):
        await _open(bot, "4" * 64, person="mallory")
    async with refused(FORBIDDEN, "needs a link"):
        await store.open_session(
            bot, LINK, SignInMethod.LINK, link=None, person="anna", user_agent="", seconds=600
        )
    anna = await session("anna")
    olga = await session("olga")
    assert [item.person for item in await store.sessions(anna, 10)] == ["anna"]
    everyone = await store.sessions(olga, 10)
    assert [item.person for item in everyone] == ["anna", "ben"]
    assert await store.end(anna, everyone[1].id, None) == 0
    assert await store.end(anna, None, "ben") == 0
    assert await store.end(anna, everyone[0].id, None) == 1
    assert await store.end(olga, None, "ben") == 1
    assert await store.find(bot, OTHER) is None


@pytest.mark.parametrize("table", ["sign_in_links", "browser_sessions"])
async def test_no_role_reads_digests(session: Session, table: str) -> None:
    for user in ("worker", "bot", "anna", "reader"):
        conn = await session(user)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await conn.execute(f"SELECT digest FROM draftsman.{table}".encode())


async def test_a_bot_decides_for_signed_in_people_with_their_rights(
    as_role: As, known: Runtime, make: Factory
) -> None:
    work = await make.asked(GATE)
    bot = await as_role("bot")
    sessions = BrowserSessions(bot.db, bot.policy)

    async def decide(person: str) -> Verdict:
        token = await sessions.open(SignInMethod.PROXY, person, "", 600)
        found = await sessions.find(token or "", "web")
        assert found is not None
        assert found[1].name == f"web:{person}"
        viewed = await bot.figures.record_views(await bot.questions.open(work.number), found[1])
        assert viewed == (1 if person == "carol" else 0)
        response = Response(source_event_id=f"web:{person}", decision=Decision.APPROVE)
        return await bot.questions.answer(work.number, 1, response, found[1])

    assert (await decide("ben")).accepted is False
    assert (await decide("carol")).resolved
    forged = Actor("web", "dave", "Dave", person="carol", roles=frozenset({"approver"}))
    other = await make.asked(GATE)
    response = Response(source_event_id="web:forged", decision=Decision.APPROVE)
    verdict = await bot.questions.answer(other.number, 1, response, forged)
    assert verdict.resolution is not None
    assert verdict.resolution["by"] == ["dave"], "the account decides, not the name in the process"
