"""The work of an agent on a repository, through faults: each of its messages is stored once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.questions.question import POLICY_KEY
from draftsman.repos.repo_catalog import Repo, RepoLocation
from draftsman.repos.repo_profile import EvidenceProfile, RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.settings.policies import PolicySettings
from tests.core.agent_runs.clones.lfs_repository import add_lfs_files
from tests.core.agent_runs.clones.test_submodules import add_submodule
from tests.core.worker.agent_jobs import PRELUDE, git, make_repository
from tests.kill.campaign import Campaign, all_ended, people_answer
from tests.kill.faults import AGENT
from tests.kill.notifications import OWNER
from tests.kill.scenarios import leave_clones, waited_for_the_database

VALIDATION: Final = "test -f last.txt && echo '<testsuite><testcase/></testsuite>' > tests.xml"
VALIDATED: Final = RepoProfile.model_validate(
    {
        "setup_commands": [{"name": "prepare", "command": ["true"]}],
        "budget": {"cost_usd": 1},
        "lfs": True,
        "submodules": True,
        "git": {"sign_off": True},
        "validation_commands": [
            {"name": "there", "command": ["sh", "-c", VALIDATION], "report": "tests.xml"}
        ],
    }
)
"""Profile of a repository whose work has the file `last.txt`."""
REPORT: Final = "printf 'SF:work_test.py\\nDA:1,1\\nend_of_record\\n' > lcov.info"
EVIDENCE: Final = EvidenceProfile.model_validate(
    {
        "test": ["sh", "-c", "test -f last.txt && test -f $0", "{files}"],
        "coverage": {"command": ["sh", "-c", REPORT]},
    }
)
POLICY: Final = PolicySettings.model_validate(
    {"paths": [{"path": "work_test.py", "effect": "ask"}]}
)
"""The result waits for an approval, so that a later run continues without the agent."""
TAG: Final = "v1"
AGENT_CODE: Final = """
import signal
from pathlib import Path
here = Path(start["workspace"])
notes = Path(os.environ["HOME"], "notes")
told = []
next_line = hear
def hear():
    while (reply := next_line())["type"] == "message":
        told.append(reply)
    return reply
def tell(type, **fields):
    say(type, id=type, **fields)
    return hear()
tell("listen")
tell("activity", kind="message", text="I begin")
say("log", text="hello")
say("nonsense")
hear()
if "told" not in start["steps"]:
    tell("event", kind="listens")
    while not told:
        told.append(parked(next_line()))
    tell("step", key="told", state="done")
if "effect" not in start["steps"] or start["steps"]["effect"]["state"] == "pending":
    tell("step", key="effect", state="pending", invocation_id="once")
    (here / "work.txt").write_text(f"of run {start['run']}\\n")
    (here / "new.bin").write_bytes(b"new content of LFS" * 100)
    notes.write_text("kept")
    tell("checkpoint", data={"run": start["run"]}, home=["notes"])
    tell("step", key="effect", state="done", result=start["run"])
tell("artifact", path="work.txt")
tell("usage", input_tokens=1)
parked(ask("pick", choices=["yes", "no"], grace=0.5))
say("approve", id="gate", key="gate", text="Really?")
if hear()["type"] == "park":
    signal.pause()  # deaf: it has to be ended
if "failed" not in start["steps"]:
    tell("error", message="busy", **{"class": "TRANSIENT_APP"})
    tell("step", key="failed", state="done")  # only once it was heard
    sys.exit(0)
(here / "last.txt").write_text(f"of run {start['run']}\\n")
(here / "work_test.py").write_text("1\\n")
data = {"notes": notes.read_text(), "pr_url": "https://git.example/acme/pay/pull/7"}
tell("result", summary="done", data=data)
"""
"""It sends every message once, and writes other content in each run, as most agents do."""


def make_full_repository(folder: Path, name: str) -> Path:
    """Make a repository with Git LFS, submodules, a converted file and a tag."""
    library = make_repository(folder / "library", of_library="1\n")
    repo = make_repository(folder / name, crlf="one\r\n")
    os.utime(repo / "crlf.txt", (1, 1))  # so that git knows it as unchanged
    add_lfs_files(repo)
    with (repo / ".gitattributes").open("a") as file:
        file.write("crlf.txt text\n")
    git("add", ".gitattributes", cwd=repo)
    add_submodule(repo, "libs/one", "../library", git("rev-parse", "HEAD", cwd=library))
    add_submodule(repo, "gone", "../gone", "1" * 40)
    git("tag", "--annotate", TAG, "--message", TAG, cwd=repo)
    return repo


async def drive_agent(campaign: Campaign, folder: Path) -> None:
    """Run an agent on a repository through faults."""
    rt = campaign.rt
    name = f"repo{folder.name}"
    repo = make_full_repository(folder, name)
    command = ["{python}", "-I", "-S", "-c", PRELUDE + AGENT_CODE, AGENT]
    campaign.settings["agents"] = {"test": {"command": command}}
    profile = VALIDATED.model_copy(update={"evidence": EVIDENCE, "policy": POLICY})
    known = await rt.repos.add(Repo.at(parse(str(repo))), profile, OWNER)
    await rt.repos.map(RepoLocation(known), OWNER, label=name)
    request = invocation(
        type="run_agent",
        agent="test",
        labels=[("L1", name)],
        ref=TAG,
        attachments=[{"reference": {"id": "a"}, "name": "a.md"}],
        max_attempts=100,
        max_retries=100,
    )
    anna = rt.policy.resolve(Actor("slack", "U-ANNA", "Anna"))
    number = (await rt.submissions.submit(request, anna)).number
    [attached] = await rt.attachments.claim("slack")
    assert await rt.attachments.store(attached, b"use the v2 API") == "stored"
    await leave_clones(campaign, number)
    async with people_answer(rt):
        await campaign.work(lambda: all_ended(rt))
    job = await rt.read_model.job(number)
    assert job.status is Status.COMPLETED, job.last_error
    await waited_for_the_database(rt, number)
    result = job.result or {}
    steps = {step.key: step for step in await rt.checkpoints.steps(number)}
    assert steps["effect"].invocation_id == "once"
    assert result["data"]["notes"] == "kept"
    assert (job.agent_request.repo_name, result["validated"]) == (name, True)
    published = git("rev-parse", f"draftsman/D-{number}", cwd=repo)
    assert published == result["commit"]
    text = git("show", f"draftsman/D-{number}:work.txt", cwd=repo)
    assert text == f"of run {steps['effect'].result}"
    questions, answers = await rt.questions.of_job(number)
    keys = [question.key for question in questions]
    # work that the agent changes for a later message is approved again
    assert (keys[0], set(keys[1:])) == ("pick", {"gate", POLICY_KEY})
    accepted = [answer.question for answer in answers if answer.accepted]
    assert accepted == [question.ordinal for question in questions]
    messages = await rt.messages.of_job(number)
    assert messages
    assert [item for item in messages if item.delivered_at is None] == []
    await campaign.work(lambda: all_ended(rt))  # it removes the files of the last killed worker
    runs = Path(campaign.settings["data_dir"], "runs")
    assert list(runs.iterdir()) == [], "clones remain"
