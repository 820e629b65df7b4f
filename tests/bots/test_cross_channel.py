"""An answer in any channel closes the question everywhere; late answers get the reason."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.question import OnDeny, QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman.settings import Settings, settings_model
from draftsman_testing.factories import Factory
from draftsman_testing.slack import FakeSlack
from draftsman_testing.trello import FakeTrello
from tests.bots.cross_channel import (
    DENIAL_REASON,
    AnswerPath,
    CrossChannelJob,
    account,
    member_of,
    street,
)
from tests.support.slow import slow_except
from tests.tui.cli.cli_runner import Cli

PICK = QuestionSpec(key="pick", text="Which one?", choices=("red", "blue"), freeform=True)
GATE = QuestionSpec(
    key="gate", kind=QuestionKind.APPROVAL, text="Deploy?", approvers=tuple(AnswerPath),
    on_deny=OnDeny.CONTINUE,
)  # fmt: skip
ROLES = ["invoker", "responder", "approver"]
DECISIONS = [
    (AnswerPath.BUTTON, True),
    (AnswerPath.MODAL, False),
    (AnswerPath.THREAD, False),
    (AnswerPath.CARD, True),
    (AnswerPath.SHELL, False),
]


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as server:
        for path in AnswerPath:
            server.user(path, id=account(path))
        yield server


@pytest.fixture
async def trello() -> AsyncIterator[FakeTrello]:
    async with FakeTrello() as server:
        for path in AnswerPath:
            server.member(path)
        yield server


@pytest.fixture
def people(slack: FakeSlack, trello: FakeTrello) -> dict[str, Any]:
    """Add five people with accounts in both chats."""
    return {
        path: {"slack": account(path), "trello": member_of(trello, path), "roles": ROLES}
        for path in AnswerPath
    }


@pytest.fixture
def settings(settings: Settings, people: dict[str, Any]) -> Settings:
    """Retry transient failures at once."""
    messages = {"base_delay": 0.01, "max_delay": 0.02, "poll": 0.05, "timeout": 5}
    changed = {"people": people, "groups": {}, "notifications": messages}
    return settings_model().model_validate(settings.model_dump() | changed)


@pytest.fixture
async def cli(
    rt: Runtime,
    people: dict[str, Any],
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Cli:
    """Provide the command line of the person who answers there."""
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", database_url)
    monkeypatch.setenv("DRAFTSMAN_DATA_DIR", str(tmp_path / "data"))
    people[AnswerPath.SHELL]["login"] = (await rt.actor()).id
    lines = [
        f"people.{name}.{key} = {json.dumps(value)}"
        for name, fields in people.items()
        for key, value in fields.items()
    ]
    config = tmp_path / "draftsman.toml"
    config.write_text("\n".join(lines))
    return Cli(config, capsys)


@pytest.fixture
async def world(
    rt: Runtime, make: Factory, cli: Cli, slack: FakeSlack, trello: FakeTrello
) -> AsyncIterator[CrossChannelJob]:
    async with street(rt, make, cli, slack, trello) as job:
        yield job
    assert slack.complaints == []


async def settled(
    world: CrossChannelJob, says: str, late: tuple[AnswerPath, ...], why: str, by: str = ""
) -> None:
    """Check that every copy shows the answer, and that late answers get the reason."""
    for copy in await world.copies():
        assert says in copy, copy
    shell = await world.shell()
    assert says.removeprefix("was ").split()[0] in shell
    assert by in shell
    for path in late:
        assert why in await world.late(path), path
    for copy in await world.copies():
        assert says in copy, copy


async def passed(world: CrossChannelJob, status: Status) -> int:
    """Return how often the job had a status."""
    return [event.to_status for event in await world.job_events()].count(status)


def others(path: AnswerPath) -> tuple[AnswerPath, ...]:
    return tuple(item for item in AnswerPath if item is not path)


@pytest.mark.parametrize("path", slow_except([AnswerPath.BUTTON, AnswerPath.THREAD], AnswerPath))
async def test_answer_in_any_channel_closes_all_copies(
    world: CrossChannelJob, path: AnswerPath
) -> None:
    await world.ask(PICK)
    choice = "blue" if path is AnswerPath.BUTTON else "red"
    await world.say(path, choice)
    assert await passed(world, Status.RESUMED) == 1
    says = f"was answered by {path}: {choice}"
    await settled(world, says, others(path), f"D-1/1 was already answered by {path}", path)
    assert await passed(world, Status.RESUMED) == 1
    _, values = await world.rt.questions.of_job(1)
    assert [item.voter for item in values if item.accepted] == [path]
    assert len(values) == len(AnswerPath), "what came late is kept"


@pytest.mark.parametrize(("path", "yes"), slow_except(DECISIONS[1::2], DECISIONS))
async def test_decision_in_any_channel_closes_all_copies(
    world: CrossChannelJob, path: AnswerPath, yes: bool
) -> None:
    await world.ask(GATE)
    await world.say(path, yes)
    assert await passed(world, Status.RESUMED) == 1
    text = "approved" if yes else "denied"
    says = f"was {text} by {path}" + ("" if yes else f": {DENIAL_REASON}")
    await settled(world, says, others(path), f"D-1/1 was already {text} by {path}", path)
    assert await passed(world, Status.RESUMED) == 1


@pytest.mark.parametrize("spec", slow_except([GATE], [PICK, GATE]), ids=lambda spec: spec.key)
async def test_answer_after_expiry_is_refused_in_every_channel(
    world: CrossChannelJob, spec: QuestionSpec, conn: Connection
) -> None:
    await world.ask(spec)
    await conn.execute(
        "UPDATE draftsman.job_questions SET expires_at = draftsman.now() - interval '1 s'"
    )
    assert await world.rt.expiry.expire(LeaderTerm()) == 1
    await settled(world, "expired", tuple(AnswerPath), "D-1/1 has already expired")
    assert (await passed(world, Status.RESUMED), await passed(world, Status.EXPIRED)) == (0, 1)


@pytest.mark.parametrize("spec", slow_except([PICK], [PICK, GATE]), ids=lambda spec: spec.key)
async def test_answer_after_cancellation_is_refused_in_every_channel(
    world: CrossChannelJob, spec: QuestionSpec
) -> None:
    await world.ask(spec)
    await world.rt.job_control.cancel(1, world.make.owner, "enough")
    await settled(world, "canceled", tuple(AnswerPath), "D-1/1 was already canceled")
    assert (await passed(world, Status.RESUMED), await passed(world, Status.CANCELED)) == (0, 1)
