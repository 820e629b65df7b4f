"""Which repository a card is about: its labels say so, its text, the default, or people."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from draftsman.database.database import Connection
from draftsman.repos.repo_catalog import Repo, RepoLocation
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman_bots.trello.records.board import LabelRule
from draftsman_testing.trello import FakeTrello
from draftsman_testing.waits import until
from tests.bots.trello.inbound.conftest import TrelloBotHarness
from tests.core.worker.agent_jobs import agent_worker
from tests.core.worker.workers import wait_for_question

NAMES: Final = ("pay", "shop", "web", "docs")
PINNED: Final = """
SELECT s.result ->> 'source', s.result ->> 'method', (s.result ->> 'confidence')::float
  FROM draftsman.job_steps s JOIN draftsman.jobs j ON j.number = s.job
 WHERE s.key = 'agent:repository' AND s.status = 'done' AND j.number = %s
"""
"""URLs of the repositories, which no server serves."""


def where(name: str) -> str:
    return f"http://127.0.0.1:1/acme/{name}"


@pytest.fixture
async def repos(bench: TrelloBotHarness) -> dict[str, Repo]:
    """Register four repositories and configure the agent of the label."""
    await bench.watch(labels={bench.label: LabelRule(name="draftsman", agent="test")})
    olga = bench.people.olga
    made = {}
    for name in NAMES:
        repo = Repo.at(parse(where(name)))
        made[name] = await bench.rt.repos.add(repo, profile({}), olga)
    return made


async def test_repository_is_chosen_by_label_then_text_then_default(
    bench: TrelloBotHarness,
    trello: FakeTrello,
    repos: dict[str, Repo],
    conn: Connection,
    tmp_path: Path,
) -> None:
    olga = bench.people.olga
    by_id, by_name = (trello.label(bench.board, name) for name in ("money", "Shop"))
    await bench.rt.repos.map(RepoLocation(repos["pay"]), olga, label_id=by_id, label="money")
    await bench.rt.repos.map(RepoLocation(repos["shop"]), olga, label="shop")
    text = f"As in {where('web')}/pull/3, please."
    wanted = [("pay", "label_id", 1.0), ("shop", "label_name", 0.9), ("web", "url", 0.8)]
    for more in ([by_name, by_id], [by_name], []):
        bench.card(desc=text, labels=[bench.label, *more])
        await bench.poll()
    await bench.rt.repos.set_default(repos["docs"], olga)
    bench.card(labels=[bench.label])
    await bench.poll()
    wanted.append(("docs", "default", 0.5))
    async with agent_worker(bench.rt, tmp_path / "data", ""):
        for number, (name, method, confidence) in enumerate(wanted, 1):
            assert await found(conn, number) == (where(name), method, confidence)


async def test_unclear_repository_is_asked_for_on_the_card(
    bench: TrelloBotHarness,
    trello: FakeTrello,
    repos: dict[str, Repo],
    conn: Connection,
    tmp_path: Path,
) -> None:
    card = bench.card(desc=f"{where('web')} or {where('docs')}?", labels=[bench.label])
    await bench.poll()
    async with agent_worker(bench.rt, tmp_path / "data", ""):
        await wait_for_question(bench.rt, 1)
        await bench.send_messages()
        [notice] = [
            comment.text for comment in trello.comments(card) if "Which repository" in comment.text
        ]
        assert ("docs" in notice, "web" in notice, "pay" in notice) == (True, True, False)
        trello.comment(card, bench.ben, "2")
        await bench.poll()
        assert await found(conn, 1) == (where("docs"), "asked", 1.0)


async def found(conn: Connection, job: int) -> tuple[str, str, float]:
    """Return where a job looks, how it was found, and how sure that is, once it knows."""
    rows: list[tuple[str, str, float]] = []

    async def look() -> bool:
        rows.extend(await (await conn.execute(PINNED, [job])).fetchall())
        return bool(rows)

    await until(look, f"the repository of D-{job}")
    return rows[0]
