"""The worker's own copy of a source: bare, without configuration of anybody's, one per source."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from draftsman.errors import Failure
from draftsman.handlers.clone.git import git
from draftsman.handlers.clone.source import SHA, RepoSource

CACHE_PATTERNS: Final = "__pycache__/\n.mypy_cache/\n.pytest_cache/\n.ruff_cache/\n"
"""What validators leave in a tree is nobody's work; it counts only where it was committed."""


async def open_mirror(data_dir: Path, source: RepoSource) -> Path:
    """Return the source's mirror; made aside and renamed, so that several may try at once."""
    name = hashlib.sha256(source.where.encode(errors="surrogateescape")).hexdigest()[:24]
    mirror = data_dir / "mirrors" / f"{name}.git"
    if mirror.is_dir():
        return mirror
    mirror.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = Path(tempfile.mkdtemp(dir=mirror.parent))
    await git("init", "--quiet", "--bare", "--template=", str(made), cwd=mirror.parent)
    (made / "info").mkdir()
    (made / "info" / "exclude").write_text(CACHE_PATTERNS)
    try:
        made.rename(mirror)
    except OSError:
        shutil.rmtree(made)
    return mirror


async def fetch_base(source: RepoSource, mirror: Path, base: str | None, ref: str) -> str:
    """Return the base's commit, as `ref` in the mirror; a known commit needs no source."""
    if base is None or not SHA.match(base):
        found = await source.fetch(mirror, base, ref)
        await _keep(mirror, base or "HEAD", found)
        return found
    try:
        await git("cat-file", "-e", f"{base}^{{commit}}", cwd=mirror)
        await git("update-ref", ref, base, cwd=mirror)
    except Failure:
        return await source.fetch(mirror, base, ref)
    return base


async def _keep(mirror: Path, base: str, commit: str) -> None:
    """Keep what was fetched, or the next run fetches it all again; the last one at it wins."""
    name = hashlib.sha256(base.encode()).hexdigest()[:16]
    with suppress(Failure):
        await git("update-ref", f"refs/draftsman/fetched/{name}", commit, cwd=mirror)


async def commit_time(mirror: Path, commit: str) -> int:
    """Return when the commit was made, in seconds since 1970."""
    return int(await git("show", "--no-patch", "--format=%ct", commit, cwd=mirror))
