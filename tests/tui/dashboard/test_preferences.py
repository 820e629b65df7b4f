"""Preferences file: immediate and concurrent writes, and invalid content."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from draftsman.errors import ConfigError, NotFound, Refused, UsageError
from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.tables import saved_views
from draftsman_tui.dashboard.tables.saved_views import BUILTIN_VIEWS, View
from tests.support.cases import cases
from tests.support.fork_server import ROOT

VIEW = View("jobs", "status:failed by:me", "TITLE", True, ("JOB", "TITLE"))
WRITER = "tests.tui.dashboard.preferences_writer"


@pytest.fixture
def preferences(tmp_path: Path) -> Preferences:
    return Preferences(tmp_path / "of" / "mine" / "dashboard.json")


def test_view_and_theme_are_saved(preferences: Preferences) -> None:
    assert (preferences.views(), preferences.theme, preferences.problems()) == (
        BUILTIN_VIEWS,
        None,
        [],
    )
    assert preferences.save("bad", VIEW) is False
    assert preferences.save("bad", VIEW) is True
    preferences.save_theme("light")
    again = Preferences(preferences.path)
    assert (again.views()["bad"], again.theme) == (VIEW, "light")
    again.drop("bad")
    assert preferences.views() == BUILTIN_VIEWS
    with pytest.raises(NotFound, match="no saved view 'bad'"):
        preferences.drop("bad")


def test_concurrent_writers_lose_nothing(preferences: Preferences) -> None:
    command = [sys.executable, "-m", WRITER, str(preferences.path)]
    writers = [subprocess.Popen([*command, name], stdin=subprocess.PIPE, cwd=ROOT) for name in "ab"]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()  # both wait for this, so as to begin together
    assert [writer.wait(60) for writer in writers] == [0, 0]
    expected = {f"{name}-{nth}" for name in "ab" for nth in range(20)}
    assert preferences.views().keys() == expected | BUILTIN_VIEWS.keys()
    assert [path.name for path in preferences.path.parent.iterdir() if path.name[0] == "."] == []


@pytest.mark.parametrize("text", ["{", "[]", '{"views": []}', "\x00", '{"a": "' + "\udcff" + '"}'])
def test_invalid_file_is_reported_in_one_line_and_not_overwritten(
    preferences: Preferences, text: str
) -> None:
    preferences.path.parent.mkdir(parents=True)
    data = text.encode("utf-8", "surrogateescape")
    preferences.path.write_bytes(data)
    (problem,) = preferences.problems()
    assert str(preferences.path) in problem
    assert "fix or remove it" in problem
    assert "\n" not in problem
    for change in (lambda: preferences.save("x", VIEW), lambda: preferences.drop("x")):
        with pytest.raises(ConfigError, match="not a valid preferences file"):
            change()
    assert preferences.path.read_bytes() == data


def test_unknown_keys_are_preserved(preferences: Preferences) -> None:
    odd = {"table": "nonsense", "new": 1}
    preferences.path.parent.mkdir(parents=True)
    preferences.path.write_text(json.dumps({"theme": 3, "later": [1], "views": {"odd": odd}}))
    assert preferences.theme is None
    assert preferences.views() == BUILTIN_VIEWS
    assert "invalid view 'odd': unknown table 'nonsense'" in preferences.problems()[0]
    preferences.save("bad", VIEW)
    stored = json.loads(preferences.path.read_text())
    assert (stored["later"], stored["views"]["odd"]) == ([1], odd)


def test_unwritable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises((Refused, ConfigError), match=r"file/dashboard.json"):
        Preferences(tmp_path / "file" / "dashboard.json").save("bad", VIEW)


@cases(
    ("data", "message"),
    [
        (3, "expected an object"),
        ({"table": "jobs", "filter": "age<soon"}, "invalid time"),
        ({"table": "jobs", "filter": "status:nonsense"}, "unknown status"),
        ({"table": "jobs", "filter": 3}, "must be a string"),
        ({"table": "jobs", "sort": "NONSENSE"}, "unknown column 'NONSENSE'"),
        ({"table": "jobs", "columns": ["JOB", ["x"]]}, "unknown column"),
        ({"table": ["jobs"]}, "unknown table"),
    ],
)
def test_invalid_view_is_rejected(data: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        saved_views.read(data)


@cases("name", BUILTIN_VIEWS)
def test_builtin_views_are_valid(name: str) -> None:
    assert saved_views.read(saved_views.to_json(BUILTIN_VIEWS[name])) == BUILTIN_VIEWS[name]
    assert saved_views.validate_name(name, frozenset()) == name


@cases("name", ["", "-a", "a b", "x" * 41, "ü", "jobs"])
def test_invalid_view_name_is_rejected(name: str) -> None:
    with pytest.raises(UsageError, match=r"invalid view name|command"):
        saved_views.validate_name(name, frozenset({"jobs"}))
