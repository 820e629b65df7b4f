"""The policy of a repository in force, and its decision about a patch. Pure.

The rules, in the order of their findings:

    deny_files_over, deny_lines_over, path_allowlist    denied
    max_files_changed, max_loc_delta, risky_paths       need an approval
    paths                                               as the last matching rule says
    secrets, ci, licenses, …                            as the policy says
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, Self

from draftsman.agent_runs.changes.patch_files import PatchFile, patch_files
from draftsman.agent_runs.policies import secret_scanner
from draftsman.agent_runs.policies.file_classes import classes_of, classes_of_folder
from draftsman.repos.repo_profile import RepoProfile, is_among
from draftsman.settings.policies import Effect, PolicySettings
from draftsman.text import digest

KILOBYTE: Final = 1000
RULES: Final = (
    *("deny_files_over", "deny_lines_over", "path_allowlist", "max_files_changed"),
    *("max_loc_delta", "risky_paths", "paths", "secrets", "possible_secrets", "ci", "licenses"),
    *("migrations", "lock_files", "large_files", "binary_files"),
)
"""Names of all rules."""


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
        place = self.path or ""
        if self.line is not None:
            place += f":{self.line}"
        return f"{place} ({self.detail})" if self.detail and place else place or self.detail

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

        A single NUL makes a file binary. Secrets in binary files are found in `text_patch`, which
        has their lines; without it, in the whole content of those that the patch has.
        """
        files = patch_files(patch)
        findings = set(self._limits(files))
        for file in files:
            findings.update(self._of_file(file))
        binary = {file.path: file for file in files if file.binary}
        for file in patch_files(text_patch):
            if file.path in binary:
                findings.update(self._secrets(file))
        for file in binary.values() if not text_patch else ():
            findings.update(self._secrets(file, file.content() or ()))
        return sorted(findings, key=_order)

    def _limits(self, files: Sequence[PatchFile]) -> Iterator[PolicyFinding]:
        count, lines = len(files), sum(len(file.added) + file.removed for file in files)
        changed, edited = f"{count:,} files", f"{lines:,} lines"
        limits: tuple[tuple[str, Effect, int | None, int, str], ...] = (
            ("deny_files_over", "deny", self.settings.deny_files_over, count, changed),
            ("deny_lines_over", "deny", self.settings.deny_lines_over, lines, edited),
            ("max_files_changed", "ask", self.max_files_changed, count, changed),
            ("max_loc_delta", "ask", self.max_loc_delta, lines, edited),
        )
        for rule, effect, most, number, text in limits:
            if most is not None and number > most:
                yield PolicyFinding(rule, effect, detail=f"{text} ({rule}: {most:,})")

    def _of_file(self, file: PatchFile) -> Iterator[PolicyFinding]:
        for path in file.paths:
            if self.path_allowlist is not None and not is_among(path, self.path_allowlist):
                yield PolicyFinding("path_allowlist", "deny", path)
            if is_among(path, self.risky_paths):
                yield PolicyFinding("risky_paths", "ask", path)
            rule = self._path_rule(path)
            if rule is None:
                yield from self._classes(path)
            elif rule[1] != "allow":
                yield PolicyFinding("paths", rule[1], path, detail=rule[0])
        if file.linked is not None:
            yield from self._link(file.path, file.linked)
        if self._path_rule(file.path) is None:
            yield from self._content(file)
        yield from self._secrets(file)

    def _link(self, path: str, target: str) -> Iterator[PolicyFinding]:
        """Yield the findings about a symbolic link: it replaces a folder, or points into one."""
        for folder in (path, target):
            if is_among(f"{folder}/", self.risky_paths):
                yield PolicyFinding("risky_paths", "ask", path, detail=f"link to {target}")
            rule = self._path_rule(f"{folder}/")
            if rule is not None and rule[1] != "allow":
                yield PolicyFinding("paths", rule[1], path, detail=f"{rule[0]}, link to {target}")
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

    def _classes(self, path: str) -> Iterator[PolicyFinding]:
        for name in classes_of(path):
            yield from self._finding(name, path)

    def _content(self, file: PatchFile) -> Iterator[PolicyFinding]:
        if file.deleted:
            return
        if file.size > self.settings.large_file_kb * KILOBYTE:
            size = f"{file.size / KILOBYTE:,.0f} kB"
            yield from self._finding("large_files", file.path, detail=size)
        if file.binary:
            yield from self._finding("binary_files", file.path)

    def _secrets(
        self, file: PatchFile, lines: Sequence[str] | None = None
    ) -> Iterator[PolicyFinding]:
        """Yield the secrets in the added lines of a file, or in these lines from the first."""
        if is_among(file.path, self.settings.secrets_allowed_in):
            return
        scanners = (
            ("secrets", secret_scanner.secret_kinds),
            ("possible_secrets", secret_scanner.possible_secret_kinds),
        )
        for rule, scan in scanners:
            if getattr(self.settings, rule) == "allow":
                continue
            for number, text in file.added if lines is None else enumerate(lines, 1):
                for kind in scan(text.replace("\0", "")):  # also of UTF-16
                    yield from self._finding(rule, file.path, number, kind)

    def _finding(
        self, rule: str, path: str, line: int | None = None, detail: str = ""
    ) -> Iterator[PolicyFinding]:
        effect: Effect = getattr(self.settings, rule)
        if effect != "allow":
            yield PolicyFinding(rule, effect, path, line, detail)


def _order(finding: PolicyFinding) -> tuple[int, str, int, str]:
    return RULES.index(finding.rule), finding.path or "", finding.line or 0, finding.detail
