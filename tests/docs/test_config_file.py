"""`config/draftsman.toml` and the settings agree: every key, and every default."""

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
from draftsman.settings import Settings, load, settings_model
from draftsman.settings.agents import AgentSettings
from tests.docs.config_file import config_text, declaring_class, docstrings, sections_in

SETTING = re.compile(r'^#(?=[a-z_"][^ ]* = |\[)', re.MULTILINE)
"""Start of a commented setting or table; prose has a space after its `#`."""


@pytest.fixture(autouse=True)
def _as_root_without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the defaults in the file: those of root, without variables."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for name in [name for name in os.environ if name.startswith("DRAFTSMAN_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def shown() -> dict[str, Any]:
    """Return the settings of the file with every setting uncommented."""
    return tomllib.loads(SETTING.sub("", config_example()))


def _load(folder: Path, text: str) -> Settings:
    path = folder / "draftsman.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def _tables(value: Any, annotation: Any) -> list[dict[str, Any]]:
    """Return the tables of the annotation's model, a single table for a section."""
    if isinstance(annotation, type) or get_origin(annotation) is UnionType:
        return [value]
    return list(value.values()) if isinstance(value, dict) else list(value)


def _fields(model: type[BaseModel]) -> Iterator[str]:
    """Yield every key of a model and of its tables, with the class that declares it."""
    for name, field in model.model_fields.items():
        yield f"{declaring_class(model, name).__name__}.{name}"
        for section in sections_in(field.annotation):
            yield from _fields(section)


def _shown(model: type[BaseModel], tables: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the keys that occur in tables of a model."""
    for name, field in model.model_fields.items():
        values = [table[name] for table in tables if name in table]
        if values:
            yield f"{declaring_class(model, name).__name__}.{name}"
        for section in sections_in(field.annotation):
            inside = [table for value in values for table in _tables(value, field.annotation)]
            yield from _shown(section, inside)


def _unset(model: type[BaseModel]) -> Iterator[tuple[type, str]]:
    """Yield the class and name of every key whose default is None, also of nested tables."""
    for name, field in model.model_fields.items():
        is_unset = not field.is_required() and field.get_default(call_default_factory=True) is None
        if is_unset and field.examples:
            yield declaring_class(model, name), name
        for section in sections_in(field.annotation):
            yield from _unset(section)


def _defaults(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each set key that has no example, with its value."""
    for name, value in model:
        if isinstance(value, BaseModel):
            yield from _defaults(value, f"{prefix}{name}.")
        elif value is not None and not type(model).model_fields[name].examples:
            yield f"{prefix}{name}", value


def test_file_matches_the_settings() -> None:
    assert config_example() == config_text(), "regenerate it: python -m tests.docs.config_file"


def test_unchanged_file_gives_the_defaults(tmp_path: Path) -> None:
    assert _load(tmp_path, config_example()) == Settings()


def test_file_contains_every_key(shown: dict[str, Any]) -> None:
    assert set(_fields(settings_model())) - set(_shown(settings_model(), [shown])) == set()


def test_missing_key_is_detected(shown: dict[str, Any]) -> None:
    del shown["worker"]["drain"], shown["people"]["anna"]["roles"]
    missing = set(_fields(settings_model())) - set(_shown(settings_model(), [shown]))
    assert missing == {"WorkerSettings.drain", "PersonSettings.roles"}


def test_file_shows_every_default(tmp_path: Path) -> None:
    uncommented = dict(_defaults(_load(tmp_path, SETTING.sub("", config_example()))))
    defaults = dict(_defaults(settings_model()()))
    assert {key: uncommented[key] for key in defaults} == defaults


def test_file_shows_the_default_agent(tmp_path: Path) -> None:
    shown, default = (
        settings.agents["tidy"]
        for settings in (_load(tmp_path, SETTING.sub("", config_example())), settings_model()())
    )
    fields = AgentSettings.model_fields.items()
    examples = {name for name, field in fields if field.examples and name != "command"}
    assert shown.model_dump(exclude=examples) == default.model_dump(exclude=examples)
    assert default.limits() == {}


def test_the_docstring_of_an_unset_key_says_unset() -> None:
    silent = [
        f"{declaring.__name__}.{name}"
        for declaring, name in set(_unset(settings_model()))
        if "unset" not in docstrings(declaring)[name].lower()
    ]
    assert silent == []
