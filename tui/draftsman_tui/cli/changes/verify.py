"""The `verify` command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from draftsman.agent_runs.changes.user_repository import UserRepository
from draftsman.agent_runs.evidence import signing
from draftsman.agent_runs.evidence.service import EvidenceVerifier, verify_statement
from draftsman.agent_runs.evidence.signing import PublicKey
from draftsman.agent_runs.evidence.statement import statement_lines
from draftsman.errors import Refused, UsageError
from draftsman.ids import parse_job
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.terminal import params

FILE = click.Path(dir_okay=False, path_type=Path)


@command(
    "verify",
    section="Changes",
    examples=(
        "draftsman verify D-142",
        "draftsman verify evidence.json --key worker.pub",
        "draftsman verify evidence.json -C ~/src/pay",
    ),
)
@click.argument("job_or_file", metavar="JOB|FILE", type=params.TEXT)
@click.option("--key", "keys", type=FILE, multiple=True, help="Trust only this public key.")
@click.option(
    "-C",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="A repository that must have the commit of the statement.",
)
async def verify(app: App, job_or_file: str, keys: tuple[Path, ...], folder: Path | None) -> None:
    """Check the signed evidence of a job.

    A file is checked without the database. The exit code is 1 if the evidence is not valid.
    """
    file = Path(job_or_file)
    if file.is_file():
        predicate, key = verify_statement(file.read_bytes(), _trusted(app, keys), job_or_file)
    else:
        if "/" in job_or_file or file.suffix:
            raise UsageError(f"{job_or_file}: no such file; use a job or a file of evidence")
        ref = parse_job(job_or_file)
        trusted = _trusted(app, keys)
        async with app.runtime(read_only=True) as rt:
            verifier = EvidenceVerifier(rt.read_model, rt.checkpoints, rt.changes)
            predicate, key = await verifier.verify(await number_of(rt, ref), trusted)
    if folder is not None:
        _check_repository(UserRepository.at(folder), predicate)
    if app.json:
        app.out.document({"verified": True, "key": key.id, "evidence": predicate})
        return
    with app.out.paged():
        app.out.print("\n".join(statement_lines(predicate)))
        app.out.print(f"signature valid, by the key {key.id[:16]}")


def _trusted(app: App, keys: tuple[Path, ...]) -> list[PublicKey]:
    """Return the named keys, otherwise those of the installation and of the settings."""
    if keys:
        return [signing.read_public(path) for path in keys]
    settings = app.settings
    return list(signing.trusted_keys(settings.data_dir, settings.evidence.trusted_keys))


def _check_repository(repository: UserRepository, predicate: dict[str, Any]) -> None:
    """Raise Refused unless the repository has the commit on its base, with its tree."""
    head = str(predicate["head"])
    if repository.commit_of(head) is None:
        raise Refused(f"{repository.top} does not have the commit {head[:12]}; fetch its branch")
    parent = repository.git("rev-parse", f"{head}^")
    tree = repository.git("rev-parse", f"{head}^{{tree}}")
    if (parent, tree) != (predicate["base"], predicate.get("tree")):
        raise Refused(f"the commit {head[:12]} of {repository.top} differs from the evidence")
