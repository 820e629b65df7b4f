"""The `apply` command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from draftsman.agent_runs.changes.diff import changed_files
from draftsman.errors import Refused
from draftsman.ids import job_name
from draftsman_tui.changes.local_changes import patch_of
from draftsman_tui.changes.user_repository import UserRepository, reason_of
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.ids import JobRef


@command(
    "apply",
    examples=(
        "draftsman apply D-142",
        "draftsman apply D-142/3 --check",
        "draftsman apply D-142 --reverse",
    ),
)
@click.argument("job", metavar="JOB[/QUESTION]", type=params.QUESTION)
@click.option("--check", is_flag=True, help="Only test whether the changes apply.")
@click.option("--reverse", is_flag=True, help="Undo the changes.")
@click.option("--dirty", is_flag=True, help="Apply despite local changes, without merging.")
@click.option(
    "-C",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    help="Your repository. Default: .",
)
async def apply(
    app: App,
    job: tuple[JobRef, int | None],
    check: bool,
    reverse: bool,
    dirty: bool,
    folder: Path,
) -> None:
    """Apply the changes of a job to your working tree.

    Changes are merged into files that have changed since. Conflicts are left in the files, and the
    exit code is 1. --reverse needs no --dirty while these files have no other changes.
    """
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job[0])
        patch = await patch_of(rt, number, job[1])
    repository = UserRepository.at(folder)
    flags = ["--whitespace=nowarn", *(["--reverse"] if reverse else [])]
    merge = False
    if check:
        flags.append("--check")
    elif reverse and _is_staged(repository, patch):
        flags.append("--index")
    elif not dirty:
        repository.check_clean("--dirty")
        merge = True
        flags.append("--3way")
    done = repository.attempt("apply", *flags, "-", stdin=patch)
    conflicts = repository.git("diff", "--name-only", "--diff-filter=U").splitlines()
    if done.returncode and not (conflicts and not dirty):
        raise Refused(f"{job_name(number)} does not apply: {reason_of(done.stderr)}")
    files = [name for name, _, _ in changed_files(patch.decode("utf-8", "replace"))]
    unchanged = merge and repository.attempt("diff", "--quiet", "HEAD").returncode == 0
    if app.json:
        app.out.document(
            {"job": job_name(number), "path": str(repository.top), "files": files}
            | {"applied": not (check or unchanged), "conflicts": conflicts}
        )
    verb = "applies" if check else ("was taken back" if reverse else "applied")
    count = f"{len(files)} file{'' if len(files) == 1 else 's'}"
    if conflicts:
        names = ", ".join(conflicts[:5])
        raise Refused(f"{job_name(number)} {verb} with conflicts; resolve them: {names}")
    if unchanged:
        has = "does not have" if reverse else "already has"
        app.out.info(f"{repository.top} {has} the changes of {job_name(number)}; nothing changed")
    else:
        app.out.info(f"{repository.top}: {job_name(number)} {verb} ({count})")


def _is_staged(repository: UserRepository, patch: bytes) -> bool:
    """Return whether the index and the working tree both have the changes, as `apply` leaves them.

    They are taken back from both, else the next commit would have them.
    """
    return not repository.attempt(
        "apply", "--check", "--reverse", "--index", "-", stdin=patch
    ).returncode
