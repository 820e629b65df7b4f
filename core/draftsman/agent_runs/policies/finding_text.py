"""Findings of a policy in words, for questions, failures and the command line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from draftsman.agent_runs.policies.repo_policy import RULES, PolicyFinding

MAX_NAMED: Final = 5
"""Maximum number of paths in a message."""
MAX_PATH: Final = 200
"""Maximum characters of a path in a message."""
MAX_CONTEXT: Final = 12_000
"""Maximum characters of a list of all findings."""
TEXTS: Final = {
    "deny_files_over": "It changes",
    "deny_lines_over": "It adds and deletes",
    "path_allowlist": "It changes paths outside of the allowed paths",
    "max_files_changed": "It changes",
    "max_loc_delta": "It adds and deletes",
    "risky_paths": "It changes risky paths",
    "paths": "It changes paths of the rules in paths",
    "secrets": "It adds secrets",
    "possible_secrets": "It adds text that may be secret",
    "ci": "It changes the configuration of CI or code owners",
    "licenses": "It changes licenses",
    "migrations": "It changes migrations",
    "lock_files": "It changes lock files",
    "large_files": "It adds large files",
    "binary_files": "It adds or changes binary files",
}
"""Sentences without a period, by rule."""
REVOKE: Final = "revoke real secrets; for test data, set secrets_allowed_in"
ADVICE: Final = {
    "deny_files_over": "split the work into smaller jobs, or raise the limit",
    "deny_lines_over": "split the work into smaller jobs, or raise the limit",
    "secrets": REVOKE,
    "possible_secrets": REVOKE,
}
"""What to do about work that a rule denies, by rule."""


def names(paths: Sequence[str]) -> str:
    """Return the first paths, and the number of the others."""
    shown = ", ".join(path[:MAX_PATH] for path in paths[:MAX_NAMED])
    return f"{shown} and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else shown


def reasons(findings: Sequence[PolicyFinding]) -> Iterator[str]:
    """Yield a sentence without a period for each rule with a finding."""
    for rule in RULES:
        places = [item.place for item in findings if item.rule == rule]
        if places:
            whole = any(item.path is None for item in findings if item.rule == rule)
            yield f"{TEXTS[rule]}{' ' if whole else ': '}{names(places)}"


def denial_text(findings: Sequence[PolicyFinding]) -> str:
    """Return why work is denied, and what to do about it."""
    rules = list(dict.fromkeys(item.rule for item in findings))
    advice = [ADVICE[rule] for rule in rules if rule in ADVICE]
    advice.append("draftsman policy show has the rules, and the patch is kept")
    return f"{'; '.join(reasons(findings))}; denied by {', '.join(rules)}; {'; '.join(advice)}"


def finding_lines(findings: Sequence[PolicyFinding]) -> str:
    """Return all findings, a line each, up to MAX_CONTEXT characters."""
    text = "\n".join(f"{item.rule}: {item.place}" for item in findings)
    if len(text) <= MAX_CONTEXT:
        return text
    return text[:MAX_CONTEXT].rpartition("\n")[0] + "\n…"
