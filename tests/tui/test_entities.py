"""Definitions of entities: columns, helps, and cells of empty rows."""

from __future__ import annotations

import ast
import dataclasses
import json
import pkgutil
import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from uuid import UUID

import pytest
from jsonschema import ValidationError, validate
from pydantic import BaseModel

import draftsman
import draftsman_bots
from draftsman import entities
from draftsman.entities.entity import Entity
from draftsman.entities.figures import FIGURES, FigureRow
from draftsman.entities.terms import Measure
from draftsman.errors import UsageError
from draftsman.formats.json_data import as_data
from draftsman_tui import common
from tests.support.cases import cases

NOW: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
ROW_TYPE: Final = re.compile(r"^([A-Z_]+): Final\[(?:Listed)?Entity\[(\w+)\]\] = ", re.MULTILINE)
"""The name and the type of the rows of an entity, in its module."""
EMPTY: Final[dict[str, Any]] = {
    "str": "", "int": 0, "float": 0.0, "bool": False, "bytes": b"", "UUID": UUID(int=0),
    "datetime": NOW, "date": NOW.date(), "list": [], "tuple": (), "Sequence": (), "Mapping": {},
    "dict": {}, "frozenset": frozenset(), "set": set(), "Any": None, "object": None,
    "ChannelName": "log",
}  # fmt: skip
"""The empty value of each type of a field; other fields have a row of their own."""


FIRST: Final = {"timezone": "UTC", "measure": "cost_usd"}
"""The values of fields whose text is one of a set."""


def declared() -> dict[str, tuple[Entity[Any], str]]:
    """Return each entity with the name of the type of its rows."""
    found = {}
    modules = [*pkgutil.iter_modules(entities.__path__, f"{entities.__name__}.")]
    modules += pkgutil.iter_modules(common.__path__, f"{common.__name__}.")
    for module in modules:
        loaded = import_module(module.name)
        for name, row in ROW_TYPE.findall(Path(str(loaded.__file__)).read_text(encoding="utf-8")):
            found[name] = (getattr(loaded, name), row)
    return found


ENTITIES: Final = declared()


def empty_row(type_name: str) -> Any:
    """Return a row in which each field has its empty value."""
    row_type = class_of(type_name)
    if issubclass(row_type, Enum):
        return next(iter(row_type))
    if issubclass(row_type, BaseModel):
        required = [name for name, field in row_type.model_fields.items() if field.is_required()]
        return row_type.model_construct(**dict.fromkeys(required, "-"))
    fields = dataclasses.fields(row_type)
    values = {field.name: empty_value(str(field.type)) for field in fields if field.init}
    values |= {name: text for name, text in FIRST.items() if name in values}
    return row_type(**values)


def empty_value(annotation: str) -> Any:
    """Return None if a field may be None, or else the empty value of its type."""
    parts = [part.strip() for part in annotation.split("|")]
    if "None" in parts:
        return None
    if literal := re.match(r"Literal\[([^,\]]+)", parts[0]):
        return ast.literal_eval(literal[1])
    name = parts[0].partition("[")[0].rpartition(".")[2]
    return EMPTY[name] if name in EMPTY else empty_row(name)


def class_of(name: str) -> Any:
    """Return the class of draftsman with this name."""
    return getattr(import_module(modules_by_class()[name]), name)


@cache
def modules_by_class() -> dict[str, str]:
    """Return the module of each class of the core and of entities."""
    files = [
        (file, package)
        for package in (draftsman, draftsman_bots, common)
        for file in Path(package.__path__[0]).rglob("*.py")
    ]
    return {
        name: f"{package.__name__}.{relative_module(file, package)}"
        for file, package in files
        for name in re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }


def relative_module(file: Path, package: ModuleType) -> str:
    """Return the name of a module below its package."""
    return ".".join(file.relative_to(package.__path__[0]).with_suffix("").parts)


@cases("name", ENTITIES)
def test_each_column_has_a_word_and_a_sentence(name: str) -> None:
    entity, _ = ENTITIES[name]
    heads = [column.head for column in entity.columns]
    assert len(set(heads)) == len(heads)
    for column in entity.columns:
        assert re.fullmatch("[A-Z][A-Z0-9]*", column.head), column.head
        assert re.fullmatch(r"\S.*[^.\s]\.", column.help), column.head
        assert column.below in {"", *heads}


def test_a_head_means_the_same_everywhere() -> None:
    meanings = defaultdict(set)
    for entity, _ in ENTITIES.values():
        for column in entity.columns:
            meanings[column.head].add(column.help)
    assert {head: helps for head, helps in meanings.items() if len(helps) > 1} == {}


def test_a_figure_is_compared_with_its_value_and_rows_without_one_are_last() -> None:
    figures = empty_row("AttentionFigures")
    rows = [
        FigureRow(dataclasses.replace(figures, value=name, answer_p50=seconds), NOW)
        for name, seconds in (("quick", 3.0), ("none", None), ("slow", 9.0))
    ]

    def names(**select: Any) -> list[str]:
        return [row.figures.value for row in FIGURES.select(rows, NOW, **select)]

    assert names(where=["answered>5"]) == ["slow"]
    assert names(where=["answered<5"]) == ["quick"]
    assert names(sort="answered") == ["quick", "slow", "none"]
    assert names(sort="-answered") == ["slow", "quick", "none"]


@cases("name", ENTITIES)
def test_a_column_is_compared_with_values_of_its_measure_alone(name: str) -> None:
    entity, row_type = ENTITIES[name]
    row = empty_row(row_type)
    for column in entity.columns:
        assert column.measure or not (column.right and column.order), column.head
        head = column.head.lower()
        if column.measure is None:
            with pytest.raises(UsageError, match=f"{head} cannot be compared; use {head}:1"):
                entity.select([row], NOW, where=[f"{head}>1"])
            continue
        assert column.order is not None
        value = column.order(row)
        kinds = (int, float) if column.measure is Measure.NUMBER else (datetime, timedelta, float)
        assert value is None or isinstance(value, kinds), column.head
        entity.select([row], NOW, where=[f"{head}>1"])
        allowed = "a number" if column.measure is Measure.NUMBER else "a duration or a time"
        wrong = "1h" if column.measure is Measure.NUMBER else "x"
        with pytest.raises(UsageError, match=f"{head}> needs {allowed}, such as .*, not '{wrong}'"):
            entity.select([row], NOW, search=f"{head}>{wrong}")


@cases("name", ENTITIES)
def test_a_condition_without_a_value_is_no_word(name: str) -> None:
    entity, _ = ENTITIES[name]
    for column in entity.columns:
        for sign in ":<>":
            with pytest.raises(UsageError, match=f"{column.head.lower()}{sign} needs a"):
                entity.select([], NOW, search=f"word {column.head}{sign}")
    assert entity.select([], NOW, search="12: note:") == []


@cases("name", ENTITIES)
def test_a_row_without_values_has_cells(name: str) -> None:
    entity, row_type = ENTITIES[name]
    row = empty_row(row_type)
    for column in entity.columns:
        cell = column.cell(row, NOW)
        assert cell.text == " ".join(cell.text.split()), column.head
        if column.order is not None:
            column.order(row)


@cases("name", ENTITIES)
def test_the_json_of_a_row_matches_the_schema_of_its_list(name: str) -> None:
    entity, row_type = ENTITIES[name]
    schema = entity.schema()
    data = json.loads(json.dumps(as_data(entity.data(empty_row(row_type)))))
    optional = {"attention"} & schema["items"]["properties"].keys()
    validate([data | dict.fromkeys(optional)], schema)
    assert set(data) | optional == set(schema["items"]["required"])
    assert set(data) | optional <= set(schema["items"]["properties"])
    with pytest.raises(ValidationError):
        validate([{}], schema)
    with pytest.raises(ValidationError):
        validate([data | dict.fromkeys(data, object)], schema)
