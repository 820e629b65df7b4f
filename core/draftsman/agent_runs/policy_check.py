"""Policies applied to the work of a run: denials, approvals and collisions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from draftsman.agent_runs.changes.patch_files import patch_files
from draftsman.agent_runs.clones.open_branches import find_conflicts, first_file
from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.policies.code_owners import (
    FILES,
    MAX_SIZE,
    ApprovalGroup,
    OwnerRules,
    approval_groups,
)
from draftsman.agent_runs.policies.conflicts import BranchConflict, conflict_text
from draftsman.agent_runs.policies.file_classes import CLASSES
from draftsman.agent_runs.policies.repo_policy import (
    MAX_NAMED,
    PolicyFinding,
    RepoPolicy,
    denial_text,
    finding_lines,
    names,
    reasons,
)
from draftsman.agent_runs.validation.validation import Validation
from draftsman.errors import CommandHint, Failure
from draftsman.formats.truncation import truncate
from draftsman.handlers.worker_run import WorkerRun
from draftsman.ids import job_name
from draftsman.jobs.runs.quota import LIMIT_PREFIX
from draftsman.questions.question import POLICY_KEY, OnChanges, QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.repos.repo_catalog import RepoLocation

INCOMPLETE: Final = (b"\nGIT binary patch\n", b"\nrename from ", b"\ncopy from ")
"""Parts of a patch without the lines of binary files and the targets of moved links."""


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
    contents = await workspace.changed_contents(snapshot)
    judged, unread = await workspace.with_contents(snapshot, contents)
    patch = await workspace.diff(judged)
    incomplete = any(part in patch for part in INCOMPLETE)
    text_patch = await workspace.text_patch(judged) if incomplete else b""
    texts = (data.decode("utf-8", "surrogateescape") for data in (patch, text_patch))
    findings = await asyncio.to_thread(policy.decide, *texts)
    findings += policy.of_lfs(unread, await workspace.ordinary_lfs_files(snapshot, contents))
    changes = (await workspace.patch_of_changes()).decode("utf-8", "surrogateescape")
    findings += await asyncio.to_thread(policy.decide_changes, changes)
    if denied := [item for item in findings if item.effect == "deny"]:
        raise Failure(
            f"not published: {denial_text(denied)}; {kept_work(run.job.number)}",
            origin="agent",
            code=f"{LIMIT_PREFIX}{denied[0].rule}",
            declared="PERMANENT",
        )
    rules = await _owner_rules(run, workspace, policy, findings)
    eligible = partial(run.services.asking.eligible_approvers, invoker=run.job.invoker_id)
    return PolicyCheck(policy, snapshot.base_sha, tuple(approval_groups(findings, rules, eligible)))


async def _owner_rules(
    run: WorkerRun, workspace: Workspace, policy: RepoPolicy, findings: list[PolicyFinding]
) -> OwnerRules | None:
    """Return the CODEOWNERS of the base commit, which the agent cannot change."""
    has_paths = any(finding.path is not None for finding in findings)
    if policy.settings.owners != "codeowners" or not has_paths:
        return None
    text = await first_file(workspace.mirror, workspace.base_sha, FILES, MAX_SIZE)
    return OwnerRules(text.decode("utf-8", "replace"), run.settings.codeowners)


# Approvals of work that a rule of the repository's policy, or the validation, asks for.


MAX_TEXT: Final = 2900
"""Maximum characters of a question."""
COMMIT_DIGITS: Final = 12
REQUIRED: Final = "The policy of the repository requires an approval"
"""Why a question of findings is asked; the findings follow."""


def approvals_of(check: PolicyCheck, branch: str, validation: Validation) -> list[QuestionSpec]:
    """Return the approvals that the work needs before it is published, in this order.

    Changed check files are named in the first; they need an approval only if a required command
    passes because of them, or if they are code.
    """
    groups = check.groups or (ApprovalGroup(()),)
    approvals = []
    for number, group in enumerate(groups, 1):
        texts = [REQUIRED, *reasons(group.findings)] if group.findings else []
        if number == 1:
            texts += validation.reasons(names)
            named = {item.path for item in group.findings if item.rule in CLASSES}
            named |= {*validation.judging_code, *validation.hiding}
            changed = [path for path in validation.check_files if path not in named]
            if changed and not validation.weakened and texts:
                texts.append(f"It changes check files: {names(changed)}")
        texts = [*dict.fromkeys(texts), *_owner_notes(group)]
        if texts:
            approvals.append(_approval(check, branch, number, group, texts))
    return approvals


def approval_key(number: int) -> str:
    """Return the key of an approval, by its number from 1."""
    return POLICY_KEY if number == 1 else f"{POLICY_KEY}:{number}"


def kept_work(job: int) -> CommandHint:
    """Return how to read the work of a job that did not publish it."""
    return CommandHint("diff", job_name(job), lead="to read the work")


def unapprovable(approval: QuestionSpec, error: Exception, job: int) -> Failure:
    """Return the failure of work without an eligible approver."""
    return Failure(
        f"not published: {error}. {approval.text.rstrip('.')}; {kept_work(job)}",
        origin="agent",
        code=f"{LIMIT_PREFIX}approval",
        declared="PERMANENT",
    )


def _approval(
    check: PolicyCheck, branch: str, number: int, group: ApprovalGroup, texts: list[str]
) -> QuestionSpec:
    """Return an approval, whose digest has the base commit and the version of the policy."""
    text = f"Publish {branch}? {'. '.join(texts)}."
    named = len(text) <= MAX_TEXT and len(group.findings) <= MAX_NAMED
    return QuestionSpec(
        key=approval_key(number),
        kind=QuestionKind.APPROVAL,
        text=truncate(text, MAX_TEXT),
        context=None if named else finding_lines(group.findings),
        approvers=group.approvers,
        on_changes=OnChanges.TELL,
        action={
            "publish": branch,
            "policy": check.policy.version,
            "on": check.base_sha[:COMMIT_DIGITS],
        },
    )


def _owner_notes(group: ApprovalGroup) -> Iterator[str]:
    if group.unmapped:
        instead = ", so any approver may" if group.approvers is None else ""
        yield f"No code owner may approve {names(group.unmapped)}{instead}"


# The people who own the changed code, whom a ladder may notify.


ANY_FILE = "file"
"""Path whose owners are those of the repository, for work without changes."""


async def owners_of_changes(
    run: WorkerRun, workspace: Workspace, patch: Callable[[], Awaitable[bytes | None]]
) -> list[str]:
    """Return the people and groups who own the changes; nothing if no ladder notifies owners.

    CODEOWNERS are those of the base commit, which the agent cannot change.
    """
    ladders = run.services.asking.ladders
    if not ladders.uses_owners:
        return []
    text = await first_file(workspace.mirror, workspace.base_sha, FILES, MAX_SIZE)
    rules = OwnerRules(text.decode("utf-8", "replace"), run.settings.codeowners)
    changes = (await patch() or b"").decode("utf-8", "surrogateescape")
    paths = [path for file in patch_files(changes) for path in file.paths] or [ANY_FILE]
    return rules.people_of(
        dict.fromkeys(owner for path in paths for owner in rules.owners_of(path))
    )


# Conflicts of work with other open branches of its repository, before and after it is published.
#
# Of two branches that are published at the same time, the later push sees the other branch, because
# each is compared after its push. So no conflict stays unknown.


ATTEMPTS: Final = 3
"""Attempts to fetch branches, of which others may be deleted meanwhile."""
MAX_CONTEXT: Final = 19_000


async def conflicts_of(
    run: WorkerRun, workspace: Workspace, snapshot: Snapshot, base: str | None
) -> list[BranchConflict] | str:
    """Return the conflicts; a reason if the branches cannot be compared."""
    attempt = 1
    while True:
        try:
            return await find_conflicts(workspace, snapshot, base)
        except Failure as error:
            if error.code != "no_such_ref" or attempt == ATTEMPTS:
                run.log_line(f"[conflicts unknown] {error}")
                return str(error)
            attempt += 1


async def with_conflicts(
    run: WorkerRun,
    workspace: Workspace,
    snapshot: Snapshot,
    base: str | None,
    question: QuestionSpec,
) -> QuestionSpec:
    """Return an approval with the conflicts in its context.

    They are not part of its digest: a branch that is published later does not take it back.
    """
    conflicts = await conflicts_of(run, workspace, snapshot, base)
    text = f"Conflicts unknown: {conflicts}" if isinstance(conflicts, str) else ""
    text = text or conflict_text([item for item in conflicts if isinstance(item, BranchConflict)])
    if not text:
        return question
    context = "\n".join(filter(None, (text, question.context)))
    return question.model_copy(update={"context": context[:MAX_CONTEXT]})


def conflict_fields(conflicts: list[BranchConflict] | str) -> dict[str, Any]:
    """Return the fields of a result or an event that name the conflicts; empty without any."""
    if isinstance(conflicts, str):
        return {"conflicts_unknown": conflicts[:500]}
    return {"conflicts": [item.as_json() for item in conflicts]} if conflicts else {}
