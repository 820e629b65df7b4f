"""Jobs in repositories with Git LFS and submodules: with them, or told to work without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.clones.lfs_filter import parse_pointer
from draftsman.agents.program import missing_text
from draftsman.jobs.details.job_details import INCOMPLETE
from draftsman.jobs.details.sections.facts import facts
from draftsman.jobs.details.sections.questions import responders
from draftsman.jobs.details.sections.section import Reader
from draftsman.jobs.job import Status
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.agent_runs.clones.lfs_repository import BIG, add_lfs_files
from tests.core.agent_runs.clones.test_submodules import add_submodule
from tests.core.handlers.job_types.test_send_notification import notices
from tests.core.worker.agent_jobs import agent_worker, git, make_repository, submit_agent_job
from tests.core.worker.workers import event_kinds, last_event, wait_for_end, wait_for_question

S = Status
CODE = """
big = open("big.bin", "rb").read()
files = sorted(os.listdir("lib"))
try:
    open("lib/of_library.txt", "r+").write("changed")
    files.append("written")
except OSError:
    pass
open("new.bin", "wb").write(CONTENT)
say("result", summary="did it", data={"big": len(big), "files": files, "missing": start["missing"]})
"""
TEXT = (
    "the contents of 1 file of Git LFS (gone.bin): the source does not have them",
    "the contents of 2 files of Git LFS (big.bin, gone.bin): set lfs = true in its profile",
    "the submodule lib: set submodules = true in its profile",
)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    library = make_repository(tmp_path / "library", of_library="1\n")
    repo = make_repository(tmp_path / "repo", a="one\n")
    add_lfs_files(repo)
    add_submodule(repo, "lib", "../library", git("rev-parse", "HEAD", cwd=library))
    return repo


async def submitted(rt: Runtime, make: Factory, repo: Path, **fields: Any) -> int:
    await rt.repos.add(Repo.at(parse(str(repo))), profile(fields), make.owner)
    return await submit_agent_job(make, repo, notify=("log",))


async def test_a_job_says_at_its_start_without_what_it_works(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submitted(rt, make, repo)
    code = CODE.replace("CONTENT", "b'x' * 100")
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_question(rt, number)
        question = await rt.questions.get(number, 1)
        await make.decide(number, True, make.owner)
        job = await wait_for_end(rt, number)
    assert (
        "It has files of Git LFS as ordinary files, as the profile does not set lfs: new.bin"
        in (question.text)
    )
    assert job.status is S.COMPLETED, job.last_error
    assert job.result is not None
    assert job.result["data"] == {
        "big": len(git("cat-file", "blob", "HEAD:big.bin", cwd=repo)) + 1,
        "files": [],
        "missing": [*TEXT[1:]],
    }
    parts = (await last_event(rt, number, INCOMPLETE)).payload["parts"]
    assert [part["text"] for part in parts] == [*TEXT[1:]]
    assert (await event_kinds(rt, number)).count(INCOMPLETE) == 1, "not in each of its runs"
    assert await notices(rt, number) == [
        ("log:log", f"{job.name} works without {TEXT[1]}; and without {TEXT[2]}")
    ]
    details = await rt.read_model.details(number)
    reader = Reader(details.at, responders(details, rt.policy, "you"))
    shown = [str(fact.value) for fact in facts(details, reader) if fact.label == "without"]
    assert [text in line for text, line in zip(TEXT[1:], shown, strict=True)] == [True, True]


async def test_a_job_that_notifies_nobody_works_without_them_too(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", 'say("result", summary="x")'):
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    assert (await event_kinds(rt, number)).count(INCOMPLETE) == 1


async def test_a_profile_gives_jobs_the_contents_and_the_submodules(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    check = {
        "name": "contents",
        "command": ["sh", "-c", "test $(wc -c < new.bin) = 5000 && cat lib/of_library.txt"],
    }
    number = await submitted(
        rt,
        make,
        repo,
        lfs=True,
        submodules=True,
        validation_commands=[check],
        ordinary_files=["*.bin"],
    )
    async with agent_worker(rt, repo.parent / "data", CODE.replace("CONTENT", "b'x' * 5000")):
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    assert job.result is not None
    assert job.result["data"] == {
        "big": len(BIG),
        "files": ["of_library.txt"],
        "missing": [TEXT[0]],
    }
    assert (job.result["validated"], job.result["files_changed"]) == (True, 1)
    published = git("cat-file", "blob", f"draftsman/{job.name}:new.bin", cwd=repo)
    item = parse_pointer(f"{published}\n".encode())
    assert item is not None
    assert item.path(repo / ".git" / "lfs").read_bytes() == b"x" * 5000
    assert await notices(rt, number) == [("log:log", f"{job.name} works without {TEXT[0]}")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("b'key = AKIA' + b'QYLPMN5HHHFPZAM2'", "new.bin:1"),
        ("b'x' * 1_100_000", "It adds large files: new.bin (1.1 MB)"),
    ],
    ids=["secret", "large"],
)
async def test_the_policy_judges_contents_and_not_pointers(
    rt: Runtime, make: Factory, repo: Path, content: str, text: str
) -> None:
    number = await submitted(rt, make, repo, lfs=True, policy={"large_files": "deny"})
    async with agent_worker(rt, repo.parent / "data", CODE.replace("CONTENT", content)):
        job = await wait_for_end(rt, number)
    assert job.status is S.FAILED
    assert text in (job.last_error or "")


def test_prompts_name_what_the_workspace_lacks() -> None:
    text = f"The workspace is without {TEXT[1]}; and without {TEXT[2]}."
    assert missing_text({"missing": TEXT[1:]}) == text
    assert missing_text({"missing": ()}) == missing_text({}) == ""
