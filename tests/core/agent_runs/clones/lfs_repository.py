"""Repositories with files of Git LFS, made without its program."""

from __future__ import annotations

from pathlib import Path

from draftsman.agent_runs.clones.lfs_filter import store_content
from tests.core.worker.agent_jobs import git

BIG = b"\0content of big\n" * 100


def pointer_to(store: Path, content: bytes) -> bytes:
    """Write a content to a store of Git LFS; return its pointer."""
    return store_content(store, [content])[0].pointer


def add_lfs_files(repo: Path, store: Path | None = None) -> None:
    """Commit files of Git LFS: `big.bin`, whose content is in the store, and `gone.bin`."""
    store = store or repo / ".git" / "lfs"
    (repo / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (repo / "big.bin").write_bytes(pointer_to(store, BIG))
    gone = store_content(repo.parent / "elsewhere", [b"gone\n"])[0]
    (repo / "gone.bin").write_bytes(gone.pointer)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "files of LFS", cwd=repo)
