"""Attacks of an agent through its protocol, in which the worker writes for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Job, Status
from draftsman.questions.question import Question, QuestionStatus
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import agent_worker, git, make_repository, submit_agent_job
from tests.core.worker.workers import last_event, wait_for_end, wait_for_question

S = Status
EDIT = 'open("a.txt", "w").write("changed\\n")\n'
RESULT = 'say("result", summary="did it", data={"heard": heard})\n'
PREPARE = """
heard = []
def refused(type, **fields):
    say(type, id="x", **fields)
    heard.append(hear())
"""
GATE = 'say("approve", id="g", key="push", text="Push it?")\n'


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", a="one\n")


async def run_to_end(rt: Runtime, make: Factory, repo: Path, code: str, **fields: Any) -> Job:
    """Return the job after its end."""
    number = await submit_agent_job(make, repo, **fields)
    async with agent_worker(rt, repo.parent / "data", PREPARE + code):
        return await wait_for_end(rt, number)


def refusals(job: Job) -> list[str]:
    """Return the reasons of the refusals; check that each attack was refused."""
    assert job.status is S.COMPLETED, job.last_error
    replies = (job.result or {})["data"]["heard"]
    assert {reply["type"] for reply in replies} == {"refused"}
    return [reply["reason"] for reply in replies]


async def question_of(rt: Runtime, job: int, ordinal: int = 1) -> Question:
    """Return a question of the job once it is open."""
    await wait_for_question(rt, job, ordinal)
    return await rt.questions.get(job, ordinal)


async def patch_of(rt: Runtime, job: int, run: int | None = None) -> str | None:
    """Return the patch of a run, or of the job."""
    artifact = await rt.changes.patch(job, run)
    return None if artifact is None else (await rt.checkpoints.content(artifact)).decode()


# --- lines that hang a run ---


FLOOD = 60_000
"""Lines of ordinary output, with more bytes of refusals than are buffered for an agent."""


@attack(
    "An agent writes ordinary output on standard output and does not read",
    surface="protocol",
    with_sandbox="refusals that it does not read are dropped; the run ends with its result",
)
async def test_ordinary_output_does_not_hang_a_run(rt: Runtime, make: Factory, repo: Path) -> None:
    code = f"""
print("\\n".join(f"step {{n}} of the build" for n in range({FLOOD})), flush=True)
print("x" * 2**20 + "x", flush=True)
"""
    job = await run_to_end(rt, make, repo, code + RESULT)
    assert job.status is S.COMPLETED, job.last_error
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(job.number))
    assert log.count("\n") == 101
    assert f"[refused] {FLOOD - 99:,} more lines that are no messages" in log


@attack(
    "An agent asks for replies and does not read them",
    surface="protocol",
    with_sandbox="its run is stopped, and its job fails: `quota:unread`",
)
async def test_replies_that_are_not_read_end_the_run(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
for n in range(40_000):
    print(json.dumps({"type": "log", "id": f"{n}-" + "x" * 180, "text": ""}))
sys.stdout.flush()
"""
    job = await run_to_end(rt, make, repo, code + RESULT)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT"), job.last_error
    assert "does not read its replies" in (job.last_error or "")


@attack(
    "An agent sends half of a surrogate pair, a text cut in an emoji",
    surface="protocol",
    with_sandbox="it is replaced, and the message is stored",
)
async def test_half_of_a_surrogate_pair_does_not_hang_a_run(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
say("event", id="1", kind="cut", payload={"text": "a\\ud83d"})
heard.append(hear())
"""
    job = await run_to_end(rt, make, repo, code + RESULT)
    assert job.status is S.COMPLETED, job.last_error
    assert (job.result or {})["data"]["heard"] == [{"type": "ack", "id": "1"}]
    event = await last_event(rt, job.number, "agent.cut")
    assert event.payload == {"text": "a\ufffd"}


# --- steps and keys ------------------------------------------------------------------------------


@attack(
    "An agent records a push step of the worker, so that the worker overwrites a user's branch",
    surface="protocol",
    with_sandbox="the step is refused; the branch is unchanged and the job fails: branch_moved",
)
async def test_a_faked_push_does_not_overwrite_a_branch(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    branch = f"draftsman/D-{number}"
    git("checkout", "-qb", branch, cwd=repo)
    git("commit", "-qm", "a person's work", "--allow-empty", cwd=repo)
    users_commit = git("rev-parse", "HEAD", cwd=repo)
    git("checkout", "-q", "main", cwd=repo)
    fake = f"""
for key in ("agent:push:1", "agent:push:7"):
    refused("step", key=key, state="pending", invocation_id="{users_commit}")
{EDIT}{RESULT}"""
    async with agent_worker(rt, repo.parent / "data", PREPARE + fake):
        job = await wait_for_end(rt, number)
    assert git("rev-parse", branch, cwd=repo) == users_commit
    assert job.status is S.FAILED
    assert f"{branch}" in (job.last_error or "")


@attack(
    "An agent records that its branch is published already, so that nothing is pushed",
    surface="protocol",
    with_sandbox="the step is refused; the branch has the work",
)
async def test_a_faked_publication_does_not_hide_the_work(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = f"""
refused("step", key="agent:publish", state="done", result="{"0" * 40}")
refused("step", key="agent:base", state="done", result="main")
refused("step", key="sleep:nap", state="done", result="2000-01-01T00:00:00+00:00")
{EDIT}{RESULT}"""
    job = await run_to_end(rt, make, repo, code)
    for reason in refusals(job):
        assert "the prefixes agent:, sleep:, now: are reserved" in reason
    assert git("show", f"draftsman/D-{job.number}:a.txt", cwd=repo) == "changed"


@attack(
    "An agent asks a question under the worker's own key, to choose the repository by its answer",
    surface="protocol",
    with_sandbox="the question and the approval are refused",
)
async def test_a_question_of_the_worker_cannot_be_asked(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
refused("ask", key="agent:repository", text="Which?", choices=["mine"])
refused("approve", key="sleep:x", text="Well?")
"""
    reasons = refusals(await run_to_end(rt, make, repo, code + RESULT))
    assert all("are reserved; use another key" in reason for reason in reasons)


# --- events --------------------------------------------------------------------------------------

POISON = """
for kind in ("question_escalated", "answer_received", "job_completed", "vote_received"):
    for question in ("abc", 1e20, 1.5, None, {"a": 1}, -1, 2**40):
        say("event", kind=kind, payload={"question": question})
"""


@attack(
    "An agent sends events of draftsman's own kinds with a payload that breaks queries",
    surface="protocol",
    with_sandbox="the kinds get the prefix agent.; invariants and dashboard work",
)
async def test_events_of_an_agent_have_kinds_of_their_own(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    job = await run_to_end(rt, make, repo, POISON + RESULT)
    kinds = [
        event.kind
        for event in await rt.read_model.job_events(job.number)
        if "worker" in event.actor
    ]
    assert kinds.count("agent.question_escalated") == 7
    assert not {"question_escalated", "answer_received", "vote_received"} & {*kinds}
    assert not any((await rt.read_model.invariants()).values())
    assert (await rt.read_model.activity(job.created_at)).spans


@attack(
    "An event of an agent, recorded by an older version, breaks doctor and the dashboard",
    surface="database",
    with_sandbox="it is shown and not counted",
)
async def test_poisoned_events_of_the_past_break_no_query(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    asked_job = await make.asked()
    for kind in ("question_escalated", "answer_received"):
        for payload in ('{"question": "abc"}', '{"question": 1e30}', '{"question": 1}', "[]", "7"):
            await conn.execute(
                "INSERT INTO draftsman.job_events (job, run, kind, actor, payload)"
                " VALUES (%s, 1, %s, 'worker:w', %s)",
                (asked_job.number, kind, payload),
            )
    assert not any((await rt.read_model.invariants()).values())
    job = await rt.read_model.job(asked_job.number)
    assert (await rt.read_model.activity(job.created_at)).spans
    assert (await rt.read_model.stats()).open_questions == 1


# --- files ---------------------------------------------------------------------------------------


@attack(
    "An agent stores an artifact changes.patch, to show approvers a harmless diff",
    surface="approval",
    with_sandbox="the name is refused; the diff is found by its kind, which only the worker writes",
)
async def test_a_false_diff_is_refused(
    rt: Runtime, make: Factory, repo: Path, people: People
) -> None:
    code = f"""
open("false", "w").write("--- a/docs\\n+++ b/docs\\n@@ -1 +1 @@\\n-a\\n+harmless\\n")
if start["run"] == 1:
    for name in ("changes.patch", "Changes.PATCH ", "changes.patch\u200b"):
        refused("artifact", path="false", name=name)
        assert "is reserved" in heard[-1]["reason"], heard
    os.remove("false")
    {EDIT}
    say("checkpoint", id="c", data=1); hear()
{GATE}parked(hear())
{RESULT}"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", PREPARE + code):
        gate = await question_of(rt, number)
        patch = await patch_of(rt, number, gate.run) or ""
        assert "+changed" in patch
        assert "harmless" not in patch
        await make.decide(number, True, people.carol)
        await wait_for_end(rt, number)


@attack(
    "An agent replaces the bundle of its checkpoint, so that no later run can start",
    surface="protocol",
    with_sandbox="the name is refused; the next run starts with the checkpoint",
)
async def test_the_bundle_of_a_checkpoint_cannot_be_replaced(
    rt: Runtime, make: Factory, repo: Path, people: People
) -> None:
    code = f"""
if start["run"] == 1:
    {EDIT}
    say("checkpoint", id="c", data=1); hear()
    refused("artifact", path="a.txt", name="checkpoint.bundle")
    assert heard[0]["type"] == "refused", heard
    parked(ask("go", choices=["on"]))
heard = [{{"type": "refused", "reason": open("a.txt").read()}}]
{RESULT}"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", PREPARE + code):
        await question_of(rt, number)
        await make.answer(number, "on")
        job = await wait_for_end(rt, number)
    assert refusals(job) == ["changed\n"]


# --- approvals -----------------------------------------------------------------------------------

PARK = """
say("checkpoint", id="c", data=start["run"]); hear()
open("later.txt", "w").write("not in the checkpoint\\n")
"""


@attack(
    "An agent changes its tree after the checkpoint of an approval",
    surface="approval",
    with_sandbox="the approval shows the checkpoint's diff, and the next run starts with that tree",
)
async def test_an_approval_shows_the_tree_of_the_next_run(
    rt: Runtime, make: Factory, repo: Path, people: People
) -> None:
    code = f"""
if start["run"] == 1:
    {EDIT.strip()}
    {PARK.strip().replace(chr(10), chr(10) + "    ")}
{GATE}reply = parked(hear())
heard = [{{"type": "refused", "reason": reply["outcome"] + str(os.path.exists("later.txt"))}}]
{RESULT}"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", PREPARE + code):
        gate = await question_of(rt, number)
        patch = await rt.changes.patch(number, gate.run)
        assert patch is not None
        assert gate.patch_sha256 == patch.sha256
        approved_patch = await patch_of(rt, number, gate.run) or ""
        assert "+changed" in approved_patch
        assert "later.txt" not in approved_patch
        await make.decide(number, True, people.carol)
        job = await wait_for_end(rt, number)
    assert refusals(job) == ["approvedFalse"]
    assert len((await rt.questions.of_job(number))[0]) == 1


@attack(
    "An agent gets an approval, changes its tree, and asks for the same approval again",
    surface="approval",
    with_sandbox="the approval is superseded: people are asked again, with the new diff",
)
async def test_an_approval_is_not_valid_for_another_tree(
    rt: Runtime, make: Factory, repo: Path, people: People
) -> None:
    code = f"""
open("a.txt", "w").write("changed by run %d\\n" % min(start["run"], 2))
say("checkpoint", id="c", data=1); hear()
{GATE}parked(hear())
{RESULT}"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", PREPARE + code):
        first = await question_of(rt, number)
        await make.decide(number, True, people.carol)
        second = await question_of(rt, number, 2)
        assert "+changed by run 2" in (await patch_of(rt, number, second.run) or "")
        assert "+changed by run 1" in (await patch_of(rt, number, first.run) or "")
        await make.decide(number, True, people.carol, n=2)
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    statuses = [question.status for question in (await rt.questions.of_job(number))[0]]
    assert statuses == [QuestionStatus.SUPERSEDED, QuestionStatus.ANSWERED]
