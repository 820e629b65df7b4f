"""`draftsman bots --trello` as a process: from a label to a job and its comment."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from draftsman.domain.trello.board import BoardConfig, LabelRule
from draftsman.runtime import Runtime
from draftsman.store.postgres.database import Connection
from tests.acceptance.processes import Installation
from tests.support.people import People
from tests.support.statements import value
from tests.support.trello import FakeTrello
from tests.support.waits import until


@pytest.fixture
def place(folder: Path, database_url: str) -> Iterator[Installation]:
    place = Installation(folder / "place", database_url)
    yield place
    place.close()


def configured(place: Installation, trello: FakeTrello, **more: Any) -> dict[str, str]:
    """Configure the bot of this Trello; return the variables of its secrets."""
    place.configure(
        trello__api_url=trello.api_url,
        trello__poll=1,
        **{f"trello__{key}": value for key, value in more.items()},
    )
    with place.config.open("a") as config:
        for key in ("key", "token", "secret"):
            config.write(f'trello.{key} = {{ env = "T_{key.upper()}" }}\n')
    return {"T_KEY": trello.key, "T_TOKEN": trello.token, "T_SECRET": trello.secret}


async def watched(rt: Runtime, people: People, trello: FakeTrello) -> tuple[str, str, str]:
    """Watch a board; return it, a list of it and the label that makes jobs."""
    board = trello.board("Work")
    todo, label = trello.list(board, "To do"), trello.label(board, "draftsman")
    config = BoardConfig(board_id=board, name="Work", labels={label: LabelRule(name="draftsman")})
    await rt.boards.save(config, people.olga)
    return board, todo, label


async def test_a_label_becomes_a_job_and_the_card_hears_of_it(
    place: Installation, trello: FakeTrello, rt: Runtime, people: People
) -> None:
    board, todo, label = await watched(rt, people, trello)
    listen = "127.0.0.1:0"
    bots = place.start("bots", "--trello", env=configured(place, trello, listen=listen))
    await bots.says("serving HTTP on 127.0.0.1:")
    found = re.search(r"serving HTTP on (127\.0\.0\.1:\d+)", bots.output_text)
    assert found is not None
    url = f"http://{found[1]}"

    async def begun() -> bool:
        return await rt.boards.cursor(board) is not None

    await until(begun, "the first look")
    card = trello.card(board, todo, "Fix the parser", labels=[label])

    async def heard() -> bool:
        return any("D-1" in one.text for one in trello.comments(card))

    await until(heard, "the comment on the card")
    async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as reply:
        health = await reply.json()
        assert (reply.status, health["ready"], health["polling"]) == (200, True, True)
        assert "later edits of comments are not seen" in health["notes"]["comments"], "case 77"
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as reply:
        assert "draftsman_trello_polls_total" in await reply.text()
    bots.signal(signal.SIGTERM)
    assert await bots.end() == 0
    [job] = await rt.read_model.jobs()
    assert job.ticket_title == "Fix the parser"
    assert trello.token not in bots.output_text
    assert trello.key not in bots.output_text
    assert "Traceback" not in bots.output_text
    assert "warning" not in bots.output_text.lower(), "a start like any other is no trouble"
    assert await rt.boards.acquire(job.id, 1) is not None, "the lease was given back"


async def test_the_lease_of_a_killed_poller_is_free_at_once(
    place: Installation, trello: FakeTrello, rt: Runtime, people: People, conn: Connection
) -> None:
    board, todo, label = await watched(rt, people, trello)
    env = configured(place, trello)
    first = place.start("bots", "--trello", env=env)

    async def begun() -> bool:
        return await rt.boards.cursor(board) is not None

    await until(begun, "the first look")
    query = "UPDATE draftsman.leases SET expires_at = now() + interval '1 hour' RETURNING lock_id"

    async def under_its_lock() -> bool:
        return await value(conn, query) is not None

    await until(under_its_lock, "a lease that is free with the session")
    first.signal(signal.SIGKILL)
    assert await first.end() == -signal.SIGKILL
    card = trello.card(board, todo, "Fix the parser", labels=[label])
    second = place.start("bots", "--trello", env=env)

    async def heard() -> bool:
        return any("D-1" in one.text for one in trello.comments(card))

    await until(heard, "the comment on the card")
    second.signal(signal.SIGTERM)
    assert await second.end() == 0


async def test_up_keeps_the_bots_of_trello_beside_the_worker(
    place: Installation, trello: FakeTrello, rt: Runtime, people: People
) -> None:
    board, _, _ = await watched(rt, people, trello)
    up = place.start("up", "--headless", env=configured(place, trello))

    async def begun() -> bool:
        return await rt.boards.cursor(board) is not None

    await until(begun, "the first look")
    assert len(up.children()) == 2
    up.signal(signal.SIGTERM)
    assert await up.end() == 0


async def test_a_chat_that_is_not_configured_is_named(
    place: Installation, trello: FakeTrello
) -> None:
    done = await place.run("bots", "--slack", **configured(place, trello))
    assert done.returncode == 2
    assert done.stderr == "draftsman: slack is not configured; add [slack]\n"


async def test_the_account_of_a_person_ends_the_bots(
    place: Installation, trello: FakeTrello
) -> None:
    env = configured(place, trello)
    with place.config.open("a") as config:
        config.write(f'people.carol.trello = "{trello.bot_member}"\n')
    bots = place.start("bots", env=env)
    assert await bots.end() == 2
    assert "belongs to carol" in bots.output_text
