"""Findings of a policy about a patch: each rule, and the files and lines that they name."""

from __future__ import annotations

import base64
import random
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from draftsman.agent_runs.changes.patch_files import patch_files
from draftsman.agent_runs.policies.repo_policy import (
    RepoPolicy,
    denial_text,
    finding_lines,
    reasons,
)
from draftsman.errors import ConfigError
from draftsman.repos.repo_profile import profile
from draftsman.settings import load
from draftsman.settings.policies import PolicySettings
from tests.support.cases import cases

ALL = dict.fromkeys(
    (
        *("secrets", "possible_secrets", "ci", "licenses", "migrations", "lock_files"),
        *("large_files", "binary_files"),
    ),
    "ask",
)
AWS = "AKIA" + "QWERTYUIOPASDFG2"
GITHUB = "ghp_" + "a1B2" * 9
TEST_DATA = {"secrets_allowed_in": ["tests/data/"]}
Rows = list[tuple[str, str, str | None]]


def patch_of(path: str, *lines: str, removed: int = 0, at: int = 1) -> str:
    """Return a patch that adds lines to a file, after it removes some."""
    body = "".join(f"-old {n}\n" for n in range(removed)) + "".join(f"+{x}\n" for x in lines)
    head = f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n"
    return f"{head}@@ -{at},{removed} +{at},{len(lines)} @@\n{body}"


def policy_of(**fields: Any) -> RepoPolicy:
    return RepoPolicy(PolicySettings.model_validate(fields))


def rows(policy: RepoPolicy, patch: str) -> Rows:
    return [(item.rule, item.effect, item.path) for item in policy.decide(patch)]


ADDED_BINARY = (
    "diff --git a/x b/logo.png b/x b/logo.png\nnew file mode 100644\nindex 0..1\n"
    "GIT binary patch\nliteral 2000001\nzcmV\n\nliteral 0\nHcmV\n\n"
)
RENAMED = (
    "diff --git a/db/migrations/1.sql b/old b/1.sql\nsimilarity index 100%\n"
    "rename from db/migrations/1.sql\nrename to old b/1.sql\n"
)


@cases(
    ("settings", "patch", "expected"),
    [
        ({}, patch_of("src/a.py", "x = 1"), []),
        ({}, patch_of("uv.lock", "x"), []),
        ({}, patch_of("a.py", f"k = '{AWS}'"), [("secrets", "deny", "a.py")]),
        (TEST_DATA, patch_of("tests/data/a.py", AWS), []),
        ({"secrets": "allow"}, patch_of("a.py", AWS), []),
        ({}, patch_of("a.py", "url = 'https://me:secret@host'"), []),
        (ALL, patch_of("a", "https://me:secret@host"), [("possible_secrets", "ask", "a")]),
        ({}, patch_of(".github/workflows/a.yml", "x"), [("ci", "ask", ".github/workflows/a.yml")]),
        ({}, patch_of(".github/CODEOWNERS", "* @a"), [("ci", "ask", ".github/CODEOWNERS")]),
        ({}, patch_of("LICENSE", "x"), [("licenses", "ask", "LICENSE")]),
        ({}, patch_of("src/license.py", "x"), []),
        (ALL, patch_of("db/migrate/1.rb", "x"), [("migrations", "ask", "db/migrate/1.rb")]),
        (ALL, patch_of("web/yarn.lock", "x"), [("lock_files", "ask", "web/yarn.lock")]),
        ({}, patch_of("a", "." * 1_000_001), [("large_files", "ask", "a")]),
        ({"large_file_kb": 1001}, patch_of("a", "." * 1_000_001), []),
        (
            {"binary_files": "deny"},
            ADDED_BINARY,
            [("large_files", "ask", "x b/logo.png"), ("binary_files", "deny", "x b/logo.png")],
        ),
        ({"migrations": "ask"}, RENAMED, [("migrations", "ask", "db/migrations/1.sql")]),
        (
            {"deny_files_over": 1},
            patch_of("a", "x") + patch_of("b", "x"),
            [("deny_files_over", "deny", None)],
        ),
        ({"deny_lines_over": 3}, patch_of("a", "x", removed=2), []),
        (
            {"deny_lines_over": 2},
            patch_of("a", "x", removed=2),
            [("deny_lines_over", "deny", None)],
        ),
    ],
)
def test_a_rule_finds_the_changes_of_its_kind(
    settings: dict[str, Any], patch: str, expected: Rows
) -> None:
    assert rows(policy_of(**settings), patch) == expected


def test_the_last_rule_of_a_path_decides_instead_of_its_class() -> None:
    policy = policy_of(
        paths=[
            {"path": "infra/", "effect": "deny"},
            {"path": "*.md", "effect": "allow"},
            {"path": ".github/", "effect": "allow"},
            {"path": "docs/api.md", "effect": "ask"},
        ]
    )
    expected: dict[str, Rows] = {
        "infra/main.tf": [("paths", "deny", "infra/main.tf")],
        "infra/README.md": [],
        ".github/workflows/a.yml": [],
        "docs/api.md": [("paths", "ask", "docs/api.md")],
    }
    for path, found in expected.items():
        assert rows(policy, patch_of(path, "x")) == found
    assert rows(policy, patch_of(".github/a", AWS)) == [("secrets", "deny", ".github/a")]


def test_limits_and_paths_of_the_profile_are_rules() -> None:
    fields = {"max_files_changed": 1, "max_loc_delta": 1, "risky_paths": ["db/"]}
    policy = RepoPolicy.of(PolicySettings(), profile(fields | {"path_allowlist": ["db/", "src/"]}))
    assert rows(policy, patch_of("db/1", "x") + patch_of("b", "x")) == [
        ("path_allowlist", "deny", "b"),
        ("max_files_changed", "ask", None),
        ("max_loc_delta", "ask", None),
        ("risky_paths", "ask", "db/1"),
    ]


def test_a_profile_overrides_keys_of_the_configuration() -> None:
    default = PolicySettings.model_validate(
        {"ci": "deny", "paths": [{"path": "a/", "effect": "deny"}]}
    )
    own = profile({"policy": {"paths": [{"path": "a/b", "effect": "allow"}], "secrets": "ask"}})
    stored = profile(own.model_dump(mode="json"))
    assert own.model_dump(mode="json")["policy"].keys() == {"paths", "secrets"}
    policy = RepoPolicy.of(default, stored)
    assert (policy.settings.ci, policy.settings.secrets) == ("deny", "ask")
    assert [rule.path for rule in policy.settings.paths] == ["a/", "a/b"]
    assert policy.digest != RepoPolicy.of(default, profile({})).digest


def test_an_owner_that_no_codeowners_can_name_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "draftsman.toml"
    config.write_text('[codeowners]\n"@acme/a.b" = "ben"\n"ben@example.org" = "ben"\nanna = "x"\n')
    with pytest.raises(ConfigError, match=r"codeowners\.anna: must be @login, @organization/team"):
        load(config)


def test_a_secret_is_named_by_line_and_kind_and_never_by_its_value() -> None:
    patch = patch_of("a.py", "one", f"k = '{AWS}'", f"x{'y' * 3000} {GITHUB}", at=7)
    findings = policy_of().decide(patch)
    text = f"{denial_text(findings)} {finding_lines(findings)} {findings}"
    assert list(reasons(findings)) == [
        "It adds secrets: a.py:8 (AWS Access Key), a.py:9 (GitHub Token)"
    ]
    assert AWS not in text
    assert GITHUB not in text
    assert policy_of().decide(patch_of("a.md", "AKIAIOSFODNN7EXAMPLE")) == []
    removed = patch_of("a.py", "x").replace("+x", f"-{AWS}").replace("-1,0 +1,1", "-1,1 +1,0")
    assert policy_of().decide(removed) == []


@cases(
    ("kind", "text"),
    [
        ("GitHub Token", "github_pat_" + "a" * 22 + "_" + "b" * 59),
        ("Anthropic API Key", "sk-ant-api03-" + "a1-_" * 22),
        ("Google API Key", "AIza" + "a1B2-" * 7),
        ("GitLab Token", "glpat-" + "a1B2" * 5),
        ("Slack Token", "xoxb-123456789012-abcdefghij"),
        ("Stripe Access Key", "sk_live_" + "a1B2" * 6),
        ("Private Key", "-----BEGIN OPENSSH PRIVATE KEY-----"),
        ("Private Key", "-----BEGIN ENCRYPTED PRIVATE KEY-----"),
        ("NPM tokens", "//registry.example/:_authToken=npm_" + "a1B2" * 9),
    ],
)
def test_a_secret_of_a_known_format_is_found(kind: str, text: str) -> None:
    assert [item.detail for item in policy_of().decide(patch_of("a", text))] == [kind]


@cases(
    ("path", "target", "found"),
    [
        ("db/migrate", "../tmp/evil", ["migrations"]),
        ("db", "elsewhere", ["migrations"]),
        (".github", "ci", ["ci", "agent_config"]),
        ("a/b", "../.github/workflows", ["ci"]),
        ("docs/c", "../LICENSE", ["licenses"]),
        ("infra", "/tmp/x", ["paths"]),
        ("x", "infra/main.tf", ["paths"]),
        ("src/x", "y", []),
        ("safe", "anything", []),
    ],
)
def test_a_link_belongs_to_the_folder_that_it_replaces_or_points_to(
    path: str, target: str, found: list[str]
) -> None:
    allowed = {"path": "safe/", "effect": "allow"}
    policy = policy_of(migrations="ask", paths=[{"path": "infra/", "effect": "deny"}, allowed])
    patch = patch_of(path, target).replace("index 1..2 100644", "new file mode 120000")
    assert [item.rule for item in policy.decide(patch)] == found
    assert policy.decide(patch_of("src/x", target)) == [], "a file of that content"


def test_a_link_with_another_target_or_another_name_belongs_to_where_it_points() -> None:
    """A link that is only renamed has neither mode nor target in git's patch."""
    policy = policy_of(paths=[{"path": "infra/", "effect": "deny"}])
    target = patch_of("a", "infra/x", removed=1).replace("100644", "120000")
    assert rows(policy, target) == [("paths", "deny", "a")]
    renamed = RENAMED.replace("db/migrations/1.sql", "old/link").replace("old b/1.sql", "link")
    assert rows(policy, renamed) == []
    text_patch = patch_of("link", "infra/x").replace("index 1..2 100644", "new file mode 120000")
    assert [item.place for item in policy.decide(renamed, text_patch)] == [
        "link (rule infra/, link to infra/x)"
    ]


def test_lines_of_a_file_with_a_nul_count_and_those_of_an_image_do_not() -> None:
    policy = policy_of(deny_lines_over=3)
    binary = "diff --git a/x b/x\nnew file mode 100644\nindex 0..1\nGIT binary patch\n"
    source = ["\0", "x = 1", "\0y\0 \0=\0 \0é\0", "\tz()", "# \udcff a comment of a person"]
    assert rows(policy, binary)[:1] == []
    (finding,) = policy.decide(binary, patch_of("x", *source))
    assert finding.place == "4 lines, more than 3 (deny_lines_over)"
    (finding,) = policy.decide(binary, patch_of("x", *source[:3], removed=2))
    assert finding.place == "4 lines, more than 3 (deny_lines_over)"
    image = random.Random(1).randbytes(20_000).decode("utf-8", "surrogateescape").split("\n")
    assert policy_of(deny_lines_over=5).decide(binary, patch_of("x", *image)) == []


def test_a_secret_in_a_binary_file_of_a_patch_is_found() -> None:
    """As git encodes a new file; a change of a binary file has only a difference."""
    content = f"\0one\nkey = {AWS}\n".encode()
    packed = zlib.compress(content)
    rows = [packed[start : start + 52] for start in range(0, len(packed), 52)]
    lines = [f"{chr(len(row) + (64 if len(row) <= 26 else 70))}{b85(row)}" for row in rows]
    head = "diff --git a/x b/x\nnew file mode 100644\nindex 0..1\nGIT binary patch\n"
    patch = f"{head}literal {len(content)}\n" + "\n".join(lines) + "\n\nliteral 0\nHcmV?d00001\n\n"
    (finding,) = policy_of().decide(patch)
    assert (finding.rule, finding.place) == ("secrets", "x:2 (AWS Access Key)")
    assert policy_of().decide(patch.replace("literal", "delta")) == []
    assert policy_of().decide(patch.replace(lines[0], "!broken")) == []
    assert policy_of().decide(patch, "diff --git a/x b/x\n") == [], "the lines are known"


def b85(data: bytes) -> str:
    """Return git's base 85 of some bytes."""
    return base64.b85encode(data, pad=True).decode()


def test_lines_of_a_file_are_never_read_as_headers() -> None:
    lines = ("diff --git a/infra/x b/infra/x", "++ b/infra/y", "rename to infra/z", "@@ -1 +1 @@")
    found = patch_files(patch_of("a", *lines) + patch_of("b", "x"))
    assert [(file.path, file.source, len(file.added)) for file in found] == [
        ("a", "a", 4),
        ("b", "b", 1),
    ]


_PATHS = st.text("ab /.-", min_size=1, max_size=12).map(str.strip).filter(bool)
_PATCHES = st.lists(
    st.builds(
        patch_of,
        st.one_of(_PATHS, st.sampled_from([".github/workflows/a", "LICENSE", "m/migrations/1"])),
        st.sampled_from(["x", AWS, "https://a:b@c"]),
        removed=st.integers(0, 3),
    ),
    max_size=6,
)


@given(_PATCHES, st.randoms())
def test_the_order_of_the_files_does_not_change_the_findings(
    patches: list[str], random: Any
) -> None:
    policy = policy_of(**ALL, deny_lines_over=5)
    findings = policy.decide("".join(patches))
    shuffled = random.sample(patches, len(patches))
    assert policy.decide("".join(shuffled)) == findings
    assert all(first != second for first, second in pairwise(findings))


@given(_PATCHES, _PATCHES)
def test_more_changes_never_have_fewer_findings(patches: list[str], others: list[str]) -> None:
    policy = policy_of(**ALL, deny_files_over=2)
    before = {(item.rule, item.path) for item in policy.decide("".join(patches))}
    after = {(item.rule, item.path) for item in policy.decide("".join([*patches, *others]))}
    assert before <= after


@cases("path", ["/infra/", "./infra/", "../infra"])
def test_a_path_that_no_file_has_is_refused(path: str) -> None:
    """Such a rule would never deny anything."""
    for fields in ({"paths": [{"path": path, "effect": "deny"}]}, {"secrets_allowed_in": [path]}):
        with pytest.raises(ValidationError, match="top folder of the repository"):
            PolicySettings.model_validate(fields)
