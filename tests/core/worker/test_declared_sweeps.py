"""Each sweep that a service declares is run by the leader, and by hand."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import draftsman
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import Sweep, in_due_order
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.worker.leader import Leader, first_runs
from draftsman.worker.service.sweeps import Sweeps
from draftsman_testing.waits import background
from tests.core.worker.workers import before_deadline

CORE = Path(draftsman.__path__[0])


def declared() -> list[str]:
    """Return the names of the sweeps that the code declares."""
    return [
        ast.literal_eval(keyword.value)
        for path in CORE.rglob("*.py")
        if f"{Sweep.__name__}(" in (source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == Sweep.__name__
        for keyword in node.keywords
        if keyword.arg == "name"
    ]


def test_the_runtime_has_every_declared_sweep_once(rt: Runtime) -> None:
    assert sorted(rt.sweeps.names) == sorted(declared())


def test_the_sweeps_have_an_order(rt: Runtime) -> None:
    before = [("decisions", "expire"), ("rescue", "suspects"), ("suspects", "deregister")]
    names = rt.sweeps.names
    assert [pair for pair in before if names.index(pair[0]) > names.index(pair[1])] == []
    due = ["promote", "postponed", "limits", "schedules", "decisions", "expire", "notify"]
    assert [sweep.name for sweep in in_due_order(rt.sweeps.all) if sweep.name in due] == due


async def test_a_new_leader_runs_every_sweep_none_before_its_time(rt: Runtime) -> None:
    names = rt.sweeps.names
    begun = dict[str, float]()
    all_begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    settings = rt.settings.sweeps.model_copy(update={"interval": 1})

    def recording(name: str) -> Callable[[LeaderTerm], Awaitable[int]]:
        async def run(term: LeaderTerm) -> int:
            begun.setdefault(name, loop.time())
            if begun.keys() == {*names}:
                all_begun.set()
            return 0

        return run

    sweeps = Sweeps(
        rt.db,
        rt.policy,
        sweeps=[replace(sweep, run=recording(sweep.name)) for sweep in rt.sweeps.all],
        dead_workers=rt.dead_workers,
        lease=rt.settings.sweeps.lease,
    )
    leader = Leader(sweeps, settings, uuid4())
    began = loop.time()
    async with background(leader.run()) as running:
        await before_deadline(all_begun.wait())
        leader.stop.set()
        await before_deadline(asyncio.shield(running))
    first = first_runs(sweeps.all, 1)
    assert {name for name, least in first.items() if begun[name] - began < least} == set()
    at_start = [name for name in names if name not in first]
    assert [*begun][: len(at_start)] == at_start


async def test_every_sweep_runs_by_hand(rt: Runtime, owner: Actor) -> None:
    for name in rt.sweeps.names:
        assert await rt.sweeps.run_now(name, owner) >= 0
