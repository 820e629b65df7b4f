"""The editor of a person at a line of a diff, and the diff side by side."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from draftsman.errors import Refused
from draftsman_tui.dashboard.changes.diff_dialog import DiffDialog
from draftsman_tui.dashboard.changes.diff_pane import DiffPane
from draftsman_tui.dashboard.changes.editor import editor_command, local_file
from tests.support.cases import cases
from tests.tui.dashboard.fixtures_data import PATCH
from tests.tui.dashboard.pictures import shown


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the file of the patch."""
    top = tmp_path / "inventory"
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    (top / "inventory").mkdir()
    (top / "inventory" / "stock.py").write_text("import re\n")
    return top


@cases(
    ("environment", "command"),
    [
        ({"EDITOR": "vi"}, ["vi", "+3", "/r/a b.py"]),
        (
            {"VISUAL": "/usr/bin/nano -w", "EDITOR": "vi"},
            ["/usr/bin/nano", "-w", "+3", "/r/a b.py"],
        ),
        ({"VISUAL": "", "EDITOR": "emacs -nw"}, ["emacs", "-nw", "+3", "/r/a b.py"]),
        ({"EDITOR": "code --wait"}, ["code", "--wait", "--goto", "/r/a b.py:3"]),
        ({"EDITOR": "hx"}, ["hx", "/r/a b.py:3"]),
    ],
)
def test_each_editor_gets_the_line_as_it_takes_it(
    environment: dict[str, str], command: list[str]
) -> None:
    assert editor_command(environment, Path("/r/a b.py"), 3) == command


@cases(
    ("environment", "why"),
    [({}, "no editor; set .VISUAL or .EDITOR"), ({"EDITOR": "vi 'x"}, "cannot be read")],
)
def test_without_an_editor_this_is_said(environment: dict[str, str], why: str) -> None:
    with pytest.raises(Refused, match=why):
        editor_command(environment, Path("/r/a.py"), 3)


def test_only_a_file_of_the_right_repository_is_opened(repository: Path, tmp_path: Path) -> None:
    (repository / "escape").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("")
    file = local_file(repository / "inventory", "inventory/stock.py")
    assert file == (repository / "inventory" / "stock.py").resolve()
    for folder, path, source, why in (
        (tmp_path, "inventory/stock.py", None, "is not in a repository; start the dashboard in a"),
        (repository, "inventory/stock.py", "https://git.example/x/y", "is not a clone of https:"),
        (repository, "gone.py", None, "no file gone.py in .*; :checkout brings"),
        (repository, "../secret", None, "no file"),
        (repository, "escape/secret", None, "no file"),
    ):
        with pytest.raises(Refused, match=why):
            local_file(folder, path, source)


@pytest.mark.usefixtures("frozen")
async def test_e_opens_the_line_under_the_cursor(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "opened"
    os.mkfifo(pipe)
    editor = tmp_path / "code"
    editor.write_text(f'#!/bin/sh\necho "$@" > {pipe}\n')
    editor.chmod(0o755)
    monkeypatch.chdir(repository)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(editor))
    async with shown("inbox") as seen:
        await seen.app.push_screen(DiffDialog("Diff of D-1", PATCH))
        await seen.see("+     return len(items)")
        for key, line in (("home", 1), ("end", 4)):
            await seen.press(key, "e")
            await seen.wait_for_toast(f"Opened inventory/stock.py:{line}")
            assert pipe.read_text().split() == ["--goto", f"{repository}/inventory/stock.py:{line}"]
        monkeypatch.setenv("EDITOR", "vi")
        await seen.press("e")
        await seen.wait_for_toast("this terminal cannot be left for an editor")
        monkeypatch.setenv("EDITOR", "")
        await seen.press("e")
        await seen.wait_for_toast("no editor; set $VISUAL or $EDITOR")


@pytest.mark.usefixtures("frozen")
async def test_a_diff_is_side_by_side_from_160_columns() -> None:
    async with shown("inbox") as seen:
        await seen.pilot.resize_terminal(160, 50)
        await seen.app.push_screen(DiffDialog("Diff of D-1", PATCH))
        await seen.until(lambda: "import re" in seen.text)
        view = seen.app.screen.query_one(DiffPane).view
        beside = [line for line in seen.lines if line.count("return len(") == 2]
        assert len(beside) == 1
        await seen.press("end")
        assert view._text(view.selected).endswith("+     return len(items)")
        await seen.press("vertical_line")
        await seen.until(lambda: not view.is_beside)
        assert not [line for line in seen.lines if line.count("return len(") == 2]
        assert view._text(view.selected).endswith("+     return len(items)")
        await seen.press("vertical_line")
        await seen.until(lambda: view.is_beside)
        await seen.pilot.resize_terminal(159, 50)
        await seen.until(lambda: not view.is_beside)
        await seen.press("vertical_line")
        await seen.wait_for_toast("side by side needs 160 columns; this screen has 159")
