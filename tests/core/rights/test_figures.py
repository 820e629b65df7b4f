"""Views of questions and figures: people read their own, operators those of all."""

from __future__ import annotations

import pytest

from draftsman.attention import store as attention
from draftsman.attention.figures import AttentionFigures
from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.outbox import send_all
from tests.core.rights.conftest import As
from tests.support.clock import Clock
from tests.support.statements import CHANGE, refused, rows

SINCE = 86_400.0


def figures_by_value(figures: list[AttentionFigures]) -> dict[str, AttentionFigures]:
    return {f"{row.by} {row.value}".strip(): row for row in figures}


async def test_people_read_their_own_figures_and_operators_those_of_all(
    as_role: As, known: Runtime, make: Factory, clock: Clock
) -> None:
    async with known.db.connection() as conn:
        await conn.execute(
            "UPDATE draftsman.person_identities SET external_id = 'U0CAROL'"
            " WHERE external_id = 'U-CAROL'"
        )
    gate = (await make.asked(GATE, notify=("slack:U0CAROL", "log"))).number
    pick = (await make.asked(QUESTION)).number
    work = await make.running()
    assert await known.asking.ask(work.lease, QUESTION, answer="red", invoker=make.owner.voter)
    await send_all(known)
    await send_all(known, "slack")
    await clock.forward(100)
    carol, ben, anna, olga = [await as_role(name) for name in ("carol", "ben", "anna", "olga")]

    async def view(rt: Runtime) -> int:
        return await rt.figures.record_views(await rt.questions.open(), await rt.actor())

    assert [await view(rt) for rt in (carol, carol, ben, anna)] == [1, 0, 1, 0], "once, if allowed"
    await clock.forward(200)
    carol, ben, olga = [await as_role(name) for name in ("carol", "ben", "olga")]
    await make.decide(gate, True, await carol.actor())
    await make.answer(pick, "red", await ben.actor())
    assert await view(ben) == 0

    everything = figures_by_value(await olga.figures.read(SINCE))
    total = everything["all"]
    assert (total.questions, total.jobs, total.answers) == (3, 3, 2)
    assert total.seen_p50 == pytest.approx(100, abs=20)
    assert total.seen_p95 == pytest.approx(100, abs=20)
    assert total.questions_per_job == 1
    assert total.answer_p95 == pytest.approx(300, abs=20)
    assert {key for key in everything if key.startswith("person")} == {"person ben", "person carol"}
    assert (everything["person carol"].pings, everything["person ben"].pings) == (1, 0)
    assert (everything["channel slack"].pings, everything["channel log"].pings) == (1, 1)
    assert everything["kind approval"].pings_per_answer == 2
    assert everything["kind input"].answers == 1, f"without {work.name}, answered by its request"
    assert everything["channel cli"].answers == 2

    own = figures_by_value(await ben.figures.read(SINCE))
    assert {key for key in own if key.startswith("person")} == {"person ben"}
    assert (own["all"].questions, own["all"].answers, own["all"].pings) == (0, 1, 0)
    hers = figures_by_value(await carol.figures.read(SINCE))
    assert (hers["all"].pings, hers["person carol"].answers, "kind input" in hers) == (1, 1, False)
    worker = await as_role("worker")
    bot = await as_role("bot")
    assert figures_by_value(await worker.figures.read(SINCE))["all"].answers == 2
    assert (await bot.figures.read(SINCE))[0].answers == 0
    assert "ben" not in await worker.figures.metrics()


async def test_the_database_keeps_views_of_others(
    as_role: As, known: Runtime, make: Factory, clock: Clock
) -> None:
    number = (await make.asked(QUESTION, notify=("log",))).number
    ben, dave, worker = [await as_role(name) for name in ("ben", "dave", "worker")]
    questions = await ben.questions.open()
    assert await ben.figures.record_views(questions, await ben.actor()) == 1

    async def forge(conn: Connection) -> None:
        await attention.record_views(conn, [(number, 1)], Actor(Source.CLI, "dave", "Dave"))

    for rt, refusal in ((ben, "cannot view as cli:dave"), (worker, "permission denied")):
        with pytest.raises(Refused, match=refusal):
            await rt.db.run_transaction(forge)
    query = "SELECT person FROM draftsman.question_views"
    async with ben.db.connection() as conn:
        assert await rows(conn, query) == [("ben",)]
    async with dave.db.connection() as conn:
        assert await rows(conn, query) == []
    async with known.db.connection() as conn:
        async with refused(CHANGE, "the first view is kept"):
            await conn.execute("UPDATE draftsman.question_views SET person = 'x'")
        async with refused(CHANGE, "the first view is kept"):
            await conn.execute("DELETE FROM draftsman.question_views")
    await clock.forward(46_000)
    await known.sweeps.run_now("remind", make.owner)
    await send_all(known)
    figures = await known.figures.read(SINCE)
    assert (figures[0].pings, figures[0].quiet_pings) == (2, 0)
