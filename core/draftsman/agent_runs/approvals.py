"""Approvals of work that a rule of the repository's policy, or the validation, asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from draftsman.agent_runs.policies.code_owners import ApprovalGroup
from draftsman.agent_runs.policies.finding_text import MAX_NAMED, finding_lines, names, reasons
from draftsman.agent_runs.policy_check import PolicyCheck
from draftsman.agent_runs.validation.validation import Validation
from draftsman.errors import Failure
from draftsman.jobs.runs.quota import LIMIT_PREFIX
from draftsman.questions.question import POLICY_KEY, QuestionKind
from draftsman.questions.question_spec import QuestionSpec

MAX_TEXT: Final = 2900
"""Maximum characters of a question."""
COMMIT_DIGITS: Final = 12


def approvals_of(check: PolicyCheck, branch: str, validation: Validation) -> list[QuestionSpec]:
    """Return the approvals that the work needs before it is published, in this order.

    Changed check files are named in the first; they need an approval only if a required command
    passes because of them.
    """
    groups = check.groups or (ApprovalGroup(()),)
    approvals = []
    for number, group in enumerate(groups, 1):
        texts = list(reasons(group.findings))
        if number == 1:
            texts += validation.reasons(names)
            named = {item.path for item in group.findings if item.rule == "ci"}
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


def unapprovable(approval: QuestionSpec, error: Exception) -> Failure:
    """Return the failure of work without an eligible approver."""
    return Failure(
        f"not published: {error}. {approval.text}",
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
        text=text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…",
        context=None if named else finding_lines(group.findings),
        approvers=group.approvers,
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
