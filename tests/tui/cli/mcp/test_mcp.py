"""`draftsman mcp`: a strict client of both eras of the protocol, and hostile messages."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.handlers import registry
from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, until
from tests.core.worker.workers import running_worker, runtime_with
from tests.support.described_types import registered

MODERN: Final = "2026-07-28"
KEY: Final = "io.modelcontextprotocol/"
META: Final = {f"{KEY}protocolVersion": MODERN, f"{KEY}clientCapabilities": {}}


class Client:
    """A client that accepts only lines of JSON-RPC 2.0 with the id of a request of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.meta: dict[str, Any] = {}
        self.notifications: list[Any] = []
        self._count = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0"} | message).encode())

    async def request(self, method: str, **params: Any) -> Any:
        """Return the reply to a request: its result, or its error."""
        self._count += 1
        reply = self._waiting[self._count] = asyncio.get_running_loop().create_future()
        params = params | ({"_meta": params.get("_meta", {}) | self.meta} if self.meta else {})
        self.send(id=self._count, method=method, params=params)
        async with asyncio.timeout(20):
            return await reply

    async def call(self, name: str, **arguments: Any) -> Any:
        """Return the result of a tool."""
        reply = await self.request("tools/call", name=name, arguments=arguments)
        result = reply["result"]
        assert [part["type"] for part in result["content"]] == ["text"]
        if self.meta:
            assert result["resultType"] == "complete"
            assert result["_meta"][f"{KEY}serverInfo"]["name"] == "draftsman"
        return result

    async def error_of(self, line: bytes) -> Any:
        """Return the error that has no id."""
        reply = self._waiting[0] = asyncio.get_running_loop().create_future()
        self.write(line)
        async with asyncio.timeout(20):
            return (await reply)["error"]

    async def initialize(self, version: str = "2025-11-25") -> Any:
        client = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}}
        reply = await self.request("initialize", protocolVersion=version, **client)
        self.send(method="notifications/initialized")
        return reply["result"]

    async def close(self) -> int:
        """Close the input; return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(20):
            code = await self.process.wait()
            await self._reading
        return code

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if "method" in message:
                assert "id" not in message
                self.notifications.append(message)
                continue
            assert ("result" in message) != ("error" in message)
            self._waiting.pop(message["id"] or 0).set_result(message)


@asynccontextmanager
async def serve(
    database_url: str, config: Callable[[str | None], Path], *options: str, user: str = "root"
) -> AsyncIterator[Client]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "draftsman_tui", "--config", str(config(user)), "mcp", *options),
        env={**os.environ, "DRAFTSMAN_DATABASE_URL": database_url},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 22,
    )
    client = Client(process)
    try:
        yield client
        assert await client.close() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
async def client(database_url: str, config: Callable[[str | None], Path]) -> AsyncIterator[Client]:
    async with serve(database_url, config) as connected:
        yield connected


async def answered(rt: Runtime, **response: Any) -> int:
    """Answer the newest job's question; return the job."""
    found: list[int] = []

    async def asked() -> bool:
        found[:] = [job.number for job in await rt.read_model.jobs(limit=1)]
        return bool(found) and bool(await rt.questions.open(found[0]))

    await until(asked, "a question")
    person = Actor(Source.CLI, "root", "root", owner=True)
    given = Response(source_event_id=f"test:{found[0]}", **response)
    assert (await rt.questions.answer(found[0], 1, given, person)).accepted
    return found[0]


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2024-01-01", MODERN])
async def test_a_handshake_agrees_on_a_version_with_a_handshake(
    client: Client, version: str
) -> None:
    assert "error" in await client.request("tools/list")
    assert (await client.request("ping"))["result"] == {}
    result = await client.initialize(version)
    known = version in ("2025-11-25", "2025-06-18")
    assert result["protocolVersion"] == (version if known else "2025-11-25")
    assert result["capabilities"] == {"tools": {"listChanged": True}}
    tools = (await client.request("tools/list"))["result"]["tools"]
    names = ["ask_human", "request_approval", "submit_job", "job_status"]
    assert [tool["name"] for tool in tools] == names
    for tool in tools:
        assert tool["inputSchema"]["additionalProperties"] is False
    assert (await client.request("server/discover"))["error"]["code"] == -32602
    assert (await client.request("resources/list"))["error"]["code"] == -32601


async def test_a_request_with_its_version_needs_no_handshake(client: Client) -> None:
    client.meta = dict(META)
    found = (await client.request("server/discover"))["result"]
    assert (found["supportedVersions"], found["resultType"]) == ([MODERN], "complete")
    listed = (await client.request("tools/list"))["result"]
    for result in (found, listed):
        assert (result["ttlMs"] > 0, result["cacheScope"]) == (True, "private")
    client.meta[f"{KEY}protocolVersion"] = "1900-01-01"
    error = (await client.request("tools/list"))["error"]
    assert error["code"] == -32022
    assert error["data"] == {
        "supported": [MODERN, "2025-11-25", "2025-06-18"],
        "requested": "1900-01-01",
    }
    client.meta = {f"{KEY}protocolVersion": MODERN}
    assert (await client.request("tools/list"))["error"]["code"] == -32602


@pytest.mark.parametrize("meta", [{}, META])
async def test_people_answer_and_approve(client: Client, rt: Runtime, meta: Any) -> None:
    if not meta:
        await client.initialize()
    client.meta = dict(meta)
    async with running_worker(runtime_with(rt), registry.load({})):
        asked = client.call("ask_human", question="Which?", choices=["a", "b"])
        async with background(asked) as asking:
            number = await answered(rt, text="b")
            result = await asking
        assert (result["isError"], result["content"][0]["text"]) == (False, "answered by root: b")
        data = {"job": f"D-{number}", "outcome": "answered", "value": "b", "by": ["root"]}
        assert result["structuredContent"] == data
        asked = client.call("request_approval", question="Push?", action={"push": "x"})
        async with background(asked) as asking:
            await answered(rt, decision=Decision.DENY, reason="not today")
            result = await asking
    assert result["content"][0]["text"] == "denied by root: not today"
    assert result["structuredContent"]["outcome"] == "denied"


async def test_the_same_call_waits_again_and_a_later_call_asks_again(
    client: Client, rt: Runtime
) -> None:
    await client.initialize()
    ask = {"question": "Which?", "wait_seconds": 0}
    first, second = [await client.call("ask_human", **ask) for _ in range(2)]
    assert first["structuredContent"]["outcome"] == "open"
    assert first["structuredContent"] == second["structuredContent"]
    async with (
        running_worker(runtime_with(rt), registry.load({})),
        background(client.call("ask_human", question="Which?")) as asking,
    ):
        number = await answered(rt, text="this")
        result = await asking
    assert result["structuredContent"]["job"] == f"D-{number}"
    again = await client.call("ask_human", **ask)
    assert again["structuredContent"]["job"] != f"D-{number}"


async def test_a_cancelled_call_has_no_reply_and_leaves_the_question(
    client: Client, rt: Runtime
) -> None:
    await client.initialize()
    client.send(
        id="long",
        method="tools/call",
        params={"name": "ask_human", "arguments": {"question": "Which?"}},
    )

    async def submitted() -> bool:
        return bool(await rt.read_model.jobs())

    await until(submitted, "the question's job")
    client.send(method="notifications/cancelled", params={"requestId": "long"})
    result = await client.call("ask_human", question="Which?", wait_seconds=0)
    [job] = await rt.read_model.jobs()
    assert result["structuredContent"] == {"outcome": "open", "job": f"D-{job.number}"}


async def test_jobs_are_submitted_and_shown(client: Client, rt: Runtime, make: Factory) -> None:
    await client.initialize()
    done = await client.call("submit_job", type="nope", payload={"n": 1})
    assert done["isError"] is False
    assert "that handles the type 'nope'" in done["structuredContent"]["warning"]
    payload = {"text": "Which?"}
    done = await client.call("submit_job", type="ask_people", payload=payload, key="k")
    number = int(done["structuredContent"]["job"][2:])
    again = await client.call("submit_job", type="ask_people", payload=payload, key="k")
    assert again["structuredContent"]["outcome"] == "deduplicated"
    status = (await client.call("job_status", job=f"D-{number}"))["structuredContent"]
    assert (status["job"], status["status"]) == (f"D-{number}", "queued")
    finished = await make.job_in(Status.FAILED)
    status = (await client.call("job_status", job=str(finished)))["structuredContent"]
    assert (status["status"], "error" in status) == ("failed", True)
    unknown = await client.call("job_status", job="D-999999")
    assert (unknown["isError"], "D-999999" in unknown["content"][0]["text"]) == (True, True)


def described(name: str, **properties: Any) -> TypeDescription:
    schema = {"properties": properties, "required": list(properties), "additionalProperties": False}
    text = "Write it.\n\nWith care."
    return TypeDescription(name=name, place="a:b", description=text, parameters=schema)


WEEKLY: Final = described("report:weekly", week={"type": "integer", "maximum": 53})


async def run_tools(client: Client) -> dict[str, Any]:
    """Return the listed tools of types by name."""
    tools = (await client.request("tools/list"))["result"]["tools"]
    return {tool["name"]: tool for tool in tools if tool["name"].startswith("run_")}


@pytest.mark.parametrize("meta", [{}, META])
async def test_a_described_type_is_a_tool(client: Client, rt: Runtime, meta: Any) -> None:
    if not meta:
        await client.initialize()
    client.meta = dict(meta)
    async with registered(rt, WEEKLY, described("report_weekly")):
        tools = await run_tools(client)
        by_title = {tool["title"]: tool for tool in tools.values()}
        assert by_title.keys() == {"Run report:weekly", "Run report_weekly"}
        tool = by_title["Run report:weekly"]
        assert tool["inputSchema"] == {"type": "object", **WEEKLY.parameters}
        assert tool["annotations"] == {"readOnlyHint": False, "openWorldHint": True}
        assert tool["description"] == "Submit a job of report:weekly.\n\nWrite it.\n\nWith care."
        for arguments, problem in (
            ({"week": "x"}, "payload of report:weekly: week: must be a whole number, not 'x'"),
            ({}, "payload of report:weekly: week: is required"),
            ({"weak": 1}, "unknown parameter 'weak'; did you mean week?"),
        ):
            wrong = await client.call(tool["name"], **arguments)
            assert (wrong["isError"], wrong["content"][0]["text"]) == (True, problem)
        nothing = await client.request("tools/call", name=tool["name"], arguments=7)
        assert "must be an object" in nothing["result"]["content"][0]["text"]
        assert await rt.read_model.jobs() == []
        done = await client.call(tool["name"], week=3)
        assert (done["isError"], done["structuredContent"]["outcome"]) == (False, "created")
    [job] = await rt.read_model.jobs()
    assert done["structuredContent"]["job"] == f"D-{job.number}"
    submitted = await rt.read_model.job(job.number)
    assert (submitted.type, submitted.payload) == ("report:weekly", {"week": 3})


async def test_a_session_is_notified_of_types_that_come_and_change(
    client: Client, rt: Runtime
) -> None:
    await client.initialize()
    assert await run_tools(client) == {}
    for schema in ({"type": "integer"}, {"type": "string"}):
        client.notifications.clear()
        async with registered(rt, described("report:weekly", week=schema)):
            await until(lambda: _notified(client), "a notification")
            [notification] = client.notifications
            assert notification == {
                "jsonrpc": "2.0",
                "method": "notifications/tools/list_changed",
            }
            tools = await run_tools(client)
            assert tools["run_report_weekly"]["inputSchema"]["properties"] == {"week": schema}


async def test_a_client_without_a_session_listens_for_types(client: Client, rt: Runtime) -> None:
    client.meta = dict(META)
    for id, wanted in (
        ("none", {"promptsListChanged": True}),
        ("listen", {"toolsListChanged": True}),
    ):
        params = {"notifications": wanted, "_meta": META}
        client.send(id=id, method="subscriptions/listen", params=params)
    await until(lambda: _notified(client, 2), "the acknowledgments")
    acknowledged = {
        notification["params"]["_meta"][f"{KEY}subscriptionId"]: notification["params"]
        for notification in client.notifications
    }
    assert acknowledged["none"]["notifications"] == {}
    assert acknowledged["listen"]["notifications"] == {"toolsListChanged": True}
    async with registered(rt, WEEKLY):
        await until(lambda: _notified(client, 3), "a notification")
    assert client.notifications[2:] == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"_meta": {f"{KEY}subscriptionId": "listen"}},
        }
    ]
    client.send(method="notifications/cancelled", params={"requestId": "listen"})
    wrong = await client.request("subscriptions/listen", notifications=7)
    assert wrong["error"]["code"] == -32602


async def _notified(client: Client, count: int = 1) -> bool:
    return len(client.notifications) >= count


async def test_only_people_who_may_submit_run_a_type(
    database_url: str, config: Callable[[str | None], Path], rt: Runtime
) -> None:
    async with registered(rt, WEEKLY), serve(database_url, config, user="ben") as client:
        await client.initialize()
        own = await client.call("run_report_weekly", week=3)
        generic = await client.call("submit_job", type="report:weekly", payload={"week": 3})
    assert own == generic
    assert (own["isError"], "may not submit" in own["content"][0]["text"]) == (True, True)
    assert await rt.read_model.jobs() == []


INVALID: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("ask_human", {}, "question: is required"),
    ("ask_human", {"question": ""}, "question: must not be empty"),
    ("ask_human", {"question": 7}, "question: must be text, not 7"),
    (
        "ask_human",
        {"question": "x", "wait_seconds": True},
        "wait_seconds: must be a whole number, not true",
    ),
    (
        "ask_human",
        {"question": "x", "wait_seconds": 9e9},
        "must be a whole number, not 9000000000.0",
    ),
    ("ask_human", {"question": "x", "wait_seconds": 99999}, "must be at most 3600, not 99999"),
    (
        "ask_human",
        {"question": "x", "choices": ["a"] * 51},
        "choices: must have at most 50 entries",
    ),
    ("ask_human", {"question": "x", "choices": [1]}, "choices.0: must be text, not 1"),
    ("ask_human", {"question": "x", "choices": ["a", "A"]}, "two choices have the same value"),
    ("ask_human", {"question": "x", "token": 1}, "token: unknown key; allowed: question, "),
    ("submit_job", {"mode": "rm"}, "mode: must be fix or investigate, not 'rm'"),
)


async def test_invalid_arguments_are_refused_on_a_line(client: Client, rt: Runtime) -> None:
    await client.initialize()
    for name, arguments, problem in INVALID:
        result = await client.call(name, **arguments)
        text = result["content"][0]["text"]
        assert (result["isError"], problem in text, "\n" in text) == (True, True, False), text
    assert (await client.request("tools/call", name="rm"))["error"]["code"] == -32602
    assert await rt.read_model.jobs() == []


async def test_hostile_messages_are_refused_and_the_server_continues(client: Client) -> None:
    hostile = {
        b"not json": -32700,
        b"\xff\xfe": -32700,
        b"[" * 100_000: -32700,
        b"x" * ((1 << 20) + 1): -32700,
        b"x" * (5 << 20): -32700,
        b"[]": -32600,
        b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}': -32600,
        b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}': -32600,
        b'{"jsonrpc": "2.0", "id": true, "method": "ping"}': -32600,
        b'{"jsonrpc": "2.0", "id": null, "method": "ping"}': -32600,
    }
    for line, code in hostile.items():
        assert (await client.error_of(line))["code"] == code, line[:50]
    client.send(method="notifications/cancelled", params={"requestId": []})
    client.send(method="no/such/notification")
    client.send(id=99, result={})
    assert (await client.request("ping"))["result"] == {}


async def test_an_unreachable_database_is_an_error_of_the_tool(
    config: Callable[[str | None], Path],
) -> None:
    async with serve("postgresql://127.0.0.1:1/nothing", config) as client:
        await client.initialize()
        assert await run_tools(client) == {}
        result = await client.call("ask_human", question="Which?")
    assert result["isError"] is True
    assert "\n" not in result["content"][0]["text"]
