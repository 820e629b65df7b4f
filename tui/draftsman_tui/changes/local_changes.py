"""The patch of a job, applied to the working tree of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.errors import Refused
from draftsman.ids import job_name
from draftsman_tui.changes.user_repository import UserRepository, reason_of
from draftsman_tui.entities.artifacts import no_diff_reason

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


async def patch_of(rt: Runtime, number: int, ordinal: int | None) -> bytes:
    """Return the patch of a job, or of the run that asked a question; raises Refused."""
    name, run = job_name(number), None
    if ordinal is not None:
        question = await rt.questions.get(number, ordinal)
        name, run = question.name, question.run
    patch = await rt.checkpoints.patch(number, run)
    if patch is None or patch.size == 0:
        raise Refused(await no_diff_reason(rt, name, number, patch is None))
    return await rt.checkpoints.content(patch)


def apply_patch(repository: UserRepository, name: str, patch: bytes) -> str:
    """Merge the changes of a job into a clean working tree; return what happened.

    Raises Refused, also for conflicts, which are left in the files.
    """
    repository.check_clean(f"draftsman apply {name} --dirty")
    done = repository.attempt("apply", "--whitespace=nowarn", "--3way", "-", stdin=patch)
    conflicts = repository.git("diff", "--name-only", "--diff-filter=U").splitlines()
    if conflicts:
        raise Refused(f"{name} applied with conflicts; resolve them: {', '.join(conflicts[:5])}")
    if done.returncode:
        raise Refused(f"{name} does not apply: {reason_of(done.stderr)}")
    if repository.attempt("diff", "--quiet", "HEAD").returncode == 0:
        return f"{repository.top} already has the changes of {name}; nothing changed"
    return f"{repository.top}: {name} applied"
