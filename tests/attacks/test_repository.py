"""Attacks of a hostile repository, or of an agent's changes in its clone, on the worker."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.handlers import registry
from draftsman.jobs.job import Status
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime, wire
from draftsman.settings.sandbox import SandboxSettings
from draftsman_testing.factories import Factory
from tests.attacks.catalog import attack
from tests.attacks.hostile_repository import PLANT_SOURCE
from tests.core.worker.agent_jobs import agent, git, make_repository, submit_agent_job
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
)
from tests.support.slow import slow_except

SECRET: Final = "outside content"
OWN_GIT: Final = "the worker's git uses its own repository and configuration"
NOT_VISIBLE: Final = "it runs inside; nothing outside is visible"
RUNS: Final = "it runs with the permissions of the agent; Landlock refuses writes outside"
PLANTED: Final = {
    "fsmonitor": ("core.fsmonitor of the clone's configuration is a program", OWN_GIT),
    "hook": ("The clone has hooks for every operation of git", OWN_GIT),
    "filter": ("Attributes and configuration of the clone name a filter program", OWN_GIT),
    "diff": ("Attributes and configuration of the clone name a diff program", OWN_GIT),
    "sign": ("The clone's configuration signs commits with a program", OWN_GIT),
    "transport": ("The clone's configuration names programs for ssh and for its remote", OWN_GIT),
    "submodule": ("A submodule has a configuration with a program, and a URL ext::", OWN_GIT),
    "path": (
        "The clone and the home have programs named git, sh and python3",
        "the worker's PATH has no folder of a run",
    ),
    "module": (
        "The clone has modules named json, ruff and sitecustomize",
        "draftsman's own programs and checks start Python with -P",
    ),
}
"""Programs that would run in the worker: nothing of them runs in any mode of the sandbox."""
STARTED: Final = {
    "agent": ("An agent creates a file in a folder of the host that everyone may write to"),
    "install": "A setup command runs a script of the repository",
    "check": "A validation command runs a script of the repository",
    "conftest": "The tests of the repository have a conftest.py",
}
"""Programs that the sandbox starts."""
AGENT: Final = """
import json, subprocess
outside, secret = json.loads(start["request"]["text"])
plant(outside, secret)
try: open(f"{outside}/agent", "w")
except OSError: pass
say("artifact", id="a", path="link", name="link.txt")
refused = hear()
say("result", summary="planted", data={"artifact": refused["type"]})
"""
CONFTEST: Final = """
try: open("{outside}/conftest", "w")
except OSError: pass
"""


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder of the host that everyone may write to, also a run's own user."""
    folder = Path(tempfile.mkdtemp(prefix="draftsman-outside-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A repository outside whose content the agent wants to publish."""
    folder = make_repository(tmp_path / "secret", a="one\n")
    (folder / "secret.txt").write_text(SECRET)
    git("add", "-A", cwd=folder)
    git("commit", "-qm", "secret", cwd=folder)
    return folder


def test_the_planted_programs_run_in_the_git_of_a_person(
    outside: Path, secret: Path, tmp_path: Path
) -> None:
    """The attacks are effective where git uses the configuration of the clone."""
    clone = make_repository(tmp_path / "clone")
    code = f"{PLANT_SOURCE}\nplant({str(outside)!r}, {str(secret)!r})"
    variables = os.environ | {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    variables |= {"GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@localhost"}
    variables |= {"GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@localhost"}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=clone, env=variables, capture_output=True, check=False)
        return done.stdout.decode()

    run("python3", "-c", code)
    assert run("git", "show", ":stolen.txt") == SECRET, "its objects are found"
    run("git", "remote", "add", "origin", str(secret))
    for command in ("status", "add -A", "diff HEAD", "commit -qm x", "fetch origin"):
        run("git", *command.split())
    run("sh", "-c", "PATH=.:$PATH; env")
    run("python3", "-c", "import ruff")
    assert {path.name for path in outside.iterdir()} == set(PLANTED)


async def run_hostile_job(
    rt: Runtime, make: Factory, mode: str, outside: Path, secret: Path, folder: Path
) -> tuple[set[str], Path, Any]:
    """Return the programs that had an effect, the repository and the result of a job in a mode."""
    repo = make_repository(folder / "repo")
    (repo / "conftest.py").write_text(CONFTEST.format(outside=outside))
    (repo / "test_it.py").write_text("def test(): pass\n")
    for name in ("install", "check"):
        (repo / f"{name}.sh").write_text(f"touch {outside}/{name} 2>/dev/null; exit 0\n")
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "hostile", cwd=repo)
    pytest_ = ["{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    fields = {
        "network": False,
        "setup_commands": [{"name": "install", "command": ["sh", "install.sh"]}],
        "validation_commands": [
            {"name": "check", "command": ["sh", "check.sh"]},
            {"name": "lint", "command": ["{python}", "-P", "-m", "ruff", "--version"]},
            {"name": "tests", "command": [pytest_[0], "-P", *pytest_[1:]]},
        ],
        "max_files_changed": 1000,
    }
    await rt.repos.add(Repo.at(parse(str(repo))), profile(fields), make.owner)
    code = agent(PLANT_SOURCE + AGENT)
    base = runtime_with(rt, data_dir=folder / "data", agents={"test": code})
    sandbox = SandboxSettings.model_validate({"mode": mode})
    services = wire(base.settings.model_copy(update={"sandbox": sandbox}), rt.db, False)
    text = f'["{outside}", "{secret}"]'
    number = await submit_agent_job(make, str(repo), text=text)
    async with running_worker(services, registry.load({}), leader=False):
        await wait_for_question(rt, number)
        assert (await make.answer(number, "include")).accepted  # the files of the submodule
        await wait_for_question(rt, number, 2)
        question = await rt.questions.get(number, 2)
        assert "hide modules of the commands: json.py, ruff.py" in question.text
        assert (await make.decide(number, True, make.owner, n=2)).accepted
        job = await wait_for_end(rt, number)
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert job.status is Status.COMPLETED, f"{job.last_error}\n{log}"
    return {path.name for path in outside.iterdir()}, repo, job.result


def planted(test: Any) -> Any:
    """Register each program as an attack of this test."""
    for title, outcome in PLANTED.values():
        test = attack(title, surface="repository", with_sandbox=outcome, effect=False)(test)
    for title in STARTED.values():
        test = attack(
            title,
            surface="repository",
            with_sandbox=NOT_VISIBLE,
            without_sandbox=RUNS,
            effect=True,
        )(test)
    return test


@planted
@attack(
    "The clone's alternates lead to the objects of another repository, and its index names a blob",
    surface="repository",
    with_sandbox="the tree is read by its files, into the worker's own objects",
    effect=False,
)
@attack(
    "A link of the tree leads to a file outside",
    surface="repository",
    with_sandbox="the link is published as a link, and refused as an artifact",
    effect=False,
)
@pytest.mark.parametrize("mode", slow_except(["off"], ["bwrap", "landlock", "off"]))
async def test_a_hostile_repository_has_no_effect_outside(
    rt: Runtime, make: Factory, mode: str, outside: Path, secret: Path, tmp_path: Path
) -> None:
    effects, repo, result = await run_hostile_job(rt, make, mode, outside, secret, tmp_path)
    assert effects == (set(STARTED) if mode == "off" else set())
    branch = result["branch"]
    tree = git("ls-tree", "-r", branch, cwd=repo)
    assert "stolen.txt" not in tree
    assert "\tsub/file" in tree
    assert "\tsub/.git" not in tree
    [link] = [line for line in tree.splitlines() if line.endswith("\tlink")]
    assert link.startswith("120000 ")
    assert result["data"] == {"artifact": "refused"}
    assert SECRET not in git("log", "-p", branch, cwd=repo)
