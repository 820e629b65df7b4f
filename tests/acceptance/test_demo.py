"""`draftsman demo`: a real job on a real repository, from the request to the answer to the end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.cli.demo.demo import next_steps
from tests.acceptance.processes import Installation
from tests.core.worker.agent_jobs import contents, git
from tests.core.worker.workers import event_kinds


def repository(out: str) -> Path:
    """Return the demo's repository from its output."""
    [path] = set(re.findall(r"git -C (\S+) log", out)) or {""}
    return Path(path)


def _demo(installation: Installation, *options: str) -> Any:
    """Run a demo with the configuration of an installation."""
    return installation.run("--config", str(installation.config), "demo", *options)


def _broken(installation: Installation) -> dict[str, str]:
    """Break the user's configuration; return the variables of the user's folders."""
    installation.config.write_text("this is no configuration")
    folder = str(installation.folder)
    return {"HOME": folder, "XDG_DATA_HOME": folder, "DATABASE_URL": "bogus://"}


async def test_demo_does_not_read_the_configuration_of_the_user(
    installation: Installation,
) -> None:
    missing = installation.folder / "missing"
    done = await installation.run("demo", "--repo", str(missing), **_broken(installation))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert str(missing) in done.stderr


@pytest.mark.slow(fast="test_demo_does_not_read_the_configuration_of_the_user")
async def test_demo_has_its_own_data(installation: Installation, rt: Runtime) -> None:
    done = await installation.run("demo", **_broken(installation))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert await rt.read_model.jobs() == []
    assert [entry.name for entry in installation.data.iterdir()] == ["demo"]
    [config] = re.findall(r"draftsman --config (\S+) show D-\d+", done.stdout)
    try:
        shown = await installation.run("--config", config, "jobs", "--limit", "1", **UNSET)
        assert "completed" in shown.stdout
        edit = "UPDATE draftsman.schema_migrations SET checksum = 'x' WHERE name = '0001_database'"
        await installation.run("--config", config, "db", "psql", "--", "-c", edit, **UNSET)
        failed = await installation.run("demo", **_broken(installation))
        assert failed.returncode == 6
        assert "migration 0001_database was edited after it was applied" in failed.stderr
        cluster = (Path(config).parent / "postgres18").resolve()
        assert f"the demo's database in {cluster} is of another version" in failed.stderr
        deletion = failed.stderr.rpartition("to delete it: ")[2]
        own = deletion.replace("draftsman ", f"{sys.executable} -P -m draftsman_tui ", 1)
        deleted = await asyncio.create_subprocess_shell(own)
        assert await deleted.wait() == 0
        assert not cluster.exists()
        assert not Path(config).parent.exists()
    finally:
        await installation.run("--config", config, "db", "stop", "--yes", **UNSET)


UNSET = {"DRAFTSMAN_DATABASE_URL": "", "DRAFTSMAN_DATA_DIR": ""}


async def test_demo_in_a_pipe_uses_the_default_answer_and_completes_after_a_kill(
    installation: Installation, rt: Runtime
) -> None:
    done = await _demo(installation, "--kill")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "kill -9" in done.stdout
    for word in ("request", "worker", "clone", "validate", "parked", "question", "answer", "fix"):
        assert f" s  {word} " in done.stdout
    assert " s  agent     The agent tidy began iteration 1\n" in done.stdout
    assert "D-1 is completed" in done.stdout
    assert "safe fixes" in done.stdout
    job = await rt.read_model.job(1)
    assert (job.status, job.attempts) == (Status.COMPLETED, 1)
    assert [run.status for run in await rt.read_model.runs(1)] == [
        "parked",
        "interrupted",
        "completed",
    ]
    assert (await event_kinds(rt, 1)).count("needs_input") == 1
    repo = repository(done.stdout)
    assert git("rev-parse", "draftsman/D-1", cwd=repo) == (job.result or {})["commit"]
    assert git("status", "--porcelain", cwd=repo) == ""
    assert await rt.read_model.workers() == []
    assert not any((await rt.read_model.invariants()).values())


@pytest.mark.slow(fast="test_demo_in_a_pipe_uses_the_default_answer_and_completes_after_a_kill")
async def test_demo_replaces_a_worker_that_was_killed(
    installation: Installation, rt: Runtime
) -> None:
    demo = installation.start("--config", str(installation.config), "demo")
    await demo.says("queued ")
    [pid] = re.findall(r"started, pid (\d+)", demo.output_text)
    os.kill(int(pid), signal.SIGKILL)
    assert await demo.end() == 0, demo.output_text
    assert f" s  kill -9   worker {pid} killed during the run\n" in demo.output_text
    assert "D-1 is completed" in demo.output_text


async def test_next_steps_name_no_changes_if_there_are_none(make: Factory, rt: Runtime) -> None:
    job = await rt.read_model.job(await make.completed())
    assert "branch" not in (job.result or {})
    assert [line.split()[-2:] for line in next_steps(job, Path("repo"))[2:]] == [["show", job.name]]


@pytest.mark.slow(
    fast="tests/core/agent_runs/clones/test_publish.py::test_publishing_adds_objects_and_the_branch_and_nothing_else"
)
async def test_the_users_own_repository_gets_the_branch_and_nothing_else(
    installation: Installation, rt: Runtime, tmp_path: Path
) -> None:
    repo = tmp_path / "mine"
    await make_sample_repo(repo)
    (repo / "untracked.txt").write_text("mine")
    (repo / "README.md").write_text("changed, and not committed\n")
    (repo / ".git" / "hooks").mkdir(exist_ok=True)
    hook = repo / ".git" / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/hook\n")
    hook.chmod(0o755)
    before = contents(repo)
    done = await _demo(installation, "--repo", str(repo))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    after = contents(repo)
    added = {name for name in after if name not in before}
    assert {name: after[name] for name in before} == before
    branch = "refs/heads/draftsman/D-1"
    assert f".git/{branch}" in added
    others = added - {f".git/{branch}", f".git/logs/{branch}"}
    assert all(name.startswith(".git/objects/") for name in others), others
    assert not (tmp_path / "hook").exists()
    git("fsck", "--strict", cwd=repo)
    assert git("log", "--format=%an", "-1", "draftsman/D-1", cwd=repo)


async def test_demo_rejects_an_unknown_choice_with_one_line(
    installation: Installation, rt: Runtime
) -> None:
    done = await _demo(installation, "--answer", "42 of them")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "42 of them" in done.stderr
    assert "Traceback" not in done.stderr
    assert (await rt.read_model.job(1)).status is Status.CANCELED
    assert await rt.read_model.workers() == []


async def test_demo_rejects_a_folder_that_is_no_repository(
    installation: Installation, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    done = await _demo(installation, "--repo", str(tmp_path / "plain"))
    assert done.returncode != 0
    assert "git repository" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
