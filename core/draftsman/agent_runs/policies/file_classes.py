"""Classes of files that a policy names: what they do when the work is merged or opened. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final


@dataclass(frozen=True, slots=True)
class FileClass:
    """Files by the names of their folders and their own; case does not count, as on some disks."""

    top_folders: tuple[str, ...] = ()
    """Folders, from the top folder of a repository."""
    folders: tuple[str, ...] = ()
    """Folders, at any depth."""
    names: tuple[str, ...] = ()
    """Patterns of names, in any folder."""
    expression: re.Pattern[str] | None = None
    """Expression of names."""
    lines: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = ()
    """Patterns of names, each with the beginnings of lines that make such a file one of the
    class."""

    def has(self, path: str, added: Iterable[str] = ()) -> bool:
        """Return whether a file, with these added lines, is of the class."""
        folded = PurePosixPath(path.casefold())
        parent = f"/{folded.parent}/"
        if any(parent.startswith(f"/{folder.casefold()}/") for folder in self.top_folders):
            return True
        if any(f"/{folder.casefold()}/" in parent for folder in self.folders):
            return True
        if any(fnmatchcase(folded.name, pattern.casefold()) for pattern in self.names):
            return True
        if self.expression is not None and self.expression.fullmatch(folded.name):
            return True
        return any(
            expression.match(line)
            for names, expression in self.lines
            if any(fnmatchcase(folded.name, pattern) for pattern in names)
            for line in added
        )


_INSTALL_SCRIPT: Final = re.compile(
    r".*\"((pre|post)?(install|prepare|prepack|pack|publish|uninstall|version)|prepublishOnly"
    r"|dependencies)\"\s*:\s*\"",
)
"""Scripts of a package that its installation and publication run."""
_COMPOSER_SCRIPT: Final = re.compile(r".*\"(pre|post)-[a-z-]+\"\s*:")
_MAKE_INCLUDE: Final = re.compile(r"\s*-?s?include\s|.*\$[({]shell\s|[^#=]*!=")
"""Lines of a Makefile that read other files, or run commands, whatever target is made."""

CLASSES: Final[Mapping[str, FileClass]] = {
    # what runs in CI, checks a pull request, or says who approves it
    "ci": FileClass(
        top_folders=(
            ".azure-pipelines",
            ".bitrise",
            ".buildkite",
            ".circleci",
            ".cirrus",
            ".forgejo",
            ".gitea",
            ".github/actions",
            ".github/workflows",
            ".gitlab",
            ".semaphore",
            ".teamcity",
            ".tekton",
            ".woodpecker",
        ),
        names=(
            ".appveyor.yml",
            ".cirrus.*",
            ".codecov.yml",
            ".drone.*",
            ".gitlab-ci*.yml",
            ".mergify.yml",
            ".pre-commit-config.yaml",
            ".semgrep*.yml",
            ".travis.yml",
            ".woodpecker.y*ml",
            "action.y*ml",
            "appveyor.yml",
            "azure-pipelines*.y*ml",
            "bitbucket-pipelines.yml",
            "bitrise.yml",
            "buildkite.y*ml",
            "buildspec*.y*ml",
            "cloudbuild*.json",
            "cloudbuild*.y*ml",
            "codecov.yml",
            "codemagic.yaml",
            "codeowners",
            "concourse*.y*ml",
            "dependabot.y*ml",
            "dockerfile.ci",
            "jenkinsfile*",
            "netlify.toml",
            "renovate.json*",
            ".renovaterc*",
            "skaffold.y*ml",
            "sonar-project.properties",
            "vercel.json",
            "wercker.yml",
        ),
    ),
    # what agents read as instructions, permissions, hooks, tools or servers
    "agent_config": FileClass(
        folders=(
            ".aider",
            ".amazonq",
            ".augment",
            ".claude",
            ".claude-plugin",
            ".cline",
            ".clinerules",
            ".codex",
            ".continue",
            ".crush",
            ".cursor",
            ".factory",
            ".gemini",
            ".github/chatmodes",
            ".github/instructions",
            ".github/prompts",
            ".goose",
            ".junie",
            ".kilocode",
            ".kiro",
            ".opencode",
            ".qwen",
            ".roo",
            ".trae",
            ".windsurf",
        ),
        names=(
            ".aider*",
            ".clinerules*",
            ".cursorignore",
            ".cursorrules",
            ".goosehints",
            ".mcp.json",
            ".roomodes",
            ".roorules*",
            ".windsurfrules",
            "agent.md",
            "agents*.md",
            "claude*.md",
            "codex.md",
            "conventions.md",
            "copilot-instructions.md",
            "gemini.md",
            "mcp.json",
            "opencode.json*",
            "qwen.md",
            "skill.md",
            "warp.md",
        ),
    ),
    # what runs, or changes what runs, when somebody clones, opens, installs or enters the tree
    "developer_machine": FileClass(
        folders=(
            ".devcontainer",
            ".fleet",
            ".githooks",
            ".husky",
            ".idea",
            ".lefthook",
            ".mise",
            ".mvn",
            ".vscode",
            ".yarn",
            ".zed",
            "githooks",
            "git-hooks",
        ),
        names=(
            "*.code-workspace",
            "*.pth",
            "*.sublime-project",
            ".bazelrc",
            ".devcontainer.json",
            ".envrc",
            ".exrc",
            ".gitattributes",
            ".gitconfig",
            ".gitmodules",
            ".mise*.toml",
            ".nvim.lua",
            ".nvimrc",
            ".npmrc",
            ".pnpmfile.*",
            ".pypirc",
            ".tool-versions",
            ".vimrc",
            ".yarnrc*",
            "bunfig.toml",
            "devenv.nix",
            "flake.nix",
            "lefthook*.y*ml",
            "lefthook.json",
            "lefthook.toml",
            "mise.toml",
            "nix.conf",
            "pip.conf",
            "pnpmfile.*",
            "shell.nix",
            "sitecustomize.py",
            "usercustomize.py",
        ),
        lines=(
            (("package.json",), _INSTALL_SCRIPT),
            (("composer.json",), _COMPOSER_SCRIPT),
            (("gnumakefile", "makefile", "*.mk"), _MAKE_INCLUDE),
        ),
    ),
    "licenses": FileClass(
        top_folders=("LICENSES",),
        expression=re.compile(
            r"((un)?licen[cs]e|copying|notice|copyright|patents)"
            r"([-._](agpl|apache|bsd|cc0|epl|gpl|isc|lesser|lgpl|mit|mpl|third.?party)[\w.-]*?)?"
            r"([.](adoc|html|md|rst|txt))?"
        ),
    ),
    "migrations": FileClass(
        folders=("migrations", "db/migrate", "alembic/versions"),
        # of Flyway
        expression=re.compile(r"[vur]\d*[\w.]*__\w.*\.(sql|java|py)"),
    ),
    "lock_files": FileClass(
        names=(
            "*.lock",
            "*.lockb",
            "*.lock.hcl",
            "*.lockfile",
            "*-lock.json",
            "*-lock.yaml",
            "Package.resolved",
            "go.sum",
            "npm-shrinkwrap.json",
            "packages.lock.json",
        ),
    ),
}
"""Classes of files by their names, which are keys of a policy."""


def classes_of(path: str, added: Iterable[str] = ()) -> list[str]:
    """Return the classes of a file with these added lines, as keys of a policy."""
    lines = tuple(added)
    return [name for name, files in CLASSES.items() if files.has(path, lines)]


def classes_of_folder(path: str) -> list[str]:
    """Return the classes of the files that may be in a folder, or in a folder below it."""
    below = [f"{path}/{end}/x" for end in _FOLDER_ENDS]
    return list(dict.fromkeys(name for file in (f"{path}/x", *below) for name in classes_of(file)))


_FOLDER_ENDS: Final = tuple(
    "/".join(names[start:])
    for files in CLASSES.values()
    for names in (folder.split("/") for folder in (*files.top_folders, *files.folders))
    for start in range(1, len(names))
)
"""Ends of the folders that a class has, such as `workflows`."""
