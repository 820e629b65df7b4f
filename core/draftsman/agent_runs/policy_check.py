"""The check of work by the policy of its repository."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

from draftsman.agent_runs.clones.open_branches import first_file
from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.policies.code_owners import (
    FILES,
    MAX_SIZE,
    ApprovalGroup,
    OwnerRules,
    approval_groups,
)
from draftsman.agent_runs.policies.finding_text import denial_text
from draftsman.agent_runs.policies.repo_policy import PolicyFinding, RepoPolicy
from draftsman.errors import Failure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.runs.quota import LIMIT_PREFIX
from draftsman.repos.repo_catalog import RepoLocation

BINARY: Final = b"\nGIT binary patch\n"


@dataclass(frozen=True, slots=True)
class PolicyCheck:
    """The decision of a policy about work on a base commit."""

    policy: RepoPolicy
    base_sha: str
    groups: tuple[ApprovalGroup, ...] = ()
    """The findings that need an approval, by the people who may approve them."""


async def current_policy(run: WorkerRun, location: RepoLocation) -> RepoPolicy:
    """Return the policy in force now: the profile may have changed since the run began."""
    saved = await run.wait(run.repos.profile, location)
    return RepoPolicy.of(run.settings.policy, None if saved is None else saved.profile)


async def check_policy(
    run: WorkerRun, workspace: Workspace, snapshot: Snapshot, location: RepoLocation
) -> PolicyCheck:
    """Return the decision of the policy in force; raises Failure `limit:RULE` for denied work."""
    policy = await current_policy(run, location)
    patch = await workspace.diff(snapshot)
    text_patch = await workspace.text_patch(snapshot) if BINARY in patch else b""
    texts = (data.decode("utf-8", "surrogateescape") for data in (patch, text_patch))
    findings = await asyncio.to_thread(policy.decide, *texts)
    if denied := [item for item in findings if item.effect == "deny"]:
        raise Failure(
            f"not published: {denial_text(denied)}",
            origin="agent",
            code=f"{LIMIT_PREFIX}{denied[0].rule}",
            declared="PERMANENT",
        )
    rules = await _owner_rules(run, workspace, policy, findings)
    eligible = partial(run.services.questions.eligible_approvers, invoker=run.job.invoker_id)
    return PolicyCheck(policy, snapshot.base_sha, tuple(approval_groups(findings, rules, eligible)))


async def _owner_rules(
    run: WorkerRun, workspace: Workspace, policy: RepoPolicy, findings: list[PolicyFinding]
) -> OwnerRules | None:
    """Return the CODEOWNERS of the base commit, which the agent cannot change."""
    asked = any(finding.path is not None for finding in findings)
    if policy.settings.owners != "codeowners" or not asked:
        return None
    text = await first_file(workspace.mirror, workspace.base_sha, FILES, MAX_SIZE)
    return OwnerRules(text.decode("utf-8", "replace"), run.settings.codeowners)
