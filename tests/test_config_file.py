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
from draftsman.settings import Settings, load
from draftsman.settings.job_types import LimitSettings
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section
from tests.support.cases import cases

SETTING = re.compile(r'^#(?=[a-z_"][^ ]* = |\[)', re.MULTILINE)
"""Start of a commented setting or table; prose has a space after its `#`."""
EXAMPLES = {
    *("handlers", "types", "profiles", "people", "groups", "tools", "llm", "webhooks"),
    *("gateways", "prices", "networks", "forges", "codeowners", "paths"),
    *("credentials", "agents", "keys", "accounts"),
    *("all", "queue", "type", "agent", "repo", "person", "concurrency_key"),
    *("call", "job"),
    *("ladders", "oncall", "holidays", "pagers"),
}
"""Tables that are empty by default or have unset limits: their values in the file are examples."""


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


def _sections(annotation: Any) -> list[type[Section]]:
    """Return the models inside an annotation such as `dict[str, TypeSettings]`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for part in getattr(annotation, "__args__", ()) for section in _sections(part)]


def _tables(value: Any, annotation: Any) -> list[dict[str, Any]]:
    """Return the tables of the annotation's model, a single table for a section."""
    if isinstance(annotation, type) or get_origin(annotation) is UnionType:
        return [value]
    return list(value.values()) if isinstance(value, dict) else list(value)


def _missing(model: type[BaseModel], tables: list[dict[str, Any]], prefix: str) -> Iterator[str]:
    if model is SecretSettings and any(tables):
        return  # either of its keys, never both
    for name, field in model.model_fields.items():
        values = [table[name] for table in tables if name in table]
        if not values:
            yield f"{prefix}{name}"
            continue
        for section in _sections(field.annotation):
            inside = [table for value in values for table in _tables(value, field.annotation)]
            yield from _missing(section, inside, f"{prefix}{name}.")


def _unset(model: type[BaseModel]) -> Iterator[str]:
    """Yield every key whose default is None, also of nested tables."""
    for name, field in model.model_fields.items():
        if not field.is_required() and field.get_default(call_default_factory=True) is None:
            yield name
        for section in _sections(field.annotation):
            yield from _unset(section)


def _defaults(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each set key with its value."""
    for name, value in model:
        if isinstance(value, BaseModel):
            yield from _defaults(value, f"{prefix}{name}.")
        elif value is not None and name not in EXAMPLES:
            yield f"{prefix}{name}", value


def _prose_above(line: int) -> str:
    lines = config_example().splitlines()
    start = line
    while lines[start - 1].startswith("# "):
        start -= 1
    return " ".join(lines[start:line]).lower()


def test_unchanged_file_gives_the_defaults(tmp_path: Path) -> None:
    assert _load(tmp_path, config_example()) == Settings()


def test_file_contains_every_key(shown: dict[str, Any]) -> None:
    assert list(_missing(Settings, [shown], "")) == []


def test_missing_key_is_detected(shown: dict[str, Any]) -> None:
    del shown["worker"]["drain"], shown["people"]["anna"]["roles"]
    assert list(_missing(Settings, [shown], "")) == ["worker.drain", "people.roles"]


def test_file_shows_every_default(tmp_path: Path) -> None:
    uncommented = dict(_defaults(_load(tmp_path, SETTING.sub("", config_example()))))
    defaults = dict(_defaults(Settings()))
    assert {key: uncommented[key] for key in defaults} == defaults


def test_file_shows_the_default_agent(tmp_path: Path) -> None:
    shown, default = (
        settings.agents["tidy"]
        for settings in (_load(tmp_path, SETTING.sub("", config_example())), Settings())
    )
    examples = {*LimitSettings.model_fields, "version", "session_mode", "gateway", "prompt"}
    assert shown.model_dump(exclude=examples) == default.model_dump(exclude=examples)
    assert default.limits() == {}


@cases("key", sorted(set(_unset(Settings))))
def test_comment_of_an_unset_key_says_unset(key: str) -> None:
    lines = config_example().splitlines()
    starts = re.compile(rf"#(?:{key} = |\[(?:\w+\.)?{key}\])")
    numbers = [number for number, line in enumerate(lines) if starts.match(line)]
    assert any("unset" in _prose_above(at) for at in numbers)


def test_every_setting_has_a_comment() -> None:
    inside_a_list = False
    for at, line in enumerate(config_example().splitlines()):
        if line.startswith(("[", "#[")):
            inside_a_list = line.startswith("#[[")
        elif SETTING.match(line) and not inside_a_list:
            assert _prose_above(at), f"{line!r} has nothing above it that explains it"
