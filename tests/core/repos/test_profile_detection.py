"""Detection of profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from draftsman.errors import UsageError
from draftsman.repos.profile_detection import detect_profile, detect_tools
from draftsman.repos.tool_setup import parse_setup
from tests.support.cases import cases

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


REQUIRED = (
    "python3 -m venv .venv && echo '*' > .venv/.gitignore"
    " && .venv/bin/python -m pip install -r requirements.txt"
)


@cases(
    ("files", "text"),
    [
        (["pyproject.toml", "uv.lock"], "uv sync --frozen"),
        (["pyproject.toml", "uv.lock", "requirements.txt"], "uv sync --frozen"),
        (["pyproject.toml", "poetry.lock"], "poetry install --no-interaction"),
        (["pyproject.toml", "pdm.lock"], "pdm sync"),
        (["setup.py", "Pipfile.lock"], "pipenv sync --dev"),
        (["requirements.txt"], REQUIRED),
        (
            ["setup.py", "requirements-dev.txt", "requirements.txt", "requirements-docs.txt"],
            f"{REQUIRED} -r requirements-dev.txt",
        ),
        (["package.json", "pnpm-lock.yaml"], "pnpm install --frozen-lockfile"),
        (["package.json", "yarn.lock"], "yarn install --frozen-lockfile"),
        (["package.json", "bun.lock"], "bun install --frozen-lockfile"),
        (["package.json", "package-lock.json"], "npm ci"),
        (["package.json"], None),
        (["pyproject.toml", "package-lock.json"], None),
        (["Makefile", "package-lock.json"], "npm ci"),
        (["Cargo.toml", "Cargo.lock"], "cargo fetch --locked"),
        (["go.mod", "go.sum"], "go mod download"),
        (["Gemfile", "Gemfile.lock"], "bundle install"),
        (["Gemfile"], "bundle install"),
        (["composer.lock"], "composer install --no-interaction"),
        (["mix.lock"], "mix deps.get"),
        (["packages.lock.json"], "dotnet restore --locked-mode"),
        (["gradlew"], "./gradlew --no-daemon testClasses"),
        (["pom.xml", "mvnw"], "./mvnw -q -B dependency:go-offline"),
        (["pom.xml"], "mvn -q -B dependency:go-offline"),
        ([], None),
    ],
)
def test_the_setup_of_the_tools_is_detected_from_lock_files(
    tmp_path: Path, files: list[str], text: str | None
) -> None:
    folder = tmp_path / "-".join(["repo", *files])
    folder.mkdir()
    proposed(folder, {name: NPM if name == "package.json" else "" for name in files})
    found = detect_tools(folder)
    assert (found and found.text) == text


def test_a_package_without_dependencies_needs_no_setup(tmp_path: Path) -> None:
    proposed(tmp_path, {"package.json": NEW, "package-lock.json": "{}"})
    assert detect_tools(tmp_path) is None


def test_checks_run_with_the_tools_that_were_set_up(tmp_path: Path) -> None:
    proposed(tmp_path, {"pyproject.toml": "[tool.mypy]", "poetry.lock": "", "tests/test_a.py": ""})
    profile = detect_profile(tmp_path, setup=detect_tools(tmp_path))
    assert [check.command[:3] for check in profile.validation_commands] == [
        (".venv/bin/python", "-m", "mypy"),
        (".venv/bin/python", "-m", "pytest"),
    ]
    assert [command.command[0] for command in profile.setup_commands] == ["poetry"]
    assert profile.env == {"POETRY_VIRTUALENVS_IN_PROJECT": "true"}


@cases(
    ("text", "command", "python"),
    [
        ("uv sync --frozen", ("uv", "sync", "--frozen"), ".venv/bin/python"),
        ("npm ci", ("npm", "ci"), ""),
        ("./tools.sh 'a b'", ("./tools.sh", "a b"), ""),
        ("A=1 make deps", ("sh", "-c", "A=1 make deps"), ""),
        ("make deps && make gen", ("sh", "-c", "make deps && make gen"), ""),
        ("python3 -m venv .venv", ("python3", "-m", "venv", ".venv"), ".venv/bin/python"),
    ],
)
def test_a_setup_is_written_as_in_a_shell(text: str, command: tuple[str, ...], python: str) -> None:
    setup = parse_setup(text)
    assert setup is not None
    assert (setup.command, setup.text, setup.python) == (command, text, python)


def test_an_empty_setup_is_none_and_a_broken_one_is_refused() -> None:
    assert parse_setup(" ") is None
    with pytest.raises(
        UsageError, match="the setup command: no closing quotation; write it as in a shell"
    ):
        parse_setup("make 'x")
