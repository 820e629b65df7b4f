"""Apps: the modules in which workers find declared job types."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from draftsman.errors import ConfigError
from draftsman.job_types import declaration
from draftsman.job_types.app import AppPlace, find_app, load_types
from tests.attacks.catalog import attack
from tests.support.cases import cases

JOBS = """
from draftsman import BlockingRunContext, job

@job("greet", title="Greet {name}")
def greet(ctx: BlockingRunContext, name: str) -> str:
    return f"Hello, {name}"
"""


@pytest.fixture
def load(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Provide a function that returns what a process in the folder loads, or why it does not."""
    modules = set(sys.modules)

    def load(option: str | None = None) -> str:
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.setattr(declaration, "declared_types", {})
        forget()
        try:
            types = load_types(find_app(option, folder))
        except ConfigError as error:
            return str(error)
        return " ".join(f"{name} {declared.place}" for name, declared in types.items())

    def forget() -> None:
        importlib.invalidate_caches()
        for name in set(sys.modules) - modules:
            if name.partition(".")[0] == "company":
                del sys.modules[name]

    yield load
    forget()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Provide a folder with the app `company.jobs`."""
    (package := tmp_path / "company").mkdir()
    (package / "__init__.py").write_text("")
    (package / "jobs.py").write_text(JOBS)
    return tmp_path


def test_an_app_is_a_module_of_the_folder_or_of_its_project(
    folder: Path, load: Callable[..., str]
) -> None:
    expected = "greet company.jobs:greet"
    assert load() == ""
    assert load("company.jobs") == expected
    (folder / "pyproject.toml").write_text('[tool.draftsman]\napp = "company.jobs"\n')
    assert load() == expected


@cases(
    ("jobs", "problem"),
    [
        (
            "import nowhere",
            "cannot import the app company.jobs: No module named 'nowhere' (jobs.py:1); is",
        ),
        ("x = 1", "the app company.jobs of {folder} (--app) declares no job type; use @job in it"),
        (
            "raise SystemExit(3)",
            "cannot import the app company.jobs: 3 (jobs.py:1); is it below {folder}",
        ),
        (
            "from draftsman import job\n@job('a')\ndef a(): ...",
            "a: a needs a first parameter, the context",
        ),
    ],
)
def test_an_app_that_cannot_be_loaded_is_named(
    folder: Path, load: Callable[..., str], jobs: str, problem: str
) -> None:
    (folder / "company" / "jobs.py").write_text(jobs)
    assert load("company.jobs").startswith(problem.format(folder=folder))


@cases(
    ("text", "problem"),
    [
        ("[tool.draftsman]\napp = 1\n", r"app of \[tool.draftsman\] must be a module"),
        ("[tool", r"pyproject\.toml is no valid TOML"),
        ("tool = 1", r"pyproject\.toml is no valid TOML"),
    ],
)
def test_a_project_that_names_no_module_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        find_app(None, tmp_path)


@cases("text", ["", "[tool.other]\n", "[tool.draftsman]\nslots = 3\n"])
def test_a_project_without_an_app_has_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert find_app(None, tmp_path) is None


def test_the_option_comes_before_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.draftsman]\napp = "company.jobs"\n')
    assert find_app("other", tmp_path) == AppPlace("other", tmp_path, "--app")
    found = find_app(None, tmp_path)
    assert str(found) == f"company.jobs of {tmp_path} ({tmp_path / 'pyproject.toml'})"


@attack(
    "A cloned repository names code or configuration of its own in its pyproject.toml",
    surface="repository",
    with_sandbox="only `worker` and `up`, started in it, import the app; nothing else is read",
)
def test_commands_read_and_import_nothing_of_the_current_folder(
    folder: Path, database_url: str, load: Callable[..., str]
) -> None:
    ran = folder / "ran"
    (folder / "company" / "jobs.py").write_text(
        f"from pathlib import Path\nPath({str(ran)!r}).touch()"
    )
    (folder / "pyproject.toml").write_text(
        '[tool.draftsman]\napp = "company.jobs"\nhandlers.noop = "company.jobs:x"\n'
    )
    (folder / "draftsman.toml").write_text('[handlers]\nnoop = "company.jobs:x"\n')
    submit = ["submit", "--type", "greet", "--payload", "{}"]
    for command in (["jobs"], submit, ["replay", "D-1"]):
        subprocess.run(
            [sys.executable, "-P", "-m", "draftsman_tui", *command],
            cwd=folder,
            env={**os.environ, "DRAFTSMAN_DATABASE_URL": database_url},
            capture_output=True,
            check=False,
        )
    assert not ran.exists()
    assert load("company.jobs").startswith("the app")
    assert ran.exists(), "the app itself is imported"
