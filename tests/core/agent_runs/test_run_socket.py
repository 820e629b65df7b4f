"""The socket of a run: questions, notes and progress of programs below the agent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.session import agent_session, run_socket
from draftsman.database.database import Connection
from draftsman.jobs.job import Job, Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.questions.review_comment import ReviewComment
from draftsman.runtime import Runtime
from draftsman.settings.sandbox import SandboxSettings
from draftsman.worker import leader
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import agent_worker, make_repository, submit_agent_job
from tests.core.worker.workers import wait_for_end, wait_for_question
from tests.support import permissions
from tests.support.slow import slow_except
from tests.support.statements import rows

S = Status
PROGRAM = """
import json as j, socket, subprocess
def connect():
    connection = socket.socket(socket.AF_UNIX)
    folder = os.open(os.path.dirname(os.environ["DRAFTSMAN_SOCKET"]), os.O_PATH)
    connection.connect(f"/proc/self/fd/{folder}/run.sock")
    return connection
def program(line):
    connection = connect()
    line = line if isinstance(line, bytes) else j.dumps(line).encode()
    try:
        connection.sendall(line + b"\\n")
    except BrokenPipeError:
        pass
    return j.loads(connection.makefile().readline() or '"closed"')
def command(*words):
    done = subprocess.run(["draftsman", *words], capture_output=True, text=True)
    return [done.returncode, done.stdout, done.stderr]
"""
END = '\nsay("result", summary="", data={"heard": heard})'


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


@pytest.fixture(autouse=True)
def _quick_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "TICK", 0.1)


async def finished(
    rt: Runtime, make: Factory, repo: Path, code: str, *responses: Response, **settings: Any
) -> tuple[Job, list[Any]]:
    """Run an agent, and answer its questions; return its job and its variable `heard`."""
    number = await submit_agent_job(make, repo)
    text = f"{PROGRAM}heard = []\n{code}{END}"
    async with agent_worker(rt, repo.parent / "data", text, **settings):
        for ordinal, response in enumerate(responses, 1):
            await wait_for_question(rt, number, ordinal)
            person = Actor(Source.CLI, "root", "root", owner=True)
            assert (await rt.questions.answer(number, ordinal, response, person)).accepted
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    return job, (job.result or {})["data"]["heard"]


def text(value: str) -> Response:
    return Response(source_event_id=f"test:{value}", text=value)


ASK = "heard.append(command('ask', 'Deploy?', '--choice', 'yes', '--choice', 'no'))\n"
WAIT = "open('/dev/null').close() if heard[-1][0] == 0 else hear() and sys.exit(0)\n"
"""An agent waits for `park` if the command has no answer."""


@pytest.mark.parametrize("mode", slow_except(["bwrap"], ["bwrap", "landlock", "off"]))
async def test_the_command_parks_the_run_and_prints_the_answer_in_the_next(
    rt: Runtime, make: Factory, repo: Path, mode: Any
) -> None:
    code = "say('log', text=str(command('ask', 'Deploy?', '--choice', 'yes', '--choice', 'no')))\n"
    code += ASK + WAIT
    settings = rt.settings.model_copy(update={"sandbox": SandboxSettings(mode=mode)})
    rt = replace(rt, settings=settings)
    job, heard = await finished(rt, make, repo, code, text("yes"))
    assert heard == [[0, "yes\n", ""]]
    assert job.run_count == 2
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(job.number))
    assert "[5, '', 'draftsman: no answer yet; the question stays open" in log
    (question,), _ = await rt.questions.of_job(job.number)
    assert (question.text, [choice["value"] for choice in question.choices]) == (
        "Deploy?",
        ["yes", "no"],
    )


BOTH = """
import threading
def both(*options):
    ended = {}
    def ask(key):
        words = "ask", key + "?", "--choice", "yes", "--choice", "no", "--key", key
        ended[key] = command(*words, *options)
    threads = [threading.Thread(target=ask, args=(key,)) for key in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [ended[key] for key in ("one", "two")]
"""


async def test_questions_of_two_programs_are_open_together(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    code = f"{PROGRAM}{BOTH}heard = both()\nif heard[0][0] == 5:\n    hear() and sys.exit(0)\n{END}"
    async with agent_worker(rt, repo.parent / "data", code):
        await until(partial(_both_open, rt, number), "both questions")
        asked = {item.key: item.ordinal for item in await rt.questions.open(number)}
        await make.answer(number, "yes", n=asked["one"])
        await make.answer(number, "no", n=asked["two"])
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    assert (job.result or {})["data"]["heard"] == [[0, "yes\n", ""], [0, "no\n", ""]]
    assert job.run_count == 2


BUSY = 3.0
"""Seconds within which two programs that start together ask, on a busy machine."""


async def _both_open(rt: Runtime, number: int) -> bool:
    return sorted(item.key for item in await rt.questions.open(number)) == ["one", "two"]


@pytest.mark.parametrize("grace", slow_except([60], [60, 0.05]))
async def test_two_programs_that_wait_get_both_answers(
    rt: Runtime, make: Factory, repo: Path, monkeypatch: pytest.MonkeyPatch, grace: float
) -> None:
    monkeypatch.setattr(agent_session, "PROGRAMS_WINDOW", BUSY)
    number = await submit_agent_job(make, repo)
    code = f"{PROGRAM}{BOTH}heard = both('--wait', '5m') + [os.getpid()]\n"
    code += f"if heard[0][0] == 5:\n    hear() and sys.exit(0)\n{END}"
    async with agent_worker(rt, repo.parent / "data", code, ask_grace=grace):
        await until(partial(_both_open, rt, number), "both questions")
        await make.answer(number, "yes", n=1)
        await make.answer(number, "yes", n=2)
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    assert (job.result or {})["data"]["heard"][:2] == [[0, "yes\n", ""]] * 2
    assert job.run_count == 2


async def test_of_two_programs_with_a_key_for_two_questions_the_second_is_refused(
    rt: Runtime, make: Factory, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_session, "PROGRAMS_WINDOW", BUSY)
    number = await submit_agent_job(make, repo)
    code = f"{PROGRAM}{BOTH}heard = sorted(both('--wait', '5m', '--key', 'same'))\n{END}"
    async with agent_worker(rt, repo.parent / "data", code, ask_grace=60):
        await wait_for_question(rt, number)
        await make.answer(number, "yes")
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    (code_0, answer, _), (code_1, _, error) = (job.result or {})["data"]["heard"]
    assert (code_0, answer) == (0, "yes\n")
    assert code_1 not in (0, 5)
    assert "question 'same' is asked twice at once, with another text" in error


async def test_an_approval_has_an_exit_code_for_each_decision(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
for name in ("one", "two"):
    heard.append(command("approve-action", "Push?", "--key", name, "--action", '{"push": "x"}'))
    if heard[-1][0] == 5:
        hear() and sys.exit(0)
"""
    allow = Response(source_event_id="1", decision=Decision.APPROVE)
    deny = Response(source_event_id="2", decision=Decision.DENY, reason="not on a Friday")
    job, heard = await finished(rt, make, repo, code, allow, deny)
    assert [(code, out) for code, out, _ in heard] == [(0, ""), (1, "")]
    assert heard[0][2] == "approved by root\n"
    assert heard[1][2] == "draftsman: denied by root: not on a Friday\n"
    questions, _ = await rt.questions.of_job(job.number)
    assert [question.action for question in questions] == [{"push": "x"}] * 2


async def test_notes_and_progress_are_events_and_the_newest_progress_is_kept(
    rt: Runtime, make: Factory, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_session, "PROGRESS_INTERVAL", 1e9)
    code = """
heard.append(command("note", "two tables"))
for done in (1, 2, 3):
    event = {"type": "event", "id": "x", "kind": "progress", "payload": {"done": done}}
    heard.append(program(event))
heard.append(command("progress", "12/40", "tests", "--json")[0])
heard.append(command("progress", "41/40")[0])
"""
    job, heard = await finished(rt, make, repo, code)
    ack = {"type": "ack", "id": "x"}
    assert heard == [[0, "", ""], ack, ack, ack, 0, 2]
    events = [(event.kind, event.payload) for event in await rt.read_model.job_events(job.number)]
    assert [event for event in events if event[0].startswith("agent.")] == [
        ("agent.note", {"text": "two tables"}),
        ("agent.progress", {"done": 1}),
        ("agent.progress", {"done": 12, "total": 40, "text": "tests"}),
    ]


REFUSED: tuple[tuple[str, str], ...] = (
    ("b'not json'", "invalid JSON"),
    ("b'\\xff\\x00'", "invalid JSON"),
    ("{'type': 'ask', 'id': '1'}", "ask.key: is required"),
    ("{'type': 'dance', 'id': '1'}", "unknown type 'dance'"),
    ("{'type': 'result', 'id': '1', 'summary': 'all done'}", "sends ask, approve or event"),
    ("{'type': 'checkpoint', 'id': '1', 'data': 1}", "sends ask, approve or event"),
    ("{'type': 'event', 'kind': 'x'}", "with an id"),
    ("{'type': 'answer', 'id': '1', 'key': 'gate', 'value': 'approve'}", "unknown type 'answer'"),
    ("{'type': 'ask', 'id': '1', 'key': 'agent:x', 'text': 'Which?'}", "reserved"),
    ("b'x' * (2**20 + 1)", "too long; the limit is 1,048,576 bytes"),
)
"""Messages of a program, and the reason of each refusal."""


@attack(
    "A program answers its job's question, or ends the run, on the run's socket",
    surface="protocol",
    with_sandbox="the socket takes questions and events only",
)
async def test_hostile_messages_are_refused_on_a_line_and_change_nothing(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = "".join(f"heard.append(program({message}))\n" for message, _ in REFUSED)
    job, heard = await finished(rt, make, repo, code)
    for reply, (message, reason) in zip(heard, REFUSED, strict=True):
        assert reply["type"] == "refused", message
        assert reason in reply["reason"], message
        assert "\n" not in reply["reason"], message
    assert (await rt.questions.of_job(job.number))[0] == []


@attack(
    "A program holds connections to the run's socket",
    surface="quota",
    with_sandbox="32 at a time; they end with the run",
)
async def test_connections_are_limited(
    rt: Runtime, make: Factory, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_socket, "MAX_CONNECTIONS", 3)
    code = """
event = {"type": "event", "id": "x", "kind": "note"}
silent = [connect() for _ in range(3)]
heard.append(program(event))
silent.pop().close()
while (reply := program(event))["type"] == "refused":
    pass
heard.append(reply)
"""
    _, (refused, accepted) = await finished(rt, make, repo, code)
    assert "3 programs of the run are connected" in refused["reason"]
    assert refused["class"] == "TRANSIENT_APP"
    assert accepted["type"] == "ack"


async def test_a_program_that_exceeds_a_quota_ends_the_job(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    code = "for _ in range(9): program({'type': 'event', 'id': 'x', 'kind': 'note'})\nhear()"
    async with agent_worker(rt, repo.parent / "data", PROGRAM + code, quotas={"events": 4}):
        job = await wait_for_end(rt, number)
    assert job.status is S.FAILED
    assert "the job has more than 4 events" in (job.last_error or "")


async def test_a_program_that_asks_after_another_has_parked_the_run_is_asked_with_it(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = """
replies = [
    program({"type": "ask", "id": "1", "key": key, "text": key, "choices": ["yes"]})
    for key in ("one", "two", "one")
]
say("log", text=str([reply["type"] for reply in replies]))
if "park" in str(replies):
    hear() and sys.exit(0)
say("result", summary="")
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", PROGRAM + code):
        await until(partial(_both_open, rt, number), "both questions")
        for n in (1, 2):
            await make.answer(number, "yes", n=n)
        job = await wait_for_end(rt, number)
    assert (job.status, job.run_count) == (S.COMPLETED, 2)
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert "['park', 'park', 'park']\n['answer', 'answer', 'answer']\n" in log


async def test_the_socket_ends_with_the_agent(rt: Runtime, make: Factory, repo: Path) -> None:
    code = "heard.append(os.environ['DRAFTSMAN_SOCKET'])\n"
    _, [path] = await finished(rt, make, repo, code)
    assert path == "/run/draftsman/run.sock"
    assert not list(repo.parent.rglob("run.sock"))


MCP = """
server = subprocess.Popen(["draftsman", "mcp"], stdin=-1, stdout=-1, text=True)
def request(method, **params):
    params["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    server.stdin.write(j.dumps(message) + "\\n")
    server.stdin.flush()
    return j.loads(server.stdout.readline())["result"]
def tool(name, **arguments):
    return request("tools/call", name=name, arguments=arguments)["structuredContent"]
"""


async def test_the_mcp_server_asks_for_the_job_of_its_run(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = f"""{MCP}
heard.append([tool["name"] for tool in request("tools/list")["tools"]])
heard.append(tool("report_progress", done=12, total=40))
heard.append(tool("ask_human", question="Deploy?", choices=["yes", "no"]))
if heard[-1]["outcome"] == "open":
    hear() and sys.exit(0)
server.stdin.close()
heard.append(server.wait())
"""
    job, heard = await finished(rt, make, repo, code, text("yes"))
    names, stored, answer, exit_code = heard
    assert names == ["ask_human", "request_approval", "report_progress"]
    assert (stored, exit_code, job.run_count) == ({"stored": True}, 0, 2)
    assert answer == {"outcome": "answered", "value": "yes", "by": ["root"]}


async def test_a_request_for_changes_reaches_a_program_that_asks_about_another_tree(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = f"""{MCP}
for n in range(2):
    open("a.txt", "w").write(str(start["run"] + n))
    say("checkpoint", id="c", data=1); hear()
    heard.append(tool("request_approval", question="Push?", context=str(heard)))
    if heard[-1]["outcome"] == "open":
        hear() and sys.exit(0)
    if heard[-1]["outcome"] == "approved":
        break
server.stdin.close()
"""
    change = Response(
        source_event_id="1",
        decision=Decision.REQUEST_CHANGES,
        reason="Name it",
        comments=(ReviewComment("a.txt", "why?", 1),),
    )
    allow = Response(source_event_id="2", decision=Decision.APPROVE)
    job, heard = await finished(rt, make, repo, code, change, allow)
    assert [answer["outcome"] for answer in heard] == ["approved"]
    (first, second), _ = await rt.questions.of_job(job.number)
    assert (first.outcome, second.outcome) == ("superseded", "approved")
    assert "'reason': 'Name it'" in (second.context_snippet or "")
    assert "'text': 'why?'" in (second.context_snippet or "")


@attack(
    "A program of the run asks for a permission that a rule allows",
    surface="protocol",
    with_sandbox="its question is asked, and no rule answers it",
)
async def test_a_program_of_the_run_asks_for_no_permission(
    rt: Runtime, make: Factory, repo: Path, people: People, conn: Connection
) -> None:
    rule = await permissions.ratified(rt, "pytest tests/**", people.olga, repo="repo")
    line = {"type": "ask", "id": "1"} | permissions.request("pytest tests/a.py")
    code = f"heard += [program({line!r})['value']]"
    _, heard = await finished(rt, make, repo, code, text(permissions.DENY))
    assert heard == [permissions.DENY], "a person was asked"
    assert (await rt.rules.get(rule.id)).status == "active", "and the denial teaches nothing either"
    assert await rows(conn, "SELECT job FROM draftsman.permission_requests") == []
