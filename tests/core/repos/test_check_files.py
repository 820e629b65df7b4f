"""Which changed files decide whether work passes."""

from __future__ import annotations

from draftsman.repos.repo_profile import check_files, profile


def test_configuration_of_ci_tests_and_validators_are_check_files() -> None:
    named = [
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "api/pytest.ini",
        "conftest.py",
        "pyproject.toml",
        "tests/unit/conftest.py",
        "ui/eslint.config.mjs",
        "ui/package.json",
    ]
    others = ["src/pay.py", ".github/README.md", "docs/ruff.toml.md", "tests/test_pay.py"]
    assert check_files([*reversed(named), *others]) == named


def test_scripts_of_the_validation_commands_are_check_files() -> None:
    commands = [
        ["./run-tests", "src/pay.py"],
        ["sh", "-e", "bin/lint.sh"],
        ["{python}", "-P", "tools/types.py"],
        ["python3", "-m", "pytest", "tests"],
        ["/usr/bin/env", "true"],
        ["make", "check"],
    ]
    fields = {
        "path": "api",
        "validation_commands": [
            {"name": str(n), "command": command} for n, command in enumerate(commands)
        ],
    }
    named = ["api/bin/lint.sh", "api/run-tests", "api/tools/types.py"]
    others = ["api/src/pay.py", "bin/lint.sh", "api/tests/test_a.py", "api/make"]
    assert check_files([*named, *others], profile(fields)) == named
