"""The sample repository of the demo, which is the same everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from draftsman.agent_runs.clones.git import git
from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.errors import UsageError


async def test_sample_repository_has_a_single_reproducible_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await make_sample_repo(tmp_path / "a" / "deep")
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    old = os.umask(0o077)
    try:
        second = await make_sample_repo(tmp_path / "b")
    finally:
        os.umask(old)
    assert first == second
    log = await git("log", "--format=%an %s", "--all", cwd=tmp_path / "b")
    assert log == b"draftsman Count the warehouse\n"
    assert await git("status", "--porcelain", cwd=tmp_path / "b") == b""
    names = (await git("ls-files", cwd=tmp_path / "b")).decode().split()
    assert "inventory/stock.py" in names
    assert not any(name.endswith(".txt") for name in names)


async def test_sample_code_works_and_has_findings_of_both_levels(tmp_path: Path) -> None:
    await make_sample_repo(tmp_path)
    assert run("-m", "unittest", "-q", "tests.test_stock", cwd=tmp_path).returncode == 0
    outputs = [run("-m", "ruff", "check", cwd=tmp_path)]
    outputs += [run("-m", "ruff", "check", "--fix", *options, cwd=tmp_path) for options in LEVELS]
    run("-m", "ruff", "format", cwd=tmp_path)
    outputs.append(run("-m", "ruff", "check", cwd=tmp_path))
    assert [each.returncode for each in outputs] == [1, 1, 1, 0]
    assert b"fixable with the `--fix` option" in outputs[0].stdout or b"[*]" in outputs[0].stdout


LEVELS = ((), ("--unsafe-fixes",))


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, check=False)


async def test_sample_repository_is_not_created_in_a_folder_with_files(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty; choose a new folder"):
        await make_sample_repo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
