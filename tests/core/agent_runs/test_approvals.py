"""Approvals that a policy asks for: their text, their people, and their digest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from draftsman.agent_runs.policies.code_owners import ApprovalGroup
from draftsman.agent_runs.policies.repo_policy import PolicyFinding, RepoPolicy
from draftsman.agent_runs.policy_check import REQUIRED, PolicyCheck, approvals_of
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.validation import Validation
from draftsman.settings.policies import PolicySettings

BRANCH = "draftsman/D-1"
CI = PolicyFinding("ci", "ask", ".github/workflows/ci.yml")
LICENSE = PolicyFinding("licenses", "ask", "LICENSE")


def check(*groups: ApprovalGroup, base: str = "a" * 40, **fields: Any) -> PolicyCheck:
    policy = RepoPolicy(PolicySettings.model_validate(fields))
    return PolicyCheck(policy, base, groups)


def digest(made: PolicyCheck) -> str:
    (approval,) = approvals_of(made, BRANCH, Validation())
    return approval.digest


def test_work_without_findings_needs_no_approval() -> None:
    assert approvals_of(check(), BRANCH, Validation()) == []
    assert approvals_of(check(), BRANCH, Validation(check_files=("setup.cfg",))) == []


def test_each_set_of_owners_has_an_approval_of_its_own() -> None:
    groups = (ApprovalGroup((CI,), ("anna",)), ApprovalGroup((LICENSE,), ("ben",)))
    validation = Validation(check_files=("setup.cfg", CI.path or ""))
    first, second = approvals_of(check(*groups), BRANCH, validation)
    assert (first.key, first.approvers) == ("agent:limits", ("anna",))
    assert first.text == (
        f"Publish {BRANCH}? {REQUIRED}. It changes the configuration of CI or code owners:"
        " .github/workflows/ci.yml."
        " It changes check files: setup.cfg."
    )
    assert (second.key, second.approvers) == ("agent:limits:2", ("ben",))
    assert second.text == f"Publish {BRANCH}? {REQUIRED}. It changes licenses: LICENSE."


def test_an_approval_is_bound_to_the_base_and_the_policy() -> None:
    made = check(ApprovalGroup((CI,)))
    same = check(ApprovalGroup((CI,)))
    moved = replace(made, base_sha="b" * 40)
    changed = check(ApprovalGroup((CI,)), large_file_kb=7)
    assert digest(made) == digest(same)
    assert len({digest(made), digest(moved), digest(changed)}) == 3


def test_many_findings_are_listed_in_the_context() -> None:
    many = tuple(
        PolicyFinding(rule, "ask", f"{rule}/{'x' * 190}{number}")
        for rule in ("risky_paths", "ci", "licenses", "migrations")
        for number in range(9)
    )
    (approval,) = approvals_of(check(ApprovalGroup(many)), BRANCH, Validation())
    assert approval.text.endswith("…")
    assert (approval.context or "").splitlines()[-1] == f"migrations: migrations/{'x' * 190}8"


def test_tests_that_only_the_check_files_of_the_work_add_count_for_nothing() -> None:
    def ran(tests: int) -> CommandResult:
        return CommandResult("tests", "pytest", exit_code=0, seconds=1, output="", tests=tests)

    validation = Validation(commands=(ran(5),), base_checks=(ran(1),), base_tests={"tests": 5})
    assert validation.fewer_tests == ["tests (5, now 1)"]
    both = Validation(commands=(ran(1),), base_checks=(ran(1),), base_tests={"tests": 5})
    assert both.fewer_tests == ["tests (5, now 1)"]
    assert Validation(commands=(ran(5),), base_tests={"tests": 5}).fewer_tests == []
