"""The points are collected: new code is included automatically."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import LiteralString

import pytest

from draftsman import resources
from tests.kill import kill_points
from tests.kill.fault_points import check_all_reached
from tests.support.queries import QUERIES


def test_every_query_has_points_and_only_a_read_has_a_single_point() -> None:
    points = kill_points.sql_points()
    assert {point.split()[0] for point in points} == {f"{family}.{two}" for family, two in QUERIES}
    assert {"claim.exchange before", "claim.exchange after", "claim.exchange committed"} <= points
    assert {"details.page before", "jobs.lock_to_cancel committed"} <= points
    assert {"events.drop committed", "events.copy_in after", "schema.new_epoch after"} <= points
    assert not {"details.page committed", "events.copy_out after"} & points


def test_a_new_query_has_points(monkeypatch: pytest.MonkeyPatch) -> None:
    new: dict[str, LiteralString] = {
        "forget": "DELETE FROM draftsman.job_states",
        "peek": "SELECT 1",
    }
    monkeypatch.setattr(kill_points, "TEXTS", {"new": new})
    monkeypatch.setattr(kill_points, "texts", kill_points.texts.__wrapped__)
    monkeypatch.setattr(kill_points, "is_read", kill_points.is_read.__wrapped__)
    writes = {f"new.forget {moment}" for moment in ("before", "after", "committed")}
    assert kill_points.sql_points() == writes | {"new.peek before"}


def test_a_new_git_has_points(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
class New:
    async def _any(self, *words): await git(*words, cwd=here)
    async def tag(self): await self._any("tag", "-d", "x"); await self._any("show", "x")
    async def note(self): await git("-c", "a=b", *("notes", "add"), cwd=here)
    async def wipe(self): await asyncio.to_thread(shutil.rmtree, here)
"""
    monkeypatch.setattr(kill_points, "modules", lambda: {"new": ast.parse(code)})
    for name in ("_calls", "_relays"):
        monkeypatch.setattr(kill_points, name, getattr(kill_points, name).__wrapped__)
    assert kill_points.git_calls() == {"git new.New.tag tag", "git new.New.note notes"}
    assert kill_points.file_calls() == {"files new.New.wipe rmtree"}


def test_all_modules_that_drive_an_agent_are_searched() -> None:
    core = Path(resources.__file__).parent
    files = [
        path
        for group in kill_points.GROUPS
        for path in (core / group).rglob("*.py")
        if not kill_points.RULES.search(str(path.relative_to(core)))
    ]
    named = {path.stem for path in files} - {"__init__", "registry", "sample_repo"}
    named -= {"profile_check", "profile_detection", "commit_check"}  # of people's own commands
    named -= {"command_check", "agent_check", "agent_probe"}
    named -= {"handler_errors"}  # of the worker, about any handler
    named -= {"blocking_context", "batches"}  # of functions of job types
    named -= {"programs"}  # declarations of agents
    assert set(kill_points.modules()) == named, "is the new module part of an agent's run?"


def test_messages_and_process_calls_have_points() -> None:
    points = kill_points.phase_points()
    assert {"agent says ask before", "agent is told park after"} <= points
    assert {"agent process start before", "agent process kill after"} <= points
    assert "git source.RepoSource.push push during" in points


def test_unreached_point_fails() -> None:
    with pytest.raises(AssertionError, match=r"new\.query before"):
        check_all_reached(kill_points.sql_points() | {"new.query before"}, kill_points.sql_points())
