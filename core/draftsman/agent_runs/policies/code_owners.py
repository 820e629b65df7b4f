"""CODEOWNERS of a repository, by the rules of GitHub, and the people who may approve. Pure.

https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from codeowners import CodeOwners

from draftsman.agent_runs.policies.repo_policy import PolicyFinding

FILES: Final = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
"""Paths of the file; the first that exists counts."""
MAX_SIZE: Final = 3_000_000
"""Bytes of a file that GitHub still reads."""
_COMMENT: Final = re.compile(r"(^|(?<=\s))#.*")
_UNSUPPORTED: Final = re.compile(r"^!|^\\#|^[^\s]*\[")
"""Syntax of .gitignore that CODEOWNERS do not have; GitHub skips such a line."""


@dataclass(frozen=True)
class OwnerRules:
    """CODEOWNERS of a base commit; `people` are the configured people and groups by owner."""

    text: str = ""
    people: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _parsed(self) -> CodeOwners:
        lines = (_COMMENT.sub("", line).strip() for line in self.text.splitlines())
        return CodeOwners("\n".join("" if _UNSUPPORTED.search(line) else line for line in lines))

    @cached_property
    def _people(self) -> dict[str, str]:
        return {owner.casefold(): name for owner, name in self.people.items()}

    def owners_of(self, path: str) -> list[str]:
        """Return the owners of a file, of the last line that matches it."""
        return [owner for _, owner in self._parsed.of(path)]

    def people_of(self, owners: Iterable[str]) -> list[str]:
        """Return the people and groups of owners; owners without any are left out."""
        people = (self._people.get(owner.casefold()) for owner in owners)
        return list(dict.fromkeys(name for name in people if name is not None))


@dataclass(frozen=True, slots=True)
class ApprovalGroup:
    """Findings that the same people may approve; None: all approvers."""

    findings: tuple[PolicyFinding, ...]
    approvers: tuple[str, ...] | None = None
    unmapped: tuple[str, ...] = ()
    """Owned files that all approvers decide on, because none of their owners may approve."""


def approval_groups(
    findings: Sequence[PolicyFinding],
    rules: OwnerRules | None,
    eligible: Callable[[Sequence[str]], frozenset[str]],
) -> list[ApprovalGroup]:
    """Return the approvals that findings need.

    `eligible` returns the people among these people and groups who may approve. Owners with a
    person in common approve together; otherwise those of each file approve for themselves.
    Findings without an owner are part of the first approval.
    """
    if not findings:
        return []
    owned: dict[frozenset[str], list[PolicyFinding]] = {}
    unowned: list[PolicyFinding] = []
    unmapped: list[str] = []
    for finding in findings:
        path = finding.path
        owners = rules.owners_of(path) if rules is not None and path is not None else []
        people = eligible(rules.people_of(owners)) if rules is not None else frozenset[str]()
        if people:
            owned.setdefault(people, []).append(finding)
            continue
        unowned.append(finding)
        if owners and path is not None:
            unmapped.append(f"{path} ({', '.join(owners)})")
    if not owned:
        return [ApprovalGroup(tuple(findings), None, _unique(unmapped))]
    common = frozenset.intersection(*owned)
    if common:
        return [ApprovalGroup(tuple(findings), tuple(sorted(common)), _unique(unmapped))]
    groups = sorted(owned.items(), key=lambda item: sorted(item[0]))
    first, *later = [
        ApprovalGroup(tuple(group_findings), tuple(sorted(people)))
        for people, group_findings in groups
    ]
    findings_of_first = (*unowned, *first.findings)
    return [ApprovalGroup(findings_of_first, first.approvers, _unique(unmapped)), *later]


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
