"""Which files of an app are looked at for changes."""

from __future__ import annotations

import os
from pathlib import Path

from draftsman_tui.cli.processes.source_watch import SourceWatch


def test_each_change_of_a_python_file_is_named_once(tmp_path: Path) -> None:
    jobs = tmp_path / "company" / "jobs.py"
    jobs.parent.mkdir()
    jobs.write_text("1")
    watch = SourceWatch(tmp_path)
    assert watch.changed() is None
    os.utime(jobs, (1, 1))
    assert [watch.changed(), watch.changed()] == ["company/jobs.py", None]
    (tmp_path / "new.py").write_text("")
    assert [watch.changed(), watch.changed()] == ["new.py", None]
    (tmp_path / "new.py").unlink()
    assert [watch.changed(), watch.changed()] == ["new.py", None]


def test_other_files_and_those_of_environments_do_not_count(tmp_path: Path) -> None:
    watch = SourceWatch(tmp_path)
    for name in ("a.txt", ".venv/a.py", "venv/a.py", "__pycache__/a.py", "node_modules/a.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    assert watch.changed() is None
