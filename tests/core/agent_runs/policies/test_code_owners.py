"""CODEOWNERS by the rules of GitHub, and the approvals that findings need."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.agent_runs.policies.code_owners import OwnerRules, approval_groups
from draftsman.agent_runs.policies.repo_policy import PolicyFinding
from tests.support.cases import cases

TEXT = """
# the whole repository
*                 @acme/all   # @not-an-owner
*.js              @js-owner
/build/logs/      @doctocat
docs/*            docs@example.com
apps/             @octocat
/scripts/         @doctocat @octocat
**/logs           @logger
/apps/github
!/apps/secret     @nobody
\\#file            @nobody
[a-z].txt         @nobody
/My\\ Docs/        @writer
"""
PEOPLE = {"@acme/ALL": "team", "@js-owner": "jo", "docs@example.com": "dora", "@octocat": "olaf"}


@cases(
    ("path", "owners"),
    [
        ("README.md", ["@acme/all"]),
        ("src/a.js", ["@js-owner"]),
        ("build/logs/a/b.txt", ["@logger"]),
        ("docs/a.md", ["docs@example.com"]),
        ("docs/deep/a.md", ["@acme/all"]),
        ("deep/apps/x", ["@octocat"]),
        ("scripts/x", ["@doctocat", "@octocat"]),
        ("apps/github/x", []),
        ("apps/secret", ["@octocat"]),
        ("a.txt", ["@acme/all"]),
        ("My Docs/a", ["@writer"]),
        ("DOCS/a.md", ["@acme/all"]),
    ],
)
def test_the_last_matching_line_has_the_owners(path: str, owners: list[str]) -> None:
    assert OwnerRules(TEXT).owners_of(path) == owners


def finding(path: str | None) -> PolicyFinding:
    return PolicyFinding("paths" if path else "max_loc_delta", "ask", path)


def eligible(names: Sequence[str]) -> frozenset[str]:
    """Expand a group; the person `dora` may not approve."""
    groups = {"team": ["anna", "ben", "jo"]}
    return frozenset(person for name in names for person in groups.get(name, [name])) - {"dora"}


@cases(
    ("paths", "expected"),
    [
        (["README.md", None], [(["README.md", None], ("anna", "ben", "jo"), ())]),
        (["README.md", "a.js"], [(["README.md", "a.js"], ("jo",), ())]),
        ([None], [([None], None, ())]),
        (["docs/a.md"], [(["docs/a.md"], None, ("docs/a.md (docs@example.com)",))]),
        (
            ["a.js", "apps/x", None],
            [(["a.js"], ("jo",), ()), (["apps/x"], ("olaf",), ())],
        ),
    ],
)
def test_owners_with_a_person_in_common_approve_together(
    paths: list[str | None], expected: list[tuple[list[str | None], tuple[str, ...], tuple[str]]]
) -> None:
    groups = approval_groups([finding(path) for path in paths], OwnerRules(TEXT, PEOPLE), eligible)
    found = [
        ([item.path for item in group.findings], group.approvers, group.unmapped)
        for group in groups
    ]
    if len(expected) > 1:  # findings without an owner are part of the first approval
        expected = [([None, *expected[0][0]], *expected[0][1:]), *expected[1:]]
    assert found == expected


def test_without_code_owners_every_approver_may_approve() -> None:
    assert approval_groups([], None, eligible) == []
    (group,) = approval_groups([finding("a.js")], None, eligible)
    assert (group.approvers, group.unmapped) == (None, ())
