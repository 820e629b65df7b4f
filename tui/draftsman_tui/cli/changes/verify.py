"""The `verify` command."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.ids import job_name
from draftsman.domain.job import TERMINAL
from draftsman.domain.reserved_names import EVIDENCE
from draftsman.errors import NotFound, Refused, UsageError
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.changes.user_repository import UserRepository
from draftsman_tui.common import params

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.domain.job import Job
    from draftsman.runtime import Runtime
    from draftsman.signing import PublicKey

FILE = click.Path(dir_okay=False, path_type=Path)


@command(
    "verify",
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
        predicate, key = _check(app, file.read_bytes(), keys, job_or_file)
    else:
        if "/" in job_or_file or file.suffix:
            raise UsageError(f"{job_or_file}: no such file; use a job or a file of evidence")
        ref = params.JOB.convert(job_or_file, None, click.get_current_context())
        predicate, key = await _check_job(app, ref, keys)
    if folder is not None:
        _check_repository(UserRepository.at(folder), predicate)
    if app.json:
        app.out.document({"verified": True, "key": key.id, "evidence": predicate})
        return
    from draftsman.domain.evidence.statement import statement_lines

    with app.out.paged():
        app.out.print("\n".join(statement_lines(predicate)))
        app.out.print(f"signature valid, by the key {key.id[:16]}")


async def _check_job(
    app: App, ref: JobRef, keys: tuple[Path, ...]
) -> tuple[dict[str, Any], PublicKey]:
    """Check the evidence of a job, and that it is about the job's newest patch and commit."""
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, ref)
        job = await rt.read_model.job(number)
        try:
            _, data = await rt.checkpoints.read_artifact(number, EVIDENCE)
        except NotFound:
            raise NotFound(await _no_evidence(rt, job)) from None
        patch = await rt.checkpoints.patch(number)
        content = b"" if patch is None else await rt.checkpoints.content(patch)
    predicate, key = _check(app, data, keys, job_name(number))
    commit = (job.result or {}).get("commit")
    if predicate.get("job_id") != str(job.id):
        raise Refused(f"the evidence is about another job, {predicate['job']}")
    if predicate["patch_sha256"] != hashlib.sha256(content).hexdigest():
        raise Refused(f"the evidence is about another patch than that of {job.name}")
    if commit is not None and predicate["head"] != commit:
        raise Refused(f"the evidence is about another commit than {commit[:12]} of {job.name}")
    return predicate, key


async def _no_evidence(rt: Runtime, job: Job) -> str:
    """Explain why a job has no evidence."""
    if job.status not in TERMINAL:
        return f"{job.name} has no evidence so far; see: draftsman why {job.name}"
    patch = await rt.checkpoints.patch(job.number)
    empty = patch is None or patch.size == 0
    why = "it has no changes" if empty else "only fixes in a repository with a profile have it"
    return f"{job.name} has no evidence: {why}; see: draftsman show {job.name}"


def _check(
    app: App, data: bytes, keys: tuple[Path, ...], name: str
) -> tuple[dict[str, Any], PublicKey]:
    """Return the predicate of a valid statement, and the key that signed it."""
    from draftsman import signing
    from draftsman.domain.evidence import envelope as dsse
    from draftsman.domain.evidence.statement import predicate_of

    try:
        envelope = dsse.parse_envelope(data)
        settings = None if keys else app.settings
        trusted = (
            [signing.read_public(path) for path in keys]
            if settings is None
            else list(signing.trusted_keys(settings.data_dir, settings.evidence.trusted_keys))
        )
        signer = _signer(envelope, trusted)
        if signer is None:
            ids = ", ".join(id[:16] for id, _ in envelope.signatures) or "none"
            hint = "use its public key: --key FILE, or [evidence] trusted_keys"
            raise Refused(f"{name}: no valid signature by a trusted key (signed by {ids}); {hint}")
        return predicate_of(dsse.parse_payload(envelope)), signer
    except UsageError as error:
        raise Refused(f"{name}: {error}") from None


def _signer(envelope: Any, trusted: list[PublicKey]) -> PublicKey | None:
    from draftsman.domain.evidence.envelope import signed_bytes

    message = signed_bytes(envelope.payload)
    return next(
        (
            key
            for key in trusted
            for _, signature in envelope.signatures
            if key.verifies(signature, message)
        ),
        None,
    )


def _check_repository(repository: UserRepository, predicate: dict[str, Any]) -> None:
    """Raise Refused unless the repository has the commit on its base, with its tree."""
    head = str(predicate["head"])
    if repository.commit_of(head) is None:
        raise Refused(f"{repository.top} does not have the commit {head[:12]}; fetch its branch")
    parent = repository.git("rev-parse", f"{head}^")
    tree = repository.git("rev-parse", f"{head}^{{tree}}")
    if (parent, tree) != (predicate["base"], predicate.get("tree")):
        raise Refused(f"the commit {head[:12]} of {repository.top} differs from the evidence")
