"""What outlives a dashboard: written at once, by several at the same time, and never lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from draftsman.errors import ConfigError, NotFound, Refused, UsageError
from draftsman.settings import former_names
from draftsman_tui.dashboard import saved_views
from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.saved_views import BUILTIN_VIEWS, View

VIEW = View("jobs", "status:failed by:me", "TITLE", True, ("JOB", "TITLE"))
WRITER = """
import sys
from pathlib import Path
from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.saved_views import View
preferences = Preferences(Path(sys.argv[1]))
sys.stdin.read(1)
for nth in range(20):
    preferences.save(f"{sys.argv[2]}-{nth}", View("jobs", f"age<{nth + 1}h"))
    preferences.save_theme("light")
"""


@pytest.fixture
def kept(tmp_path: Path) -> Preferences:
    return Preferences(tmp_path / "of" / "mine" / "dashboard.json")


def test_a_view_and_a_theme_are_kept(kept: Preferences) -> None:
    assert (kept.views(), kept.theme, kept.problems()) == (BUILTIN_VIEWS, None, [])
    assert kept.save("bad", VIEW) is False
    assert kept.save("bad", VIEW) is True
    kept.save_theme("light")
    again = Preferences(kept.path)
    assert (again.views()["bad"], again.theme) == (VIEW, "light")
    again.drop("bad")
    assert kept.views() == BUILTIN_VIEWS
    with pytest.raises(NotFound, match="no saved view 'bad'"):
        kept.drop("bad")


def test_several_that_write_at_once_lose_nothing(kept: Preferences) -> None:
    command = [sys.executable, "-c", WRITER, str(kept.path)]
    writers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE) for name in ("a", "b", "c")
    ]
    for one in writers:
        assert one.stdin is not None
        one.stdin.close()  # they all wait for this, so as to begin together
    assert [one.wait(60) for one in writers] == [0, 0, 0]
    wanted = {f"{name}-{nth}" for name in "abc" for nth in range(20)}
    assert kept.views().keys() == wanted | BUILTIN_VIEWS.keys()
    assert [path.name for path in kept.path.parent.iterdir() if path.name[0] == "."] == []


@pytest.mark.parametrize("text", ["{", "[]", '{"views": []}', "\x00", '{"a": "' + "\udcff" + '"}'])
def test_a_broken_file_is_one_line_and_is_left_alone(kept: Preferences, text: str) -> None:
    kept.path.parent.mkdir(parents=True)
    data = text.encode("utf-8", "surrogateescape")
    kept.path.write_bytes(data)
    (problem,) = kept.problems()
    assert str(kept.path) in problem
    assert "fix or remove it" in problem
    assert "\n" not in problem
    for change in (lambda: kept.save("x", VIEW), lambda: kept.drop("x")):
        with pytest.raises(ConfigError, match="not a valid preferences file"):
            change()
    assert kept.path.read_bytes() == data


def test_what_is_not_understood_stays(kept: Preferences) -> None:
    odd = {"table": "nonsense", "new": 1}
    kept.path.parent.mkdir(parents=True)
    kept.path.write_text(json.dumps({"theme": 3, "later": [1], "views": {"odd": odd}}))
    assert kept.theme is None
    assert kept.views() == BUILTIN_VIEWS
    assert "invalid view 'odd': unknown table 'nonsense'" in kept.problems()[0]
    kept.save("bad", VIEW)
    found = json.loads(kept.path.read_text())
    assert (found["later"], found["views"]["odd"]) == ([1], odd)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises((Refused, ConfigError), match=r"file/dashboard.json"):
        Preferences(tmp_path / "file" / "dashboard.json").save("bad", VIEW)


@pytest.mark.parametrize("table", former_names.COLUMNS)
def test_a_former_column_of_a_saved_view_is_replaced(table: str) -> None:
    for former, current in former_names.COLUMNS[table].items():
        view = saved_views.read({"table": table, "sort": former, "columns": ["JOB", former]})
        assert (view.sort, view.columns) == (current, ("JOB", current))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (3, "expected an object"),
        ({"table": "jobs", "filter": "age<soon"}, "invalid duration"),
        ({"table": "jobs", "filter": "status:nonsense"}, "unknown status"),
        ({"table": "jobs", "filter": 3}, "must be a string"),
        ({"table": "jobs", "sort": "NONSENSE"}, "unknown column 'NONSENSE'"),
        ({"table": "jobs", "columns": ["JOB", ["x"]]}, "unknown column"),
        ({"table": ["jobs"]}, "unknown table"),
    ],
)
def test_a_view_that_cannot_be_is_refused(data: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        saved_views.read(data)


@pytest.mark.parametrize("name", BUILTIN_VIEWS)
def test_what_comes_along_can_be_used(name: str) -> None:
    assert saved_views.read(saved_views.to_json(BUILTIN_VIEWS[name])) == BUILTIN_VIEWS[name]
    assert saved_views.validate_name(name, frozenset()) == name


@pytest.mark.parametrize("name", ["", "-a", "a b", "x" * 41, "ü", "jobs"])
def test_a_name_that_cannot_be_typed_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"invalid view name|command"):
        saved_views.validate_name(name, frozenset({"jobs"}))
