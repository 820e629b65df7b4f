"""The size of a checkout, which is known before it: a small repository may have a huge tree."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from draftsman.agent_runs.clones.git import read_records
from draftsman.agent_runs.clones.lfs_filter import LfsObject
from draftsman.jobs.runs.quota import quota_failure
from draftsman.settings.quotas import QuotaSettings


async def check_tree_size(mirror: Path, commit: str, quotas: QuotaSettings) -> None:
    """Sum the files of a commit of a mirror.

    Raises Failure `quota:tree` for more files or bytes than a checkout may have. The listing ends
    there: the same folder may be listed any number of times.
    """
    files = 0
    size = 0

    def add(entry: bytes) -> None:
        nonlocal files, size
        files += 1
        blob = entry.partition(b"\t")[0].rpartition(b" ")[2]
        size += int(blob) if blob.isdigit() else 0
        if files > quotas.tree_files:
            text = f"commit {commit[:12]} has more than {quotas.tree_files:,} files"
            raise quota_failure("tree", text, "tree_files")
        if size > quotas.tree_bytes:
            text = f"the files of commit {commit[:12]} have more than {quotas.tree_bytes:,} bytes"
            raise quota_failure("tree", text, "tree_bytes")

    await read_records("ls-tree", "-rlz", "--full-tree", commit, cwd=mirror, take=add)


def check_contents_size(objects: Iterable[LfsObject], quotas: QuotaSettings) -> None:
    """Sum the contents of Git LFS of a checkout; raises Failure `quota:tree`."""
    if sum(item.size for item in objects) > quotas.tree_bytes:
        text = f"the files of Git LFS have more than {quotas.tree_bytes:,} bytes"
        raise quota_failure("tree", text, "tree_bytes")
