"""Files of an agent's home in a checkpoint, and in the home of a later run."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.worker.agent_jobs import agent_worker, git, make_repository, submit_agent_job
from tests.core.worker.workers import wait_for_end, wait_for_question


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


async def test_a_later_run_starts_with_the_stored_files_of_the_home(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
home = os.environ["HOME"]
state = os.path.join(home, "state", "session.json")
if start["run"] == 1:
    os.makedirs(os.path.dirname(state)); open(state, "w").write("turn 1")
    say("checkpoint", id="1", data=None, home=["../repo"]); refused = hear()
    open("a.txt", "w").write("changed")
    say("checkpoint", id="2", data=refused, home=["state"]); tree = hear()["tree"]
    say("checkpoint", id="3", data=[refused, tree]); assert hear()["tree"] == tree
parked(ask("go"))
assert os.listdir(home) in (["state"], [".tmp", "state"], ["state", ".tmp"]), os.listdir(home)
open(state, "a").write(", turn 2")
say("result", summary=open(state).read(), data={"checkpoint": start["checkpoint"]})
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
    assert job.result is not None, job.last_error
    assert job.result["summary"] == "turn 1, turn 2"
    refused, tree = job.result["data"]["checkpoint"]
    assert (refused["type"], refused["class"]) == ("refused", "PERMANENT")
    assert "'../repo' is not a path below $HOME" in refused["reason"]
    branch = f"draftsman/D-{number}"
    assert git("rev-parse", f"{branch}^{{tree}}", cwd=repo) == tree


async def test_the_files_of_people_are_below_the_home_and_never_in_the_work(
    rt: Runtime, make: Factory, people: People, repo: Path
) -> None:
    code = """
(notes, late) = start["attachments"]
home = os.environ["HOME"]
path = os.path.join(home, notes["path"])
if start["run"] == 1:
    assert os.stat(path).st_mode & 0o777 == 0o400
    os.unlink(path); os.symlink("/etc/passwd", path)
    open("work.txt", "w").write("done")
    say("checkpoint", id="1", data=None, home=["attachments"]); hear()
parked(ask("go"))
assert not os.path.islink(path)
say("result", summary=open(path).read(), data={"late": late, "name": notes["name"]})
"""
    files = [{"reference": {"id": name}, "name": name} for name in ("../notes.md", "b.png")]
    anna = people.on("slack", "anna")
    await rt.repos.add(Repo.at(parse(str(repo))), profile({}), make.owner)
    number = await submit_agent_job(make, repo, actor=anna, attachments=files)
    notes, late = await rt.attachments.claim("slack")
    assert await rt.attachments.store(notes, b"use the v2 API") == "stored"
    assert await rt.attachments.refuse(late, "it was deleted") == "refused"
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
    assert job.result is not None, job.last_error
    assert job.result["summary"] == "use the v2 API"
    assert job.result["data"]["name"] == "notes.md"
    assert job.result["data"]["late"]["reason"] == "it was deleted"
    changed = git("diff", "--name-only", "HEAD", f"draftsman/D-{number}", cwd=repo)
    assert changed.split() == ["work.txt"]
