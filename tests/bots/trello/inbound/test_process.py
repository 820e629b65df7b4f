"""`draftsman bots trello` as a process: from a label to a job and its comment."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman_bots.trello.records.board import BoardConfig, ChecklistUse, LabelRule
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from draftsman_testing.trello import FakeTrello
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation
from tests.support.fork_server import children
from tests.support.statements import value


@pytest.fixture
def installation(folder: Path, database_url: str) -> Iterator[Installation]:
    installation = Installation(folder / "place", database_url)
    yield installation
    installation.close()


def configured(installation: Installation, trello: FakeTrello, **more: Any) -> dict[str, str]:
    """Configure the bot of this Trello; return the variables of its secrets."""
    installation.configure(
        trello__api_url=trello.api_url,
        trello__poll=1,
        trello__members="may_submit",
        **{f"trello__{key}": value for key, value in more.items()},
    )
    with installation.config.open("a") as config:
        for key in ("key", "token", "secret"):
            config.write(f'trello.{key} = {{ env = "T_{key.upper()}" }}\n')
    return {"T_KEY": trello.key, "T_TOKEN": trello.token, "T_SECRET": trello.secret}


async def watched(rt: Runtime, people: People, trello: FakeTrello) -> tuple[str, str, str]:
    """Watch a board; return it, a list of it and the label that makes jobs."""
    board = trello.board("Work")
    todo = trello.list(board, "To do")
    label = trello.label(board, "draftsman")
    config = BoardConfig(board_id=board, name="Work", labels={label: LabelRule(name="draftsman")})
    await boards_of(rt).save(config, people.olga)
    return board, todo, label


async def test_label_creates_a_job_that_comments_on_the_card(
    installation: Installation, trello: FakeTrello, rt: Runtime, people: People, make: Factory
) -> None:
    board, todo, label = await watched(rt, people, trello)
    listen = "127.0.0.1:0"
    env = configured(installation, trello, listen=listen)
    ben = trello.member("ben")
    with installation.config.open("a") as settings:
        settings.write('questions.timezone = "Asia/Tokyo"\n')
        settings.write(f'people.ben = {{ trello = "{ben}", roles = ["responder"] }}\n')
    bots = installation.start("bots", "trello", env=env)
    await bots.says("serving HTTP on 127.0.0.1:")
    address = re.search(r"serving HTTP on (127\.0\.0\.1:\d+)", bots.output_text)
    assert address is not None
    url = f"http://{address[1]}"

    async def was_polled() -> bool:
        return await boards_of(rt).cursor(board) is not None

    await until(was_polled, "the first poll")
    card = trello.card(board, todo, "Fix the parser", labels=[label])

    async def has_comment() -> bool:
        return any("D-1" in comment.text for comment in trello.comments(card))

    await until(has_comment, "the comment on the card")
    async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as reply:
        health = await reply.json()
        assert (reply.status, health["ready"], health["polling"]) == (200, True, True)
        assert "later edits of comments are not seen" in health["notes"]["comments"], "case 77"
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as reply:
        assert "draftsman_trello_polls_total" in await reply.text()
    work = await make.running(1)
    await rt.asking.ask(work.lease, QUESTION)

    async def has(text: str) -> bool:
        return any(re.search(text, comment.text) for comment in trello.comments(card))

    await until(lambda: has(r"(?i)expires at .* JST"), "the expiry, in the configured time zone")
    trello.comment(card, ben, "/snooze 2h")
    await until(lambda: has(r"until .* JST"), "the reply, in the configured time zone")
    bots.signal(signal.SIGTERM)
    assert await bots.end() == 0
    [job] = await rt.read_model.jobs()
    assert job.title == "Fix the parser"
    assert trello.token not in bots.output_text
    assert trello.key not in bots.output_text
    assert "Traceback" not in bots.output_text
    assert "warning" not in bots.output_text.lower(), "a start like any other is no trouble"
    assert await boards_of(rt).acquire(job.id, 1) is not None, "the lease was released"


async def test_lease_of_a_killed_poller_is_released_at_once(
    installation: Installation, trello: FakeTrello, rt: Runtime, people: People, conn: Connection
) -> None:
    board, todo, label = await watched(rt, people, trello)
    env = configured(installation, trello)
    first = installation.start("bots", "trello", env=env)

    async def was_polled() -> bool:
        return await boards_of(rt).cursor(board) is not None

    await until(was_polled, "the first poll")
    query = (
        "UPDATE draftsman.leases"
        " SET expires_at = draftsman.now() + interval '1 hour' RETURNING lock_id"
    )

    async def under_its_lock() -> bool:
        return await value(conn, query) is not None

    await until(under_its_lock, "a lease that is free with the session")
    first.signal(signal.SIGKILL)
    assert await first.end() == -signal.SIGKILL
    card = trello.card(board, todo, "Fix the parser", labels=[label])
    second = installation.start("bots", "trello", env=env)

    async def has_comment() -> bool:
        return any("D-1" in comment.text for comment in trello.comments(card))

    await until(has_comment, "the comment on the card")
    second.signal(signal.SIGTERM)
    assert await second.end() == 0


async def test_files_checklists_and_due_dates_work_in_a_process(
    installation: Installation, trello: FakeTrello, rt: Runtime, people: People, make: Factory
) -> None:
    board, todo, label = await watched(rt, people, trello)
    config = await boards_of(rt).of(board)
    assert config is not None
    more = {"checklists": ChecklistUse.QUESTIONS, "due_dates": True}
    await boards_of(rt).save(config.model_copy(update=more), people.olga)
    env = configured(installation, trello)
    ben = trello.member("ben")
    with installation.config.open("a") as file:
        file.write(f'people.ben = {{ trello = "{ben}", roles = ["responder"] }}\n')
    bots = installation.start("bots", "trello", env=env)

    async def was_polled() -> bool:
        return await boards_of(rt).cursor(board) is not None

    await until(was_polled, "the first poll")
    card = trello.card(board, todo, "Fix the parser")
    trello.attach(card, "notes.md", b"use blue")
    trello.add_label(card, label)

    async def has_file() -> bool:
        jobs = await rt.read_model.jobs()
        files = await rt.attachments.of_job(jobs[0].number) if jobs else []
        return [file.status for file in files] == ["stored"]

    await until(has_file, "the file of the card")
    asking = trello.card(board, todo, "Which color?")
    soon = QUESTION.model_copy(update={"expires_in": 3600.0})
    work = await make.asked(soon, notify=(f"trello:{asking}",))

    async def is_shown() -> bool:
        now = trello.card_now(asking)
        items = [len(entry["checkItems"]) for entry in now["checklists"]]
        shown = await boards_of(rt).cards.find_checklist(_checklist(trello, asking))
        return items == [2] and now["due"] is not None and shown is not None

    await until(is_shown, "the checklist and the due date")
    trello.check_item(_checklist(trello, asking), "blue", ben)

    async def is_answered() -> bool:
        question = await rt.questions.get(work.number, 1)
        return (question.resolution or {}).get("by") == ["ben"]

    await until(is_answered, "the answer")

    async def is_put_back() -> bool:
        return trello.card_now(asking)["due"] is None

    await until(is_put_back, "the earlier due date")
    bots.signal(signal.SIGTERM)
    assert await bots.end() == 0
    assert trello.token not in bots.output_text
    assert "Traceback" not in bots.output_text


def _checklist(trello: FakeTrello, card: str) -> str:
    checklists = trello.card_now(card)["checklists"]
    return str(checklists[0]["id"]) if checklists else ""


async def test_up_runs_the_trello_bot_beside_the_worker(
    installation: Installation, trello: FakeTrello, rt: Runtime, people: People
) -> None:
    board, _, _ = await watched(rt, people, trello)
    up = installation.start("up", "--headless", env=configured(installation, trello))

    async def was_polled() -> bool:
        return await boards_of(rt).cursor(board) is not None

    await until(was_polled, "the first poll")
    assert len(children(up.pid)) == 2
    up.signal(signal.SIGTERM)
    assert await up.end() == 0


async def test_chat_without_configuration_is_named_in_the_error(
    installation: Installation, trello: FakeTrello
) -> None:
    done = await installation.run("bots", "slack", **configured(installation, trello))
    assert done.returncode == 2
    assert (
        done.stderr
        == "draftsman: slack is not configured; add [slack] (draftsman help --page slack)\n"
    )


async def test_account_of_a_person_stops_the_bots(
    installation: Installation, trello: FakeTrello
) -> None:
    env = configured(installation, trello)
    with installation.config.open("a") as config:
        config.write(f'people.carol.trello = "{trello.bot_member}"\n')
    bots = installation.start("bots", env=env)
    assert await bots.end() == 2
    assert "belongs to carol" in bots.output_text
