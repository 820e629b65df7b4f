"""JSON Schemas, checked in a child process that can be killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest

from draftsman.json_schemas import checker_process
from draftsman.json_schemas.checker import SchemaChecker
from draftsman_testing.waits import until
from tests.support.fork_server import NEW_INTERPRETER


def bomb(doublings: int = 40) -> dict[str, Any]:
    """Return a schema of 2.8 kB whose references double each other."""
    definitions: dict[str, Any] = {"a0": {}}
    for level in range(1, doublings + 1):
        twice = {"$ref": f"#/$defs/a{level - 1}"}
        definitions[f"a{level}"] = {"allOf": [twice, twice]}
    return {"$defs": definitions, "$ref": f"#/$defs/a{doublings}"}


def children() -> list[psutil.Process]:
    """Return the processes that check schemas for this process."""
    return [process for process in psutil.Process().children() if _is_checker(process)]


def _is_checker(process: psutil.Process) -> bool:
    try:
        return checker_process.__name__ in " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):  # of another test
        return False


@pytest.fixture(autouse=True)
def _real_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the processes as the product does, not by forks."""
    monkeypatch.setenv(NEW_INTERPRETER, "1")


@pytest.fixture
async def checker() -> AsyncIterator[SchemaChecker]:
    async with SchemaChecker(cpu=0.5) as checker:
        yield checker
    assert children() == []


CASES: list[tuple[Any, Any, str | None]] = [
    (True, 1, None),
    (False, 1, "False schema"),
    ({"type": "string"}, "a", None),
    ({"type": "string"}, 1, "1 is not of type 'string'"),
    ({"properties": {"a": {"items": {"maximum": 3}}}}, {"a": [1, 4]}, "at ['a'][1]: 4 is"),
    ({"type": "nope"}, 1, "not a valid JSON Schema: 'nope' is not valid"),
    (7, 1, "not a valid JSON Schema: 7 is not"),
    ({"$ref": "http://127.0.0.1:9/x"}, 1, "the schema cannot be resolved"),
    ({"$ref": "#"}, 1, "the schema cannot be evaluated: it is recursive"),
    ({"maxLength": 1}, "long" * 500, "is too long"),
]


async def test_a_value_is_valid_or_refused_in_one_line(checker: SchemaChecker) -> None:
    for schema, value, why in CASES:
        problem = await checker.problem(schema, value)
        assert (problem is None) == (why is None), schema
        assert problem is None or ((why or "-") in problem or len(problem) == checker_process.WIDTH)
        assert "\n" not in (problem or ""), schema


async def test_a_child_is_reused_for_the_next_check(checker: SchemaChecker) -> None:
    await checker.problem({"type": "string"}, "a")
    [first] = children()
    await checker.problem({"type": "string"}, "b")
    assert children() == [first]
    first.kill()
    first.wait(10)
    assert await checker.problem({"type": "string"}, "c") is None


async def test_a_schema_bomb_ends_only_its_child_and_the_loop_continues(
    checker: SchemaChecker,
) -> None:
    waiting = asyncio.create_task(checker.problem(bomb(), {}))
    turns = 0
    while not waiting.done():
        turns += 1
        assert await checker.problem({"type": "string"}, turns) is not None
    assert "takes more than 0.5 s of CPU" in str(await waiting)
    assert turns > 20


async def test_a_schema_is_checked_without_a_value(checker: SchemaChecker) -> None:
    """A bomb costs a second of CPU: tests/soak/soak_schemas.py."""
    assert "it is recursive" in str(await checker.schema_problem({"$ref": "#"}))
    assert await checker.schema_problem({"$defs": bomb()["$defs"]}) is None
    assert await checker.schema_problem({"type": "object", "required": ["a"]}) is None


async def test_a_check_without_cpu_time_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    async with SchemaChecker() as checker:
        await checker.problem({"type": "string"}, "a")
        [process] = children()
        os.kill(process.pid, signal.SIGSTOP)
        with monkeypatch.context() as short:  # a busy machine takes longer to start a child
            short.setattr(checker, "_wall", 0.3)
            with pytest.raises(Exception, match=r"did not end within 0\.3 s"):
                await checker.problem({"type": "string"}, "a")
        assert await checker.problem({"type": "string"}, "a") is None


async def test_a_canceled_check_leaves_no_child(checker: SchemaChecker) -> None:
    waiting = asyncio.create_task(checker.problem(bomb(), {}))
    await until(lambda: _is_running(), "the child")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert children() == []


async def test_memory_is_bounded() -> None:
    async with SchemaChecker(memory=64 * 1024 * 1024) as checker:
        problem = await checker.problem({"items": {"type": "object"}}, [{"a": 1}] * 200_000)
        assert problem == "the check exceeds its memory limit"
        assert await checker.problem({"type": "string"}, "a") is None


async def _is_running() -> bool:
    return bool(children())
