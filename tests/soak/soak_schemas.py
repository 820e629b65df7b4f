"""JSON Schemas that cost as much CPU as a check may have."""

from __future__ import annotations

from draftsman.json_schemas.checker import SchemaChecker
from tests.core.json_schemas.test_schemas import bomb


async def test_a_bomb_is_found_before_there_is_a_value() -> None:
    async with SchemaChecker(cpu=0.5) as checker:
        assert "takes more than 0.5 s" in str(await checker.schema_problem(bomb()))
        assert await checker.schema_problem({"$defs": bomb()["$defs"]}) is None
