"""JSON Schemas, checked in a child process that can be killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import Any, Final

import psutil
import pytest
from jsonschema import Draft202012Validator

from draftsman.errors import InvalidParameters
from draftsman.formats import value_problems
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


PERSON: Final = {
    "type": "object",
    "properties": {"age": {"type": "integer", "maximum": 150}},
    "required": ["age"],
    "additionalProperties": False,
}
CASES: list[tuple[Any, Any, str | None]] = [
    (True, 1, None),
    (False, 1, "has a value that is not allowed"),
    ({"type": "string"}, "a", None),
    ({"type": "string"}, 1, "must be text, not 1"),
    ({"type": "integer"}, "x", "must be a whole number, not 'x'"),
    ({"type": ["number", "null"]}, True, "must be a number, not true"),
    ({"type": ["boolean", "array"]}, None, "must be true or false or a list, not null"),
    ({"type": "object"}, "x" * 99, f"must be an object of keys and values, not '{'x' * 58}…"),
    ({"enum": ["eu", "us", 3]}, "de", "must be eu, us or 3, not 'de'"),
    ({"enum": []}, 1, "must be left out, not 1"),
    ({"const": {"a": [1]}}, 1, 'must be {"a": [1]}, not 1'),
    ({"minimum": 1.0}, 0, "must be at least 1, not 0"),
    ({"maximum": 2.5}, 3, "must be at most 2.5, not 3"),
    ({"exclusiveMinimum": 1}, 1, "must be more than 1, not 1"),
    ({"exclusiveMaximum": 1}, 1, "must be less than 1, not 1"),
    ({"multipleOf": 5}, 7, "must be a multiple of 5, not 7"),
    ({"pattern": "^a"}, "b", "must match the pattern ^a, not 'b'"),
    ({"format": "date"}, "2026-11-30", None),
    ({"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}, "tomorrow",
     "must be a date, such as 2026-11-30, not 'tomorrow'"),
    ({"format": "email"}, "anything", None),
    ({"minLength": 1}, "", "must not be empty"),
    ({"maxLength": 1}, "long", "must have at most 1 character"),
    ({"minItems": 2}, [], "must have at least 2 entries"),
    ({"maxProperties": 1}, {"a": 1, "b": 2}, "must have at most 1 key"),
    ({"uniqueItems": True}, [1, 1], "must not have an entry twice"),
    ({"contains": {"const": 1}}, [2], "has no entry that matches"),
    ({"not": {}}, 1, "has a value that is not allowed"),
    ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3, "matches more than one alternative"),
    ({"unevaluatedProperties": False}, {"a": 1}, "has unknown keys"),
    ({"prefixItems": [{}], "items": False}, [1, 2], "has too many entries"),
    ({"properties": {"a": {"items": {"maximum": 3}}}}, {"a": [1, 4]},
     "a.1: must be at most 3, not 4"),
    ({"required": ["a", "b"]}, {"b": 1}, "a: is required"),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "b: is required with a"),
    (PERSON, {"age": 1, "aeg": 2}, "aeg: unknown key; allowed: age"),
    ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"x1": 1, "a": 2},
     "a: unknown key; allowed: none"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "must be a whole number, not 'x'"),
    ({"anyOf": [{"type": "integer"}, {"type": "array"}]}, "x",
     "must be a whole number or a list, not 'x'"),
    ({"anyOf": [PERSON, {"type": "string"}]}, {"age": 200}, "age: must be at most 150, not 200"),
    ({"oneOf": [{"type": "string"}, PERSON]}, {}, "age: is required"),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "matches no alternative"),
    ({"$ref": "#/$defs/p", "$defs": {"p": PERSON}}, {}, "age: is required"),
    ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1}, "b: is required"),
    ({"type": "nope"}, 1, "not a valid JSON Schema: 'nope' is not valid"),
    (7, 1, "not a valid JSON Schema: 7 is not"),
    ({"$ref": "http://127.0.0.1:9/x"}, 1, "the schema cannot be resolved"),
    ({"$ref": "#"}, 1, "the schema cannot be evaluated: it is recursive"),
]  # fmt: skip


async def test_a_value_is_valid_or_refused_in_plain_words(checker: SchemaChecker) -> None:
    for schema, value, why in CASES:
        problem = await checker.problem(schema, value)
        assert (problem is None) == (why is None), schema
        assert problem is None or problem.startswith(why or "-"), schema
        assert "\n" not in (problem or ""), schema


async def test_every_keyword_that_can_refuse_a_value_has_words() -> None:
    """Keywords without words of their own hand on the errors of the schemas inside of them."""
    inner = {"$ref", "$dynamicRef", "allOf", "dependentSchemas", "if", "items", "patternProperties",
             "prefixItems", "properties", "propertyNames"}  # fmt: skip
    expanded = {"required", "dependentRequired", "additionalProperties", "anyOf", "oneOf"}
    unchecked = {"format"}
    counted = {"type": "string", "enum": [1], "minContains": 1}
    for keyword in Draft202012Validator.VALIDATORS.keys() - inner - expanded - unchecked:
        problem = value_problems.keyword_problem(keyword, counted.get(keyword, 2), None)
        assert "of the schema" not in problem, keyword


async def test_every_wrong_parameter_is_named_the_outermost_first(checker: SchemaChecker) -> None:
    schema = {"properties": {"who": PERSON, "n": {"type": "integer"}}, "required": ["n", "m"]}
    values = {"who": {"age": 200, "x": 1}, "n": "x"}
    with pytest.raises(
        InvalidParameters, match=r"^payload: n: must be .*; m: is required; who.age: must"
    ) as caught:
        await checker.check_parameters(schema, values, "payload")
    assert caught.value.problems == {
        "who": "age: must be at most 150, not 200",
        "n": "must be a whole number, not 'x'",
        "m": "is required",
    }
    assert len(str(caught.value)) <= checker_process.WIDTH + len("payload: ")
    await checker.check_parameters(schema, {"n": 1, "m": None}, "payload")


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
