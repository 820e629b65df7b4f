"""The built wheel is complete, and works wherever it is installed.

The environment is new, but uses the libraries of the running environment: the test covers our
wheel, without a network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from draftsman.testing.databases import TEST_URL
from hatch_build import ProjectUrls
from tests.plugins import example

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "agents/draftsman_agents",
    "core/draftsman",
    "tui/draftsman_tui",
    "bots/draftsman_bots",
    "soak/draftsman_soak",
    "testing/draftsman_testing",
)
FOLDERS = ("config", "migrations", "tests")


def _run(command: Sequence[str | Path], cwd: Path) -> str:
    """Run without variables, so that nothing of the checkout is used; return stdout."""
    environment = {"PATH": os.defpath, "HOME": str(cwd), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        folder,
    ]
    _run([*build, ROOT], folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `bin` of an environment with our wheel and, by a path file, the libraries."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-compile",
    ]
    _run([*install, "--no-deps", "--no-index", wheel], folder)
    site = _run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder)
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(site.strip()) / "libraries.pth").write_text("\n".join(sorted(libraries)))
    return folder / "bin"


def test_the_wheel_holds_exactly_the_files_of_the_packages(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        str(file.relative_to((ROOT / package).parent))
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert expected - inside == set()
    assert any(name == "draftsman/jobs/runs/store/claim.sql" for name in inside)
    for folder in ("migrations", "config"):
        files = [file for file in (ROOT / folder).rglob("*") if file.is_file()]
        assert files
        assert {f"draftsman/{file.relative_to(ROOT)}" for file in files} - inside == set()
    pages = {f"draftsman/docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert {name for name in inside if name.startswith("draftsman/docs/")} == pages
    folders = {name.split("/")[0] for name in inside}
    assert {name for name in folders if not name.endswith((".dist-info", ".data"))} == {
        Path(package).name for package in PACKAGES
    }


def test_urls_come_from_the_address_of_the_project_if_it_has_one(wheel: Path) -> None:
    data = zipfile.ZipFile(wheel)
    (name,) = [name for name in data.namelist() if name.endswith(".dist-info/METADATA")]
    assert "\nProject-URL:" not in data.read(name).decode()
    metadata: dict[str, Any] = {}
    ProjectUrls(str(ROOT), {"address": "https://forge.example/acme/draftsman/"}).update(metadata)
    assert metadata["urls"]["Issues"] == "https://forge.example/acme/draftsman/issues"


def test_the_installed_package_works_in_any_folder(
    environment: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    script = (
        "from draftsman import resources as r\n"
        "names = [name for name, _ in (*r.migrations(), *r.functions())]\n"
        "print(r.__file__, *names, len(r.config_example()) > 1000)"
    )
    empty = tmp_path_factory.mktemp("empty")
    project = tmp_path_factory.mktemp("project")
    for name in (*(package.partition("/")[0] for package in PACKAGES), *FOLDERS):
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(f"raise ImportError('their {name}')\n")
    (project / "pyproject.toml").write_text("[project]\nname = 'theirs'\n")
    for place in (empty, project):
        file, *names, has_example = _run([environment / "python", "-c", script], place).split()
        assert Path(file).is_relative_to(environment.parent)
        files = (ROOT / "migrations").rglob("*.sql")
        assert sorted(names) == sorted(
            str(file.relative_to(ROOT / "migrations").with_suffix("")) for file in files
        )
        assert has_example == "True"
        assert "0.1.0" in _run([environment / "draftsman", "--version"], place)
        assert "--answer" in _run([environment / "draftsman", "demo", "--help"], place)
        page = _run([environment / "draftsman", "help", "--page", "limits"], place)
        assert page == (ROOT / "docs" / "limits.md").read_text("utf-8")
    assert (environment.parent / "share" / "man" / "man1" / "draftsman.1").is_file()


@pytest.mark.slow(
    fast="tests/plugins/test_example_channel.py::test_a_job_asks_and_ends_through_a_plugin_whose_rows_stay_readable_without_it"
)
def test_the_tests_of_an_installed_plugin_use_the_test_kit(
    environment: Path, empty_url: str, tmp_path: Path
) -> None:
    """The contracts, in an environment with the wheels of draftsman and of the plugin."""
    python = environment / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "install"]
    _run([*pip, *example.OFFLINE, example.SOURCE], tmp_path)
    tests = shutil.copytree(example.SOURCE / "tests", tmp_path / "tests")
    shutil.copy(example.SOURCE / "pyproject.toml", tmp_path)
    done = _run(["env", f"{TEST_URL}={empty_url}", python, "-m", "pytest", "-q", tests], tmp_path)
    assert " passed" in done
