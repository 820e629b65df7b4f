"""Events of forges: bots store those of accounts in their channels, without an effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from draftsman.database.database import Connection
from draftsman.jobs.requests.service.submissions import invocation
from draftsman_testing.factories import Factory
from tests.core.rights.conftest import As
from tests.support.statements import FORBIDDEN, refused, rows

EVENT = (
    "INSERT INTO draftsman.forge_events (forge, project, number, key, kind, source, author,"
    " author_name, is_bot, title, text)"
    " VALUES ('acme', 'acme/pay', 1, %s, 'comment', %s, %s, '', false, '', 'x') RETURNING 1"
)


async def test_a_bot_stores_no_events_of_people_in_the_terminal(
    session: Callable[[str], Awaitable[Connection]],
) -> None:
    conn = await session("bot")
    for channel, author in (("forge", "ben"), ("forge", ""), ("slack", "U-BEN")):
        assert await rows(conn, EVENT, (channel + author, channel, author)) == [(1,)]
    async with refused(FORBIDDEN, "events of cli:olga"):
        await conn.execute(EVENT, ("a", "cli", "olga"))
    done = EVENT.replace("(forge,", "(outcome, processed_at, forge,").replace(
        "('acme',", "('ignored', draftsman.now(), 'acme',", 1
    )
    async with refused(FORBIDDEN, "permission denied"):
        await conn.execute(done, ("b", "forge", "ben"))


async def test_a_person_asks_for_a_follow_up_of_an_own_job(as_role: As, make: Factory) -> None:
    anna = await as_role("anna")
    job = (await anna.submissions.submit(invocation(text="x"), await anna.actor())).number
    async with make.rt.db.connection() as conn:
        await conn.execute(
            "INSERT INTO draftsman.pull_requests"
            " (root, forge, project, number, url, branch, base, head)"
            " VALUES (%s, 'acme', 'acme/pay', 1, 'u', 'b', 'main', 'h')",
            (job,),
        )
    query = "SELECT draftsman.request_follow_up(%s, 'cli', %s, 'Anna', 'e', 'x')"
    async with anna.db.connection() as conn:
        [(login,)] = await rows(conn, "SELECT session_user::text")
        assert await rows(conn, query, (job, login)) == [("u",)]
        assert await rows(conn, "SELECT author FROM draftsman.forge_events") == [(login,)]


async def test_only_a_bot_binds_the_login_of_a_person_to_an_account(
    session: Callable[[str], Awaitable[Connection]], conn: Connection
) -> None:
    """A login without an account could be bound in advance, to an account of another person."""
    bind = "SELECT draftsman.bind_account('forge', 'acme:anna', '7')"
    bot = await session("bot")
    async with refused(FORBIDDEN, "bot cannot bind forge:acme:anna"):
        await bot.execute(bind)
    await conn.execute(
        "INSERT INTO draftsman.person_identities (person, channel, external_id)"
        " VALUES ('anna', 'forge', 'acme:anna')"
    )
    for name in ("anna", "worker"):
        async with refused(FORBIDDEN, "bind_account"):
            await (await session(name)).execute(bind)
    assert await rows(bot, bind) == [("7",)]
