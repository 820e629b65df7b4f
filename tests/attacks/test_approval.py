"""Attacks on approvals by users with a login, a chat account or a worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from psycopg.types.json import Jsonb

from draftsman.database.database import Connection
from draftsman.errors import NotPermitted, Refused, UsageError
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.people.policy import Person, Policy
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.questions.store import approval_tokens as token_store
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from tests.attacks.catalog import attack
from tests.core.rights.conftest import As, as_role, known, roles, session
from tests.support.statements import FORBIDDEN, refused, rows

__all__ = ["as_role", "known", "roles", "session"]
Session = Callable[[str], Awaitable[Connection]]


def _yes(event: str, **fields: str) -> Response:
    return Response(source_event_id=event, decision=Decision.APPROVE, **fields)


@attack(
    "An operator mints an approver's token and approves their own job",
    surface="approval",
    with_sandbox="refused by the service and by the database; an event says so",
)
async def test_an_operator_cannot_create_an_approvers_token(
    as_role: As, session: Session, make: Factory
) -> None:
    olga = await as_role("olga")
    work = await make.asked(GATE)
    with pytest.raises(NotPermitted, match="only carol can"):
        await olga.questions.mint_token(work.number, 1, "carol", await olga.actor())
    async with refused(FORBIDDEN, "cannot mint a token for carol"):
        await token_store.mint(
            await session("olga"),
            work.number,
            1,
            approver="carol",
            minted_by="carol",
            token_hash="hash",
            actor=(await olga.actor()).name,
        )
    assert (await olga.read_model.job_events(work.number))[-1].kind == "token_refused"


@attack(
    "A role without a mapping redeems a token of another user",
    surface="approval",
    with_sandbox="refused: only the approver redeems a token",
)
async def test_a_role_without_a_mapping_cannot_use_a_token(as_role: As, make: Factory) -> None:
    carol = await as_role("carol")
    unmapped = await as_role("stranger")
    work = await make.asked(GATE)
    token = await carol.questions.mint_token(work.number, 1, "carol", await carol.actor())
    verdict = await unmapped.questions.answer(
        work.number, 1, _yes("s", token=token), await unmapped.actor()
    )
    assert not verdict.accepted
    assert verdict.reason is not None
    assert "only the approver can redeem" in verdict.reason


@attack(
    "The requester of a job redeems the token that was minted for them",
    surface="approval",
    with_sandbox="refused: a requester does not decide their own job",
)
async def test_the_requester_cannot_use_a_token(as_role: As, make: Factory, rt: Runtime) -> None:
    erin = await as_role("erin")
    work = await make.running(await make.queued(actor=await erin.actor()))
    item = GATE.model_copy(update={"approvers": ("erin", "carol")})
    await rt.asking.ask(work.lease, item, invoker="erin")
    with pytest.raises(NotPermitted, match="erin requested this job"):
        await erin.questions.mint_token(work.number, 1, "erin", await erin.actor())
    conn = await erin.db.dedicated_connection()
    async with refused(FORBIDDEN, "cannot mint a token for erin"):
        await token_store.mint(
            conn,
            work.number,
            1,
            approver="erin",
            minted_by="erin",
            token_hash="hash",
            actor=(await erin.actor()).name,
        )
    await conn.close()


@attack(
    "A client makes its user an approver in its own configuration",
    surface="approval",
    with_sandbox="refused: the database identifies the person by the login role",
)
async def test_a_client_cannot_make_its_user_an_approver(as_role: As, make: Factory) -> None:
    anna = await as_role("anna")
    work = await make.asked(GATE)
    login = (await anna.actor()).id
    carol = Person("carol", frozenset({"approver"}), {Source.CLI: login})
    anna.policy.update_from(Policy({"carol": carol}))
    actor = await anna.actor()
    assert actor.person == "carol"
    with pytest.raises(Refused, match="anna may not answer"):
        await anna.questions.answer(work.number, 1, _yes("a"), actor)
    assert (await anna.read_model.job(work.number)).status is Status.WAITING_FOR_APPROVAL


@attack(
    "A person approves in the name of another person's login",
    surface="approval",
    with_sandbox="refused: a person's session acts for its own role alone",
)
async def test_a_person_cannot_approve_for_another_login(as_role: As, make: Factory) -> None:
    anna = await as_role("anna")
    carol = await as_role("carol")
    work = await make.asked(GATE)
    with pytest.raises(Refused, match="cannot answer as cli"):
        await anna.questions.answer(work.number, 1, _yes("a"), await carol.actor())


@attack(
    "A bot approves in the name of a login of the command line",
    surface="approval",
    with_sandbox="refused: a bot acts for chat identities alone",
)
async def test_a_bot_cannot_approve_for_a_login(as_role: As, make: Factory) -> None:
    bot = await as_role("bot")
    carol = await as_role("carol")
    work = await make.asked(GATE)
    with pytest.raises(Refused, match="cannot answer as cli"):
        await bot.questions.answer(work.number, 1, _yes("b"), await carol.actor())


@attack(
    "A person approves in the name of a chat identity",
    surface="approval",
    with_sandbox="refused: the bot's role alone acts for chat identities",
)
async def test_a_person_cannot_approve_for_a_chat_identity(as_role: As, make: Factory) -> None:
    anna = await as_role("anna")
    work = await make.asked(GATE)
    carol = Actor("slack", "U-CAROL", "Carol")
    with pytest.raises(Refused, match="cannot answer as slack:U-CAROL"):
        await anna.questions.answer(work.number, 1, _yes("a"), carol)


@attack(
    "A person votes twice, by two channels, to reach a quorum of two",
    surface="approval",
    with_sandbox="refused: the second vote is the same person's",
)
async def test_votes_of_a_person_by_two_channels_count_once(
    as_role: As, session: Session, make: Factory
) -> None:
    carol = await as_role("carol")
    bot = await as_role("bot")
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    assert (await carol.questions.answer(work.number, 1, _yes("c"), await carol.actor())).accepted
    chat = Actor("slack", "U-CAROL", "Carol")
    verdict = await bot.questions.answer(work.number, 1, _yes("s"), chat)
    assert verdict.reason == "carol has already approved; each person votes once"
    conn = await session("bot")
    insert = (
        "INSERT INTO draftsman.job_answers (job, question, kind, source, source_event_id,"
        " responder_id, voter, payload, accepted)"
        " VALUES (%s, 1, 'approval', 'slack', 'forged', 'U-CAROL', 'dave', %s, true)"
    )
    with pytest.raises(Exception, match="job_answers_vote"):
        await conn.execute(insert, (work.number, Jsonb({"decision": "approve"})))


@attack(
    "An agent asks for more approvals than there are approvers",
    surface="approval",
    with_sandbox="refused, with the numbers of approvals and approvers",
)
async def test_a_quorum_above_the_number_of_approvers_is_refused(
    as_role: As, make: Factory
) -> None:
    worker = await as_role("worker")
    work = await make.running()
    item = GATE.model_copy(update={"quorum": 3})
    with pytest.raises(UsageError, match="cannot reach its quorum of 3"):
        await worker.asking.ask(work.lease, item, invoker="anna")


@attack(
    "A flood of refused votes fills the tables",
    surface="approval",
    with_sandbox="20 of each voter are stored, the rest are counted",
)
async def test_a_flood_of_refused_votes_is_counted(
    as_role: As, make: Factory, conn: Connection
) -> None:
    ben = await as_role("ben")
    work = await make.asked(GATE)
    actor = await ben.actor()
    for n in range(30):
        assert not (await ben.questions.answer(work.number, 1, _yes(str(n)), actor)).accepted
    stored = await rows(conn, "SELECT count(*) FROM draftsman.job_answers")
    counted = await rows(conn, "SELECT answers FROM draftsman.refused_answers")
    assert (stored, counted) == ([(20,)], [(10,)])
