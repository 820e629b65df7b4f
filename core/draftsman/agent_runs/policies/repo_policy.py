"""The policy of a repository in force, and its decision about a patch. Pure.

The rules, in the order of their findings:

    deny_files_over, deny_lines_over, path_allowlist    denied
    max_files_changed, max_loc_delta, risky_paths       need an approval
    paths                                               as the last matching rule says
    secrets, ci, licenses, …                            as the policy says
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final, Self

from draftsman.agent_runs.changes.patch_files import PatchFile, patch_files, text_lines
from draftsman.agent_runs.policies.file_classes import CLASSES, classes_of, classes_of_folder
from draftsman.formats.amounts import format_size
from draftsman.formats.secret_formats import secret_kinds
from draftsman.repos.repo_profile import RepoProfile, is_among
from draftsman.settings.policies import Effect, PolicySettings
from draftsman.text import digest, humanize

KILOBYTE: Final = 1000
RULES: Final = (
    "deny_files_over",
    "deny_lines_over",
    "path_allowlist",
    "max_files_changed",
    "max_loc_delta",
    "risky_paths",
    "paths",
    "secrets",
    "possible_secrets",
    *CLASSES,
    "large_files",
    "binary_files",
    "lfs_files",
)
"""Names of all rules."""
SIZES: Final = frozenset(
    {"deny_files_over", "deny_lines_over", "max_files_changed", "max_loc_delta"}
)
"""Rules about the size of the work."""
SECRETS: Final = frozenset({"secrets", "possible_secrets"})
"""Rules about secrets."""
UNCOMMITTED: Final = "in the uncommitted changes"


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """A change that a rule denies, or for which it needs an approval."""

    rule: str
    effect: Effect
    path: str | None = None
    """The file; None: the work as a whole."""
    line: int | None = None
    detail: str = ""

    @property
    def place(self) -> str:
        """The file with its line and detail: `src/a.py:3 (AWS Access Key)`."""
        path = self.path or ""
        if self.line is not None:
            path += f":{self.line}"
        return f"{path} ({self.detail})" if self.detail and path else path or self.detail

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for statements and the command line."""
        return asdict(self)


@dataclass(frozen=True)
class RepoPolicy:
    """The policy in force: settings, and the limits of the profile."""

    settings: PolicySettings
    max_files_changed: int | None = None
    max_loc_delta: int | None = None
    path_allowlist: tuple[str, ...] | None = None
    risky_paths: tuple[str, ...] = ()

    @classmethod
    def of(cls, default: PolicySettings, profile: RepoProfile | None) -> Self:
        """Return the policy of a repository; `default` is that of the configuration."""
        if profile is None:
            return cls(default)
        return cls(
            default.override(profile.policy),
            profile.max_files_changed,
            profile.max_loc_delta,
            profile.path_allowlist,
            profile.risky_paths or (),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of its rules."""
        return digest(self.as_json())

    @property
    def version(self) -> str:
        """The first digits of the digest, for people."""
        return self.digest[:12]

    def as_json(self) -> dict[str, Any]:
        """Return the policy as a JSON object."""
        limits = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return limits | {"settings": self.settings.model_dump(mode="json")}

    def decide(self, patch: str, text_patch: str = "") -> list[PolicyFinding]:
        """Return the findings about a patch of git, in a fixed order.

        A single NUL makes a file binary. Lines and secrets of binary files are found in
        `text_patch`, which has their lines; without it, in the whole content of those that the
        patch has. `text_patch` names no renames, so that it has the target of a renamed link.
        """
        files = patch_files(patch)
        texts = patch_files(text_patch)
        binary = {path: file for file in files if file.binary for path in file.paths}
        contents: dict[str, list[str]] = {}
        if not text_patch:
            contents = {file.path: file.content() or [] for file in files if file.binary}
        lines = sum(len(file.added) + len(file.removed) for file in files)
        lines += sum(map(text_lines, contents.values()))
        findings: set[PolicyFinding] = set()
        for file in files:
            findings.update(self._of_file(file))
        for file in texts:
            if file.path in binary:
                lines += text_lines([*(text for _, text in file.added), *file.removed])
                findings.update(self._secrets(file))
            findings.update(self._link(file))
        for path, content in contents.items():
            findings.update(self._secrets(binary[path], content))
        findings.update(self._limits(len(files), lines))
        return sorted(findings, key=_order)

    def decide_changes(self, patch: str) -> list[PolicyFinding]:
        """Return the findings about the uncommitted changes of a requester, besides their size.

        They are published with the work, perhaps with rights that the requester does not have.
        """
        return [
            replace(item, detail=", ".join(filter(None, (item.detail, UNCOMMITTED))))
            for item in self.decide(patch)
            if item.rule not in SIZES
        ]

    def _limits(self, count: int, lines: int) -> Iterator[PolicyFinding]:
        changed = f"{count:,} files"
        edited = f"{lines:,} lines"
        limits: tuple[tuple[str, Effect, int | None, int, str], ...] = (
            ("deny_files_over", "deny", self.settings.deny_files_over, count, changed),
            ("deny_lines_over", "deny", self.settings.deny_lines_over, lines, edited),
            ("max_files_changed", "ask", self.max_files_changed, count, changed),
            ("max_loc_delta", "ask", self.max_loc_delta, lines, edited),
        )
        for rule, effect, most, number, text in limits:
            if most is not None and number > most:
                yield PolicyFinding(rule, effect, detail=f"{text}, more than {most:,} ({rule})")

    def _of_file(self, file: PatchFile) -> Iterator[PolicyFinding]:
        for path in file.paths:
            if self.path_allowlist is not None and not is_among(path, self.path_allowlist):
                yield PolicyFinding("path_allowlist", "deny", path)
            if is_among(path, self.risky_paths):
                yield PolicyFinding("risky_paths", "ask", path)
            rule = self._path_rule(path)
            if rule is None:
                added = (text for _, text in file.added) if path == file.path else ()
                for name in classes_of(path, added):
                    yield from self._finding(name, path)
            elif rule[1] != "allow":
                yield PolicyFinding("paths", rule[1], path, detail=f"rule {rule[0]}")
        yield from self._link(file)
        if self._path_rule(file.path) is None:
            yield from self._content(file)
        yield from self._secrets(file)

    def _link(self, file: PatchFile) -> Iterator[PolicyFinding]:
        """Yield the findings about a symbolic link: it replaces a folder, or points into one."""
        path = file.path
        target = file.linked
        for folder in () if target is None else (path, target):
            if is_among(f"{folder}/", self.risky_paths):
                yield PolicyFinding("risky_paths", "ask", path, detail=f"link to {target}")
            rule = self._path_rule(f"{folder}/")
            if rule is not None and rule[1] != "allow":
                detail = f"rule {rule[0]}, link to {target}"
                yield PolicyFinding("paths", rule[1], path, detail=detail)
            elif rule is None:
                for name in dict.fromkeys((*classes_of(folder), *classes_of_folder(folder))):
                    yield from self._finding(name, path, detail=f"link to {target}")

    def _path_rule(self, path: str) -> tuple[str, Effect] | None:
        """Return the pattern and the effect of the last rule that matches a path."""
        rules = (
            (rule.path, rule.effect)
            for rule in reversed(self.settings.paths)
            if is_among(path, (rule.path,))
        )
        return next(rules, None)

    def _content(self, file: PatchFile) -> Iterator[PolicyFinding]:
        if file.deleted:
            return
        if file.size > self.settings.large_file_kb * KILOBYTE:
            yield from self._finding("large_files", file.path, detail=format_size(file.size))
        if file.binary:
            yield from self._finding("binary_files", file.path)

    def of_lfs(self, unread: Mapping[str, int], ordinary: Iterable[str]) -> list[PolicyFinding]:
        """Return the findings about files of Git LFS.

        `unread` are the bytes of contents of which the patch has only the pointers, and `ordinary`
        the files of which it should have pointers.
        """
        large = [
            finding
            for path, size in unread.items()
            if self._path_rule(path) is None
            for finding in self._finding("large_files", path, detail=format_size(size))
        ]
        return large + [item for path in ordinary for item in self._finding("lfs_files", path)]

    def _secrets(
        self, file: PatchFile, lines: Sequence[str] | None = None
    ) -> Iterator[PolicyFinding]:
        """Yield the secrets in the added lines of a file, or in these lines from the first."""
        if is_among(file.path, self.settings.secrets_allowed_in):
            return
        for rule in ("secrets", "possible_secrets"):
            if getattr(self.settings, rule) == "allow":
                continue
            for number, text in file.added if lines is None else enumerate(lines, 1):
                text = text.replace("\0", "")  # of UTF-16
                for kind in secret_kinds(text, certain=rule == "secrets"):
                    yield from self._finding(rule, file.path, number, kind)

    def _finding(
        self, rule: str, path: str, line: int | None = None, detail: str = ""
    ) -> Iterator[PolicyFinding]:
        effect: Effect = getattr(self.settings, rule)
        if effect != "allow":
            yield PolicyFinding(rule, effect, path, line, detail)


def _order(finding: PolicyFinding) -> tuple[int, str, int, str]:
    return RULES.index(finding.rule), finding.path or "", finding.line or 0, finding.detail


# Findings of a policy in words, for questions, failures and the command line.


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
    "paths": "It changes protected paths",
    "secrets": "It adds secrets",
    "possible_secrets": "It adds text that may be secret",
    "ci": "It changes the configuration of CI or code owners",
    "agent_config": "It changes the configuration or instructions of agents",
    "developer_machine": "It changes what runs on the machines of developers",
    "licenses": "It changes licenses",
    "migrations": "It changes migrations",
    "lock_files": "It changes lock files",
    "large_files": "It adds large files",
    "binary_files": "It adds or changes binary files",
    "lfs_files": "It has files of Git LFS as ordinary files, as the profile does not set lfs",
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
    text = ", ".join(path[:MAX_PATH] for path in paths[:MAX_NAMED])
    return f"{text} and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else text


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
    advice.append("draftsman policy show has the rules")
    return f"{'; '.join(reasons(findings))}; denied by {', '.join(rules)}; {'; '.join(advice)}"


def finding_lines(findings: Sequence[PolicyFinding]) -> str:
    """Return all findings, a line each, up to MAX_CONTEXT characters."""
    text = "\n".join(f"{_words(item.rule)}: {item.place}" for item in findings)
    if len(text) <= MAX_CONTEXT:
        return text
    return text[:MAX_CONTEXT].rpartition("\n")[0] + "\n…"


def _words(rule: str) -> str:
    """Return a rule as people read it: `paths` alone does not say which paths."""
    return "protected paths" if rule == "paths" else humanize(rule)
