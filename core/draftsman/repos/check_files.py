"""Check files: files of a repository that decide whether work on it passes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

from draftsman.repos.repo_profile import RepoProfile

FOLDERS: Final = (
    ".buildkite",
    ".circleci",
    ".forgejo",
    ".gitea",
    ".github/actions",
    ".github/workflows",
    ".gitlab",
    ".husky",
    ".woodpecker",
)
"""Folders of CI and hooks, from the top folder of a repository."""
CI_NAMES: Final = (
    *(".appveyor.yml", ".drone.yml", ".gitlab-ci.yml", ".pre-commit-config.yaml", ".travis.yml"),
    *(".woodpecker.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "codecov.yml"),
    *(".codecov.yml", "Jenkinsfile", "sonar-project.properties", "lefthook.yml"),
)
"""File names, in any folder, of the configuration of CI and hooks."""
NAMES: Final = (
    *CI_NAMES,
    # tests
    *(".coveragerc", ".mocharc*", ".nycrc*", ".rspec", "ava.config.*", "conftest.py"),
    *("cypress.config.*", "jest.config.*", "karma.conf.*", "noxfile.py", "phpunit.xml*"),
    *("playwright.config.*", "pytest.ini", ".pytest.ini", "tox.ini", "vitest.config.*"),
    *("vitest.workspace.*", "sitecustomize.py", "usercustomize.py"),
    # linters, formatters and type checkers
    *(".clang-format", ".clang-tidy", ".editorconfig", ".eslintignore", ".eslintrc*", ".flake8"),
    *(".golangci.*", ".mypy.ini", ".prettierignore", ".prettierrc*", ".pylintrc", ".rubocop*.yml"),
    *(".ruff.toml", ".rustfmt.toml", ".stylelintrc*", ".yamllint*", "biome.json*"),
    *("checkstyle.xml", "clippy.toml", ".clippy.toml", "detekt.yml", "eslint.config.*"),
    *("mypy.ini", "phpcs.xml*", "phpstan.neon*", "prettier.config.*", "psalm.xml*"),
    *("pylintrc", "pyrightconfig.json", "ruff.toml", "rustfmt.toml", "setup.cfg"),
    *("tsconfig*.json", "tslint.json"),
    # builds that define the commands
    *("*.gradle", "*.gradle.kts", "BUILD", "BUILD.bazel", "build.xml", "Cargo.toml"),
    *("CMakeLists.txt", "composer.json", "Gemfile", "GNUmakefile", "gradlew", "justfile"),
    *("Makefile", "makefile", "mvnw", "package.json", "pom.xml", "pyproject.toml", "Rakefile"),
    *("setup.py", "Taskfile.yml"),
)
"""File names, in any folder, of the configuration of tests, validators and builds."""

INTERPRETERS: Final = ("*sh", "bun", "deno", "node", "perl", "php", "python*", "{python}", "ruby")
"""Programs whose first argument is a script."""


def check_files(paths: Iterable[str], profile: RepoProfile | None = None) -> list[str]:
    """Return the check files among changed paths, sorted.

    The programs and scripts that the setup and validation commands run are check files, too.
    """
    own = _scripts(profile) if profile is not None else frozenset[str]()
    return sorted({path for path in paths if path in own or _is_check_file(path)})


def is_ci_file(path: str) -> bool:
    """Return whether a file configures CI, or hooks of git."""
    return any(path.startswith(f"{folder}/") for folder in FOLDERS) or _has_name(path, CI_NAMES)


def _is_check_file(path: str) -> bool:
    return is_ci_file(path) or _has_name(path, NAMES)


def _has_name(path: str, patterns: Iterable[str]) -> bool:
    name = PurePosixPath(path).name
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _scripts(profile: RepoProfile) -> frozenset[str]:
    """Return the programs and scripts of the commands, as paths from the top folder."""
    commands = [item.command for item in profile.setup_commands]
    commands += [item.command for item in profile.validation_commands]
    words = map(_script, commands)
    return frozenset(
        str(PurePosixPath(profile.path, word)) for word in words if word and word[0] != "/"
    )


def _script(command: Sequence[str]) -> str | None:
    """Return the program of a command, or the script that its interpreter runs."""
    program = PurePosixPath(command[0]).name
    if not any(fnmatchcase(program, pattern) for pattern in INTERPRETERS):
        return command[0] if "/" in command[0] else None
    return next((word for word in command[1:] if not word.startswith("-")), None)
