"""Mirrors: bare copies of sources that belong to the worker."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from draftsman.agent_runs.clones.git import git, git_failure, init, object_format
from draftsman.agent_runs.clones.source import SHA, RepoSource
from draftsman.errors import Failure

CACHE_PATTERNS: Final = "__pycache__/\n.mypy_cache/\n.pytest_cache/\n.ruff_cache/\n"
"""Ignored caches of validators, which are not part of the work unless they are tracked."""


async def open_mirror(data_dir: Path, source: RepoSource) -> Path:
    """Return the source's mirror; created by rename, so that concurrent calls are safe.

    It has the object format of the source. Raises Failure `no_commits`, `not_a_repository`, …
    """
    name = hashlib.sha256(source.location.encode(errors="surrogateescape")).hexdigest()[:24]
    mirror = data_dir / "mirrors" / f"{name}.git"
    if mirror.is_dir():
        return mirror
    mirror.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    tips = await source.tips(mirror.parent, ["HEAD", "refs/heads/*", "refs/tags/*"])
    if not tips:
        text = f"{source.location} has no commits; create a first commit"
        raise git_failure(text, "no_commits")
    created = Path(tempfile.mkdtemp(dir=mirror.parent))
    await init(created, "--bare", object_format=object_format(next(iter(tips.values()))))
    (created / "info").mkdir()
    (created / "info" / "exclude").write_text(CACHE_PATTERNS)
    try:
        created.rename(mirror)
    except OSError:
        shutil.rmtree(created)
    return mirror


async def fetch_base(source: RepoSource, mirror: Path, base: str | None, ref: str) -> str:
    """Store the base as `ref` in the mirror; return its commit, cached if it is a commit id."""
    if base is None or not SHA.match(base):
        commit = await source.fetch(mirror, base, ref)
        await _cache_commit(mirror, base or "HEAD", commit)
        return commit
    try:
        await git("update-ref", ref, f"{base}^{{commit}}", cwd=mirror)
    except Failure:
        return await source.fetch(mirror, base, ref)
    return base


async def _cache_commit(mirror: Path, base: str, commit: str) -> None:
    """Set a ref on the fetched commit, so that git does not delete its objects."""
    name = hashlib.sha256(base.encode()).hexdigest()[:16]
    with suppress(Failure):
        await git("update-ref", f"refs/draftsman/fetched/{name}", commit, cwd=mirror)


async def commit_time(mirror: Path, commit: str) -> int:
    """Return the commit's time, in seconds since 1970."""
    return int(await git("show", "--no-patch", "--format=%ct", commit, cwd=mirror))
