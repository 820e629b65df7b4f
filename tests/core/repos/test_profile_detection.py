"""Detection of profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from draftsman.repos.repo_profile import detect_profile

Checks = list[tuple[str, str]]


def proposed(folder: Path, files: dict[str, str]) -> tuple[str, Checks]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    profile = detect_profile(folder)
    return profile.profile_type, [
        (c.name, " ".join(c.command)) for c in profile.validation_commands
    ]


NPM = json.dumps({"scripts": {"test": "jest", "lint": "eslint ."}, "dependencies": {"a": "1"}})
NEW = json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})
LINT = ("lint", "{python} -P -m ruff check .")
PYTEST = ("tests", "python3 -m pytest -q -p no:cacheprovider --junitxml={report}")
MAKE = "CHECK := x\ncheck: all\nall:\n\ntest::\n\techo\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"pyproject.toml": "[tool.ruff]\n[tool.pytest.ini_options]\n"},
            ("python", [LINT, PYTEST]),
        ),
        ({"setup.py": "", "tests/test_a.py": ""}, ("python", [PYTEST])),
        ({"pyproject.toml": "not toml ["}, ("python", [])),
        (
            {"pyproject.toml": "", "Makefile": MAKE},
            ("python", [("check", "make check"), ("test", "make test")]),
        ),
        ({"package.json": NPM}, ("node", [("lint", "npm run lint"), ("test", "npm run test")])),
        (
            {"package.json": NPM, "yarn.lock": ""},
            ("node", [("lint", "yarn run lint"), ("test", "yarn run test")]),
        ),
        ({"package.json": NEW}, ("node", [])),
        ({"package.json": "[" * 100_000}, ("node", [])),
        ({"go.mod": ""}, ("go", [("vet", "go vet ./..."), ("tests", "go test ./...")])),
        (
            {"Cargo.toml": ""},
            ("rust", [("lint", "cargo clippy --quiet"), ("tests", "cargo test --quiet")]),
        ),
        ({"Gemfile": "", "spec/a_spec.rb": ""}, ("ruby", [("tests", "bundle exec rspec")])),
        ({"gradlew": ""}, ("java", [("tests", "./gradlew --no-daemon check")])),
        ({"Makefile": MAKE}, ("make", [("check", "make check"), ("test", "make test")])),
        ({"Makefile": "check = 1\n"}, ("make", [])),
        ({"README": ""}, ("unknown", [])),
    ],
)
def test_a_profile_is_detected_from_the_tree(
    tmp_path: Path, files: dict[str, str], expected: tuple[str, Checks]
) -> None:
    assert proposed(tmp_path, files) == expected


def test_a_link_out_of_the_clone_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("[tool.ruff]\n")
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "pyproject.toml").symlink_to(tmp_path / "secret")
    assert proposed(clone, {}) == ("python", [])


def test_dependencies_are_installed_from_the_lock_file(tmp_path: Path) -> None:
    proposed(tmp_path, {"package.json": NPM, "package-lock.json": "{}"})
    assert [command.command for command in detect_profile(tmp_path).setup_commands] == [
        ("npm", "ci")
    ]
