"""Messages of an agent and their replies: stored and acknowledged, or refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.session import agent_session
from draftsman.jobs.job import Job, Status
from draftsman.questions.question import Decision
from draftsman.runtime import Runtime
from draftsman.sandbox.processes import guard
from draftsman.worker import leader
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.worker.agent_jobs import (
    agent_worker,
    make_repository,
    running_with,
    submit_agent_job,
)
from tests.core.worker.workers import (
    last_event,
    run_of,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)

S = Status


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


@pytest.fixture(autouse=True)
def _quick_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "TICK", 0.1)


async def messages_of(rt: Runtime, make: Factory, repo: Path, code: str) -> tuple[Job, list[Any]]:
    """Run an agent; return its job, and the replies in its variable `heard`."""
    number = await submit_agent_job(make, repo)
    end = '\nsay("result", summary="", data={"heard": heard})'
    async with agent_worker(rt, repo.parent / "data", f"heard = []\n{code}{end}"):
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    return job, (job.result or {})["data"]["heard"]


async def log_of(rt: Runtime, number: int) -> str:
    return "".join(chunk.text for chunk in await rt.checkpoints.logs(number))


# --- refusals --------------------------------------------------------------------------

UNREADABLE: tuple[tuple[str, str | None, str], ...] = (
    ("'not json'", None, "invalid JSON: expected ident at line 1 column 2"),
    ("'[1]'", None, "must be an object"),
    ('\'{"id": "7"}\'', "7", "type is required; known types: ask, approve, checkpoint"),
    ("json.dumps({'type': 'dance', 'id': '7'})", "7", "unknown type 'dance'; known types: ask"),
    ("json.dumps({'type': 'ask', 'id': '7'})", "7", "ask.key: is required"),
    (
        "json.dumps({'type': 'ask', 'id': '7', 'key': 'k', 'text': 't', 'freeform': False})",
        "7",
        "a question needs choices",
    ),
    ("json.dumps({'type': 'event', 'id': '7', 'kind': 'No kind'})", "7", "event.kind: must match"),
    (
        "'x' * (2**20 + 1)",
        None,
        "line of 1,048,577 bytes is too long; the limit is 1,048,576 bytes",
    ),
    ("'\\xff\\x00'", None, "invalid JSON"),
)
"""Lines of an agent as expressions, and the ID and the reason of each refusal."""


async def test_lines_that_cannot_be_read_are_refused_logged_and_not_fatal(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = f"""
for line in [{", ".join(line for line, _, _ in UNREADABLE)}]:
    sys.stdout.buffer.write(line.encode("latin-1") + b"\\n")
    sys.stdout.flush()
    heard.append(hear())
"""
    job, replies = await messages_of(rt, make, repo, code)
    for reply, (line, id, reason) in zip(replies, UNREADABLE, strict=True):
        assert (reply["type"], reply["id"]) == ("refused", id), line
        assert reason in reply["reason"], line
    log = "".join(f"[refused] {reply['reason']}\n" for reply in replies)
    assert await log_of(rt, job.number) == log


UNSTORABLE = (
    ("'artifact', path='../../etc/passwd'", "is outside the workspace and $HOME"),
    ("'artifact', path='no-such-file'", "No such file or directory"),
    ("'artifact', path='.', name='x'", "Is a directory"),
    ("'checkpoint', data='x' * 2**20", "is too long; the limit is 1,048,576 bytes"),
    ("'checkpoint', data='x' * (2**20 - 60)", "a checkpoint has 1,0"),
    ("'checkpoint', data=10**31", "a number is too large"),
    ("'step', key='k', state='done', result=1e31", "a number is too large"),
)
"""Messages of an agent, and the reason of each refusal."""


async def test_messages_that_cannot_be_stored_are_refused_logged_and_not_fatal(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = "".join(
        f"say({message}, id='{n}'); heard.append(hear())\n"
        for n, (message, _) in enumerate(UNSTORABLE)
    )
    job, replies = await messages_of(rt, make, repo, code)
    log = await log_of(rt, job.number)
    for reply, (message, reason) in zip(replies, UNSTORABLE, strict=True):
        assert reply["type"] == "refused", message
        assert reason in reply["reason"], message
        assert reply["reason"] in log, message
        assert reply["class"] == "PERMANENT", message


async def test_refusal_of_a_checkpoint_that_could_not_be_read_is_transient(
    rt: Runtime, make: Factory, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FREEZE_LIMIT", 0)  # the worker does not wait for the guard's reply
    code = "say('checkpoint', data=1, id='1'); heard.append(hear())"
    _, [reply] = await messages_of(rt, make, repo, code)
    assert (reply["type"], reply["class"]) == ("refused", "TRANSIENT_APP")


# --- stored messages -----------------------------------------------------------------------------


async def test_only_a_message_with_an_id_is_acknowledged(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
say("event", kind="quiet")
say("log", text="quiet")
say("event", id="1", kind="seen", payload={"n": 1})
say("log", id="2", text="seen")
say("usage", id="3", input_tokens=1)
for _ in range(3):
    heard.append(hear())
"""
    _, replies = await messages_of(rt, make, repo, code)
    assert replies == [{"type": "ack", "id": id} for id in ("1", "2", "3")]


async def test_events_logs_files_and_usage_are_stored_with_the_run(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
say("event", kind="validation_ran", payload={"name": "lint", "passed": True})
say("event", kind="too_much", payload={"text": "x" * 20000})
print("on standard error: \\u00e9", file=sys.stderr, flush=True)
open("out.bin", "wb").write(bytes(range(256)))
os.makedirs("docs"); open("docs/report.md", "w").write("# fine")
open(os.path.join(os.environ["HOME"], "aside"), "w").write("not part of the patch")
say("artifact", id="a", path="out.bin"); hear()
say("artifact", id="b", path="docs/report.md", name="summary.md"); hear()
say("artifact", id="c", path=os.path.join(os.environ["HOME"], "aside")); hear()
os.remove("out.bin"); os.remove("docs/report.md")
say("usage", input_tokens=10, output_tokens=1, cost_usd=0.5, model="small")
say("usage", input_tokens=5, cost_usd=0.25, model="large")
say("log", id="d", text="by message"); hear()
"""
    job, _ = await messages_of(rt, make, repo, code)
    ran = await last_event(rt, job.number, "agent.validation_ran")
    assert (ran.payload, ran.run) == ({"name": "lint", "passed": True}, 1)
    assert (await last_event(rt, job.number, "agent.too_much")).payload["truncated"] is True
    assert sorted((await log_of(rt, job.number)).splitlines()) == [
        "by message",
        "on standard error: \u00e9",
    ]
    kinds = {item.name: item.kind for item in await rt.checkpoints.artifacts(job.number)}
    assert kinds == {"out.bin": "file", "summary.md": "report", "aside": "file"}
    _, data = await rt.checkpoints.read_artifact(job.number, "out.bin")
    assert data == bytes(range(256))
    assert (await run_of(rt, job.number)).usage == {
        "input_tokens": 15,
        "output_tokens": 1,
        "cost_usd": 0.75,
        "models": ["large", "small"],
    }
    assert (job.result or {})["files_changed"] == 0


async def test_standard_error_of_an_agent_is_logged_completely(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    """The agent has to wait when it writes faster than the log is stored."""
    code = """
for n in range(30_000):
    print(f"{n:049}", file=sys.stderr)
print("\u20ac" * 50_000, file=sys.stderr)
"""
    job, _ = await messages_of(rt, make, repo, code)
    lines = "".join(
        [chunk.text for chunk in await rt.checkpoints.logs(job.number, limit=1000)]
    ).splitlines()
    assert lines[:-1] == [f"{n:049}" for n in range(30_000)]
    assert lines[-1] == "\u20ac" * 50_000


async def test_a_later_run_starts_with_the_steps_of_earlier_runs(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
if start["run"] == 1:
    say("step", id="1", key="pay", state="pending", invocation_id="inv-1"); hear()
    say("step", id="2", key="pay", state="done", result={"paid": 3}); hear()
    say("step", id="3", key="post", state="pending", invocation_id="inv-2"); hear()
    say("step", id="4", key="free", state="done", result="no pending before it"); hear()
parked(ask("go"))
say("result", summary="", data=start["steps"])
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        steps = ((await wait_for_end(rt, number)).result or {})["data"]
    assert steps["pay"] == {"state": "done", "invocation_id": "inv-1", "result": {"paid": 3}}
    assert steps["post"] == {"state": "pending", "invocation_id": "inv-2", "result": None}
    assert (steps["free"]["state"], steps["free"]["result"]) == ("done", "no pending before it")
    assert steps.keys() == {"pay", "post", "free"}


# --- questions -----------------------------------------------------------------------------------


async def test_an_agent_that_ignores_the_park_is_killed_and_its_question_is_asked(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_session, "PARK_TIMEOUT", 0.05)
    monkeypatch.setattr(agent_session, "TERMINATE_TIMEOUT", 0.05)
    mark = f"mark = {str(tmp_path)!r}"
    code = f"""
import signal, time
{mark}
def term(*_):
    print("SIGTERM came", file=sys.stderr, flush=True)
signal.signal(signal.SIGTERM, term)
if start["run"] == 1:
    assert ask("go")["type"] == "park"
    while True: time.sleep(60)
say("result", summary=start["answers"]["go"]["value"])
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_question(rt, number)
        assert running_with(mark) == []
        assert "SIGTERM came" in await log_of(rt, number)
        await make.answer(number, "blue")
        job = await wait_for_end(rt, number)
    assert ((job.result or {})["summary"], job.attempts) == ("blue", 0)


async def test_a_parked_agent_can_save_its_work(rt: Runtime, make: Factory, repo: Path) -> None:
    code = """
if start["run"] == 1:
    open("half.txt", "w").write("half")
    assert ask("go")["type"] == "park"
    say("checkpoint", id="c", data=1); assert hear()["type"] == "ack"
    sys.exit(0)
say("result", summary="", data={"at": start["checkpoint"], "half": open("half.txt").read()})
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
    assert (job.result or {})["data"] == {"at": 1, "half": "half"}


async def test_two_questions_in_a_row_are_asked_at_once(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
say("ask", id="1", key="one", text="One?", choices=["a", "b"])
say("ask", id="2", key="two", text="Two?", choices=["c", "d"])
replies = [hear(), hear()]
if "park" in [reply["type"] for reply in replies]:
    sys.exit(0)
say("result", summary=" ".join(reply["value"] for reply in replies))
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "c", n=2)
        await make.answer(number, "b")
        job = await wait_for_end(rt, number)
    assert ((job.result or {})["summary"], job.run_count) == ("b c", 2)


async def test_the_same_key_with_another_text_is_a_new_question(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
text = "Delete 1 file?" if start["run"] == 1 else "Delete 100 files?"
say("result", summary=parked(ask("sure", text))["value"])
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_question(rt, number, 1)
        await make.answer(number, "red")
        await wait_for_question(rt, number, 2)
        await make.answer(number, "blue", n=2)
        assert ((await wait_for_end(rt, number)).result or {})["summary"] == "blue"


async def test_free_text_and_a_question_that_never_expires_are_passed_on_unchanged(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
reply = parked(ask("note", "What now?\\nSay it.", context="a\\tb", expires_in=0))
say("result", summary=reply["text"])
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_question(rt, number)
        [question] = await rt.questions.open(number)
        assert (question.text, question.context_snippet) == ("What now?\nSay it.", "a\tb")
        assert question.freeform_allowed
        assert question.expires_at is None
        await make.answer(number, 'say "\u00e9"')
        assert ((await wait_for_end(rt, number)).result or {})["summary"] == 'say "\u00e9"'


async def test_an_expired_question_follows_its_rule(rt: Runtime, make: Factory, repo: Path) -> None:
    code = """
late = {"choices": ["red", "blue"], "expires_in": 0.00001}
answered = parked(ask("answered", default="blue", **late))
expired = parked(ask("expired", on_expire="continue", **late))
say("result", summary="", data={"replies": [answered, expired]})
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code, leader=True):
        replies = ((await wait_for_end(rt, number)).result or {})["data"]["replies"]
    assert [(reply["outcome"], reply["value"], reply["by"]) for reply in replies] == [
        ("answered", "blue", []),
        ("expired", None, []),
    ]


async def test_an_escalation_needs_a_known_target(rt: Runtime, make: Factory, repo: Path) -> None:
    number = await submit_agent_job(make, repo)
    code = """
late = {"choices": ["a"], "on_expire": "escalate", "expires_in": 60}
refused = ask("color", **late)
assert refused["type"] == "refused", refused
assert "has no escalation target" in refused["reason"], refused
parked(ask("color", escalate_to="leads", **late))
"""
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_question(rt, number)
    [question] = await rt.questions.open(number)
    assert (str(question.on_expire), question.escalate_to) == ("escalate", "leads")


GATE = """
def approve(key, on_deny):
    gate = {"text": f"Deploy {key}?", "action": {"to": key}, "on_deny": on_deny}
    say("approve", id=key, key=key, **gate)
    return parked(hear())
"""


async def test_an_approval_gives_the_agent_the_decision(
    rt: Runtime, make: Factory, people: People, repo: Path
) -> None:
    code = """
replies = [approve(key, "continue") for key in ("test", "live")]
say("result", summary="", data={"replies": replies})
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", GATE + code):
        for n, yes in enumerate((True, False), 1):
            await wait_for_question(rt, number, n)
            await make.decide(number, yes, people.carol, n=n, reason=f"because {yes}")
        replies = ((await wait_for_end(rt, number)).result or {})["data"]["replies"]
    assert [(reply["outcome"], reply["reason"], reply["by"]) for reply in replies] == [
        ("approved", "because True", ["carol"]),
        ("denied", "because False", ["carol"]),
    ]


async def test_an_approval_that_takes_changes_gives_the_agent_what_to_change(
    rt: Runtime, make: Factory, people: People, repo: Path
) -> None:
    """The agent changes its work and asks again: the first answer is about other work."""
    code = """
told = start["answers"].get("live") or {}
if told.get("outcome") != "approved":
    open("a.txt", "w").write(repr(told.get("comments")) + told.get("reason", "first"))
say("checkpoint", data=None)
say("approve", id="live", key="live", text="Deploy?", on_changes="continue")
reply = parked(hear())
say("result", summary=open("a.txt").read(), data={"outcome": reply["outcome"]})
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", GATE + code):
        await wait_for_question(rt, number)
        comments = [{"path": "a.txt", "line": 1, "text": "why?"}]
        asks: dict[str, Any] = {"reason": "write more", "comments": comments}
        await make.review(number, Decision.REQUEST_CHANGES, people.carol, **asks)
        await wait_for_question(rt, number, 2)
        await make.decide(number, True, people.carol, n=2)
        result = (await wait_for_end(rt, number)).result or {}
    assert result["data"]["outcome"] == "approved"
    assert result["summary"] == f"{comments}write more"
    assert await rt.messages.of_job(number) == [], "it is the answer to the agent's own question"
    questions, _ = await rt.questions.of_job(number)
    assert [item.outcome for item in questions] == ["superseded", "approved"]


async def test_a_denied_approval_ends_the_job_with_on_deny_fail(
    rt: Runtime, make: Factory, people: People, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", GATE + 'approve("live", "fail")'):
        await wait_for_status(rt, number, S.WAITING_FOR_APPROVAL)
        await make.decide(number, False, people.carol)
        job = await wait_for_end(rt, number)
    assert (job.status, job.run_count) == (S.FAILED, 1)
