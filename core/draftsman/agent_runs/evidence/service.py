"""Verification of signed evidence: of a file offline, and of a job against its patch and commit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from draftsman.agent_runs.evidence.statement import (
    Envelope,
    parse_envelope,
    parse_payload,
    predicate_of,
    signed_bytes,
)
from draftsman.errors import NotFound, Refused, UsageError
from draftsman.jobs.job import TERMINAL, Job
from draftsman.jobs.reserved_names import EVIDENCE

if TYPE_CHECKING:
    from draftsman.agent_runs.changes.service import Changes
    from draftsman.agent_runs.evidence.signing import PublicKey
    from draftsman.jobs.details.service.read_model import ReadModel
    from draftsman.jobs.runs.saved_data import Artifact
    from draftsman.jobs.runs.service.checkpoints import Checkpoints


class VerifiedEvidence(NamedTuple):
    """The predicate of a valid statement, and the key that signed it."""

    predicate: dict[str, Any]
    key: PublicKey


class EvidenceVerifier:
    """Checks the evidence of jobs."""

    def __init__(self, read_model: ReadModel, checkpoints: Checkpoints, changes: Changes) -> None:
        self._read_model = read_model
        self._checkpoints = checkpoints
        self._changes = changes

    async def verify(self, number: int, trusted: Sequence[PublicKey]) -> VerifiedEvidence:
        """Return the evidence of a job, which is about its newest patch and commit.

        Raises NotFound for a job without evidence, Refused for evidence that is not valid.
        """
        job = await self._read_model.job(number)
        patch = await self._changes.patch(number)
        try:
            _, data = await self._checkpoints.read_artifact(number, EVIDENCE)
        except NotFound:
            raise NotFound(_no_evidence(job, patch)) from None
        content = b"" if patch is None else await self._checkpoints.content(patch)
        evidence = verify_statement(data, trusted, job.name)
        predicate = evidence.predicate
        commit = (job.result or {}).get("commit")
        if predicate.get("job_id") != str(job.id):
            raise Refused(f"the evidence is about another job, {predicate['job']}")
        if predicate["patch_sha256"] != hashlib.sha256(content).hexdigest():
            raise Refused(f"the evidence is about another patch than that of {job.name}")
        if commit is not None and predicate["head"] != commit:
            raise Refused(f"the evidence is about another commit than {commit[:12]} of {job.name}")
        return evidence


def verify_statement(data: bytes, trusted: Sequence[PublicKey], name: str) -> VerifiedEvidence:
    """Return the content of a signed statement; raises Refused unless a trusted key signed it."""
    try:
        envelope = parse_envelope(data)
        signer = _signer(envelope, trusted)
        if signer is None:
            ids = ", ".join(id[:16] for id, _ in envelope.signatures) or "none"
            hint = "use its public key: --key FILE, or [evidence] trusted_keys"
            raise Refused(f"{name}: no valid signature by a trusted key (signed by {ids}); {hint}")
        return VerifiedEvidence(predicate_of(parse_payload(envelope)), signer)
    except UsageError as error:
        raise Refused(f"{name}: {error}") from None


def _signer(envelope: Envelope, trusted: Sequence[PublicKey]) -> PublicKey | None:
    message = signed_bytes(envelope.payload)
    signatures = [signature for _, signature in envelope.signatures]
    return next(
        (key for key in trusted for item in signatures if key.verifies(item, message)), None
    )


def _no_evidence(job: Job, patch: Artifact | None) -> str:
    if job.status not in TERMINAL:
        return f"{job.name} has no evidence so far; see: draftsman why {job.name}"
    empty = patch is None or patch.size == 0
    why = "it has no changes" if empty else "only fixes in a repository with a profile have it"
    return f"{job.name} has no evidence: {why}; see: draftsman show {job.name}"
