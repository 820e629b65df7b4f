"""The signed statement about published work, which draftsman makes from its own records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.evidence import signing
from draftsman.agent_runs.evidence.statement import Envelope, signed_bytes, statement_of
from draftsman.agent_runs.policy_check import PolicyCheck, approval_key
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.validation import Validation
from draftsman.costs.budgets import usage_of
from draftsman.errors import ConfigError, Failure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.runs.run import Run
from draftsman.log import redact
from draftsman.questions.question import Question
from draftsman.repos.repo_profile import SavedProfile
from draftsman.text import canonical, clean, digest
from draftsman.version import installed

AGREED: Final = ("answered", "approved")
"""Outcomes of questions that are part of the statement."""


async def sign_statement(
    run: WorkerRun,
    workspace: Workspace,
    snapshot: Snapshot,
    saved: SavedProfile,
    validation: Validation,
    check: PolicyCheck,
    iterations: int,
) -> None:
    """Store the signed statement about this work as an artifact.

    Raises Failure `evidence_key` if the private key of the worker cannot be used.
    """
    patch = await workspace.diff(snapshot)
    runs = await run.runs()
    questions, _ = await run.wait(run.services.questions.of_job, run.job.number)
    predicate = {
        "job": run.job.name,
        "job_id": str(run.job.id),
        "repository": workspace.source.location,
        "branch": workspace.branch,
        "base": snapshot.base_sha,
        "head": snapshot.commit,
        "tree": snapshot.tree,
        "patch_sha256": hashlib.sha256(patch).hexdigest(),
        "draft": bool(validation.failed),
        "request": {
            "by": run.job.invoker_id,
            "source": str(run.job.source),
            "title": run.job.own_title,
            "at": run.job.created_at.isoformat(),
        },
        "agent": _agent(run, runs),
        "usage": usage_of(runs),
        "iterations": iterations,
        "profile_sha256": digest(saved.profile.model_dump(mode="json")),
        "commands": [
            *map(_command, validation.commands),
            *(_command(item) | {"check_files": "base"} for item in validation.base_checks),
        ],
        "check_files": list(validation.check_files),
        "tests": None if validation.evidence is None else validation.evidence.as_json(),
        "policy": _policy(check, questions),
        "decisions": _decisions(questions),
        "worker": {"version": installed(), "sandbox": _sandbox(workspace)},
        "at": (await run.wait(run.services.checkpoints.now)).isoformat(),
    }
    payload = canonical(clean(statement_of(predicate))).encode()
    try:
        key = signing.signing_key(run.settings.data_dir, run.settings.evidence.key)
    except ConfigError as error:
        raise Failure(
            str(error), origin="handler", code="evidence_key", declared="PERMANENT"
        ) from None
    signature = key.sign(signed_bytes(payload))
    await run.evidence(Envelope(payload, ((key.public.id, signature),)).encode())


def _agent(run: WorkerRun, runs: Sequence[Run]) -> dict[str, Any]:
    """Return the agent with its version and models, as its runs recorded them."""
    params: Mapping[str, Any] = next(
        (item.params_snapshot for item in reversed(runs) if "agent" in item.params_snapshot), {}
    )
    models = {model for item in runs for model in (item.usage or {}).get("models", ())}
    return {
        "name": params.get("agent") or run.job.agent_request.agent,
        "version": params.get("version"),
        "command": params.get("command"),
        "models": sorted(models),
    }


def _command(item: CommandResult) -> dict[str, Any]:
    return {
        "name": item.name,
        "command": redact(item.command),
        "required": item.required,
        "exit_code": item.exit_code,
        "seconds": round(item.seconds, 3),
        "at": item.at,
    }


def _policy(check: PolicyCheck, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the policy in force, and its findings with the question that approved each."""
    names = {item.key: item.name for item in questions if item.status != "superseded"}
    findings = [
        finding.as_json() | {"question": names.get(approval_key(number))}
        for number, group in enumerate(check.groups, 1)
        for finding in group.findings
    ]
    return {"sha256": check.policy.digest, "findings": findings}


def _decisions(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """Return the answered questions of the job, with people, digests and patches."""
    decided = [(item, item.resolution or {}) for item in questions]
    return [
        {
            "question": item.name,
            "kind": str(item.kind),
            "outcome": resolution["outcome"],
            "value": resolution.get("value"),
            "by": list(resolution.get("by", ())),
            "via": resolution.get("via"),
            **({"rule": item.rule_text} if item.rule_text else {}),
            "at": None if item.answered_at is None else item.answered_at.isoformat(),
            "digest": item.digest,
            "action": item.action,
            "patch_sha256": item.patch_sha256,
        }
        for item, resolution in decided
        if resolution.get("outcome") in AGREED
    ]


def _sandbox(workspace: Workspace) -> str | None:
    return None if workspace.sandbox is None else workspace.sandbox.sandbox.mode
