"""Former names of configuration keys, in the file and in variables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman import Draftsman
from draftsman.errors import ConfigError
from draftsman.settings import Settings, former_names, load

VALUES: Final[dict[str, Any]] = {
    "dashboard.keys.job-chain": "f5",
    "dashboard.keys.next-part": "f6",
    "dashboard.keys.previous-part": "f7",
    "embedded.idle_stop": 30,
    "http.redirects": 2,
    "llm.*.key": {"env": "KEY"},
    "people.*.quiet": "22:00-07:00",
    "questions.quiet": "23:00-06:00",
    "retention.archive": "/srv/archive",
    "sandbox.uids": 7,
    "slack.strangers": True,
    "sweeps.reap_after": 7200.0,
    "tools.*.exits": {"3": "PERMANENT"},
    "tools.*.input": {"type": "object"},
    "tools.*.output": {"type": "integer"},
    "trello.queued": "taken",
}
"""A value for each former key that is not its default."""
REQUIRED: Final[dict[str, dict[str, Any]]] = {
    "llm": {"provider": "openai", "model": "m"},
    "slack": {"bot_token": {"env": "B"}, "app_token": {"env": "A"}},
    "tools": {"command": ["true"]},
    "trello": {"key": {"env": "K"}, "token": {"env": "T"}},
}
"""The required keys of the tables."""


def nested(path: list[str], value: Any) -> dict[str, Any]:
    """Return the configuration with a value and the required keys of its table."""
    required = REQUIRED.get(path[0], {})
    for name in reversed(path):
        value = {name: value}
    inner = value[path[0]] if path[1] != "it" else value[path[0]]["it"]
    inner.update(required)
    return value  # type: ignore[no-any-return]


def write(folder: Path, data: dict[str, Any]) -> Path:
    """Write the configuration as TOML, with inline tables."""
    path = folder / "draftsman.toml"
    tables = (f"{name} = {inline(value)}" for name, value in data.items())
    path.write_text("\n".join(tables), encoding="utf-8")
    return path


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def at(settings: Settings, path: list[str]) -> Any:
    """Return the value of a key."""
    value: Any = settings.model_dump(mode="json")
    for name in path:
        value = value[name]
    return value


def paths(former: str) -> tuple[list[str], list[str]]:
    """Return the former and the current path of a key of the table `it`."""
    path = former.replace("*", "it").split(".")
    return path, [*path[:-1], former_names.CONFIG_KEYS[former]]


def expected(value: Any) -> Any:
    """Return the value as the settings have it."""
    return (
        {"env": None, "file": None} | value if isinstance(value, dict) and "env" in value else value
    )


def test_every_former_key_has_a_value() -> None:
    assert set(VALUES) == set(former_names.CONFIG_KEYS)


@pytest.mark.parametrize("former", former_names.CONFIG_KEYS)
def test_a_former_key_of_the_file_is_accepted_with_a_warning(tmp_path: Path, former: str) -> None:
    path, current = paths(former)
    file = write(tmp_path, nested(path, VALUES[former]))
    settings = load(file)
    assert at(settings, current) == expected(VALUES[former])
    warning = f"{file}: {'.'.join(path)} is deprecated; use {'.'.join(current)}"
    assert settings.deprecations == (warning,)


@pytest.mark.parametrize("former", former_names.CONFIG_KEYS)
def test_both_names_of_a_key_are_refused(tmp_path: Path, former: str) -> None:
    path, current = paths(former)
    data = nested(path, VALUES[former])
    table = data
    for name in path[:-1]:
        table = table[name]
    table[current[-1]] = VALUES[former]
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, data))
    assert str(caught.value).endswith(
        f"use {'.'.join(current)}, which is also set; remove {path[-1]}"
    )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("former", former_names.CONFIG_KEYS)
def test_a_former_variable_is_accepted_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, former: str
) -> None:
    path, current = paths(former)
    data = nested(path, None)
    value = VALUES[former]
    name, renamed = ("DRAFTSMAN_" + "__".join(parts).upper() for parts in (path, current))
    monkeypatch.setenv(name, value if isinstance(value, str) else json.dumps(value))
    table = data
    for part in path[:-1]:
        table = table[part]
    del table[path[-1]]
    settings = load(write(tmp_path, data))
    assert at(settings, current) == expected(value)
    assert settings.deprecations == (f"{name} is deprecated; use {renamed}",)
    monkeypatch.setenv(renamed, "1")
    with pytest.raises(ConfigError, match=f"^{name} is deprecated; use {renamed}, which is also"):
        load(tmp_path / "draftsman.toml")


def test_a_former_key_in_a_variable_of_the_table_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAFTSMAN_QUESTIONS", '{"quiet": "22:00-07:00"}')
    settings = load()
    assert settings.questions.quiet_hours == "22:00-07:00"
    (warning,) = settings.deprecations
    assert warning.startswith("DRAFTSMAN_QUESTIONS: questions.quiet is deprecated; use ")


def test_a_variable_overrides_the_former_key_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = write(tmp_path, {"sandbox": {"uids": 7}})
    monkeypatch.setenv("DRAFTSMAN_SANDBOX__UID_COUNT", "9")
    assert load(file).sandbox.uid_count == 9


def test_an_error_names_the_key_as_it_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"draftsman.toml: sandbox.uids is 0: must be at least 1"):
        load(write(tmp_path, {"sandbox": {"uids": 0}}))
    monkeypatch.setenv("DRAFTSMAN_SANDBOX__UIDS", "-1")
    with pytest.raises(ConfigError, match=r"^DRAFTSMAN_SANDBOX__UIDS: sandbox.uids is '-1'"):
        load()


async def test_the_python_client_warns_of_a_former_key(tmp_path: Path, database_url: str) -> None:
    file = write(tmp_path, {"database_url": database_url, "sandbox": {"uids": 7}})
    with pytest.warns(
        DeprecationWarning, match=r"sandbox.uids is deprecated; use sandbox.uid_coun"
    ):
        async with Draftsman(config=file):
            pass
