"""`config/draftsman.toml` and the settings say the same: every key, and every default."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, get_origin

import pytest
from pydantic import BaseModel

from draftsman.resources import config_example
from draftsman.settings import LimitSettings, SecretSettings, Section, Settings, load

SETTING = re.compile(r'^#(?=[a-z_"][^ ]* = |\[)', re.MULTILINE)
"""Before a commented setting or table; prose has a space after its `#`."""
EXAMPLES = {
    *("handlers", "types", "profiles", "people", "groups", "tools", "llm", "webhooks"),
    *("credentials", "agents", "keys"),
}
"""Tables that are empty by default, or hold unset limits: what the file shows are examples."""


@pytest.fixture(autouse=True)
def _as_root_without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give everybody the defaults that the file shows: those of root, in a bare shell."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in [name for name in os.environ if name.startswith("DRAFTSMAN_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def shown() -> dict[str, Any]:
    """Return what the file says when every setting in it is uncommented."""
    return tomllib.loads(SETTING.sub("", config_example()))


def _load(folder: Path, text: str) -> Settings:
    path = folder / "draftsman.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def _sections(annotation: Any) -> list[type[Section]]:
    """Return the models inside an annotation such as `dict[str, TypeSettings]`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in _sections(part)]


def _tables(value: Any, annotation: Any) -> list[dict[str, Any]]:
    """Return the tables that stand for the model of the annotation, one for a plain section."""
    if isinstance(annotation, type) or get_origin(annotation) is UnionType:
        return [value]
    return list(value.values()) if isinstance(value, dict) else list(value)


def _missing(model: type[BaseModel], tables: list[dict[str, Any]], place: str) -> Iterator[str]:
    if model is SecretSettings and any(tables):
        return  # either of its keys, never both
    for name, field in model.model_fields.items():
        values = [table[name] for table in tables if name in table]
        if not values:
            yield f"{place}{name}"
            continue
        for section in _sections(field.annotation):
            inside = [table for value in values for table in _tables(value, field.annotation)]
            yield from _missing(section, inside, f"{place}{name}.")


def _unset(model: type[BaseModel]) -> Iterator[str]:
    """Yield every key whose default is None, those of nested tables included."""
    for name, field in model.model_fields.items():
        if not field.is_required() and field.get_default(call_default_factory=True) is None:
            yield name
        for section in _sections(field.annotation):
            yield from _unset(section)


def _defaults(model: BaseModel, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each key that is set, with its value."""
    for name, value in model:
        if isinstance(value, BaseModel):
            yield from _defaults(value, f"{place}{name}.")
        elif value is not None and name not in EXAMPLES:
            yield f"{place}{name}", value


def _prose_above(line: int) -> str:
    lines = config_example().splitlines()
    start = line
    while lines[start - 1].startswith("# "):
        start -= 1
    return " ".join(lines[start:line]).lower()


def test_the_file_as_it_is_changes_nothing(tmp_path: Path) -> None:
    assert _load(tmp_path, config_example()) == Settings()


def test_every_key_is_there(shown: dict[str, Any]) -> None:
    assert list(_missing(Settings, [shown], "")) == []


def test_a_key_that_the_file_lacks_is_noticed(shown: dict[str, Any]) -> None:
    del shown["worker"]["drain"], shown["people"]["anna"]["roles"]
    assert list(_missing(Settings, [shown], "")) == ["worker.drain", "people.roles"]


def test_every_default_is_the_one_shown(tmp_path: Path) -> None:
    uncommented = dict(_defaults(_load(tmp_path, SETTING.sub("", config_example()))))
    defaults = dict(_defaults(Settings()))
    assert {key: uncommented[key] for key in defaults} == defaults


def test_the_agent_shown_is_the_one_that_is_there(tmp_path: Path) -> None:
    shown, there = (
        settings.agents["tidy"]
        for settings in (_load(tmp_path, SETTING.sub("", config_example())), Settings())
    )
    assert shown.model_dump(exclude=set(LimitSettings.model_fields)) == there.model_dump(
        exclude=set(LimitSettings.model_fields)
    )
    assert there.limits() == {}


@pytest.mark.parametrize("key", sorted(set(_unset(Settings))))
def test_an_example_of_what_is_unset_says_so(key: str) -> None:
    lines = config_example().splitlines()
    places = [place for place, line in enumerate(lines) if line.startswith(f"#{key} = ")]
    assert any("unset" in _prose_above(at) for at in places)


def test_every_setting_is_explained() -> None:
    inside_a_list = False
    for at, line in enumerate(config_example().splitlines()):
        if line.startswith(("[", "#[")):
            inside_a_list = line.startswith("#[[")
        elif SETTING.match(line) and not inside_a_list:
            assert _prose_above(at), f"{line!r} has nothing above it that explains it"
