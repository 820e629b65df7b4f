"""Artifacts at paths of agents: only files of the run are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from draftsman.agent_runs.clones import workspace as artifact
from draftsman.agent_runs.clones.workspace import read_artifact
from draftsman.errors import Failure


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("repo", "home"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text(name)
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "repo", tmp_path / "home"


def test_a_path_is_relative_to_the_workspace_or_absolute(roots: tuple[Path, Path]) -> None:
    repo, home = roots
    (repo / "sub").mkdir()
    (repo / "sub" / "deep.bin").write_bytes(bytes(range(256)))
    assert read_artifact(roots, "file.txt") == b"repo"
    assert read_artifact(roots, "sub/../sub/./deep.bin") == bytes(range(256))
    assert read_artifact(roots, str(repo / "file.txt")) == b"repo"
    assert read_artifact(roots, str(home / "file.txt")) == b"home"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "sub/../../secret.txt", "../repo2/x", "../home/../x"]
)
def test_a_path_that_leads_out_is_refused(path: str, roots: tuple[Path, Path]) -> None:
    with pytest.raises(Failure, match="is outside the workspace and") as raised:
        read_artifact(roots, path)
    assert (raised.value.origin, raised.value.code) == ("agent", "artifact")


def test_no_link_is_followed(roots: tuple[Path, Path], tmp_path: Path) -> None:
    repo, _ = roots
    (repo / "link.txt").symlink_to(tmp_path / "secret.txt")
    (repo / "folder").symlink_to(tmp_path)
    for path in ("link.txt", "folder/secret.txt", str(repo / "folder" / "secret.txt")):
        with pytest.raises(Failure, match=r"Too many levels of symbolic links|Not a directory"):
            read_artifact(roots, path)


def test_only_regular_files_within_the_size_limit_are_stored(
    roots: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, _ = roots
    os.mkfifo(repo / "pipe")
    (repo / "large").write_bytes(b"x" * 101)
    monkeypatch.setattr(artifact, "MAX_ARTIFACT", 100)
    for path in ("pipe", "large"):
        with pytest.raises(Failure, match="is not a regular file of at most 100 bytes"):
            read_artifact(roots, path)
    for path in (".", ""):
        with pytest.raises(Failure, match="Is a directory"):
            read_artifact(roots, path)
    with pytest.raises(Failure, match="'missing' No such file or directory"):
        read_artifact(roots, "missing")
    with pytest.raises(Failure, match="null byte"):
        read_artifact(roots, "a\0b")
