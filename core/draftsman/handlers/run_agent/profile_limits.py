"""Limits of a repository's profile: files, lines and paths of the work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from draftsman.domain.question import QuestionKind
from draftsman.domain.question_spec import QuestionSpec
from draftsman.domain.quota import LIMIT_PREFIX, limit_failure
from draftsman.domain.repos.repo_profile import RepoProfile, is_among
from draftsman.errors import Failure
from draftsman.handlers.clone.workspace import Snapshot
from draftsman.handlers.run_agent.validation import Validation

APPROVAL: Final = "agent:limits"
"""Key of the approval of work that exceeds a limit."""
MAX_NAMED: Final = 5
"""Maximum number of paths in a message."""
MAX_PATH: Final = 200
"""Maximum characters of a path in a message."""


def check_paths(profile: RepoProfile, paths: Iterable[str]) -> None:
    """Raise Failure `limit:path_allowlist` for changes of other files."""
    if profile.path_allowlist is None:
        return
    if other := [path for path in paths if not is_among(path, profile.path_allowlist)]:
        text = f"changes outside of the allowed paths: {names(other)}"
        raise limit_failure("path_allowlist", text)


def approval_of(
    profile: RepoProfile,
    snapshot: Snapshot,
    paths: Sequence[str],
    branch: str,
    validation: Validation,
) -> QuestionSpec | None:
    """Return the approval that the work needs before it is published; None within the limits.

    Changed check files are named in it; they need an approval only if a required command passes
    because of them.
    """
    reasons = [*_reasons(profile, snapshot, paths), *validation.reasons(names)]
    if (changed := validation.check_files) and not validation.weakened:
        reasons += [f"It changes check files: {names(changed)}"] if reasons else []
    if not reasons:
        return None
    text = f"Publish {branch}? {'. '.join(reasons)}."
    return QuestionSpec(
        key=APPROVAL, kind=QuestionKind.APPROVAL, text=text, action={"publish": branch}
    )


def unapprovable(approval: QuestionSpec, error: Exception) -> Failure:
    """Return the failure of work without an eligible approver."""
    return Failure(
        f"not published: {error}. {approval.text}",
        origin="agent",
        code=f"{LIMIT_PREFIX}approval",
        declared="PERMANENT",
    )


def names(paths: Sequence[str]) -> str:
    """Return the first paths, and the number of the others."""
    shown = ", ".join(path[:MAX_PATH] for path in paths[:MAX_NAMED])
    return f"{shown} and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else shown


def _reasons(profile: RepoProfile, snapshot: Snapshot, paths: Sequence[str]) -> Iterator[str]:
    lines = snapshot.insertions + snapshot.deletions
    if snapshot.files_changed > (most := profile.max_files_changed):
        yield f"It changes {snapshot.files_changed:,} files (max_files_changed: {most:,})"
    if lines > (most := profile.max_loc_delta):
        yield f"It adds and deletes {lines:,} lines (max_loc_delta: {most:,})"
    if risky := [path for path in paths if is_among(path, profile.risky_paths or ())]:
        yield f"It changes risky paths: {names(risky)}"
