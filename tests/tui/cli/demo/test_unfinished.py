"""What a killed demo leaves behind is removed by the next one."""

from __future__ import annotations

from pathlib import Path

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_tui.cli.demo.unfinished import clean_up, recorded

BOARD = "5eedfa4e5eedfa4e5eedfa4e"


async def test_what_a_killed_demo_left_is_removed(
    rt: Runtime, make: Factory, people: People, tmp_path: Path
) -> None:
    async def remove(board: str) -> None:
        await boards_of(rt).remove(board, people.olga)

    own = await make.queued()
    cursor = await rt.read_model.end_cursor()
    with recorded(tmp_path, cursor, BOARD):
        [record] = tmp_path.iterdir()
        content = record.read_text()
        assert await clean_up(rt, make.owner, tmp_path, remove) == "", "it runs"
    assert await clean_up(rt, make.owner, tmp_path, remove) == "", "it ended"
    await boards_of(rt).save(BoardConfig(board_id=BOARD, name="Work"), people.olga)
    asked, done = await make.asked(), await make.completed()
    record.write_text(content)
    removed = "an earlier demo was killed: canceled 1 job and removed 1 board"
    assert await clean_up(rt, make.owner, tmp_path, remove) == removed
    statuses = [(await rt.read_model.job(n)).status for n in (own, asked.number, done)]
    assert statuses == [Status.QUEUED, Status.CANCELED, Status.COMPLETED]
    assert await boards_of(rt).all() == []
    assert await clean_up(rt, make.owner, tmp_path, remove) == ""
