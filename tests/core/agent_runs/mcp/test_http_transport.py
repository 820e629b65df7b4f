"""The MCP server on the port of the gateway: real HTTP from an agent in its sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from draftsman.agent_runs.mcp.http_transport import HEADER_MISMATCH, check_headers
from draftsman.agent_runs.mcp.protocol import MODERN, UNSUPPORTED_VERSION, ProtocolError, ToolError
from draftsman.agent_runs.mcp.run_tools import JobTools
from draftsman.handlers import registry
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.agent_runs.gateway_agents import provider, with_gateway
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.core.worker.workers import running_worker, wait_for_end, wait_for_question
from tests.support.cases import cases
from tests.support.faulty_server import FaultyServer

__all__ = ["provider"]
CLIENT = f"""
import urllib.error, urllib.request
KEY = "io.modelcontextprotocol/"
META = {{KEY + "protocolVersion": "{MODERN}", KEY + "clientCapabilities": {{}}}}
def post(message, **headers):
    headers = {{"authorization": "Bearer " + os.environ["DRAFTSMAN_MCP_TOKEN"],
               "content-type": "application/json",
               "accept": "application/json, text/event-stream"}} | headers
    plain = message is None or isinstance(message, bytes)
    data = message if plain else json.dumps(message).encode()
    request = urllib.request.Request(os.environ["DRAFTSMAN_MCP_URL"], data, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
            return response.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
def legacy(method, **params):
    message = {{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}
    return post(message, **{{"mcp-protocol-version": "2025-11-25"}})
def modern(method, **params):
    params["_meta"] = META
    message = {{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}
    headers = {{"mcp-protocol-version": "{MODERN}", "mcp-method": method}}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return post(message, **headers)
def tool(name, **arguments):
    status, reply = modern("tools/call", name=name, arguments=arguments)
    result = reply["result"]
    return result["content"][0]["text"] if result["isError"] else result["structuredContent"]
"""
AGENT = (
    CLIENT
    + """
if start["request"]["text"] == "the child":
    refused = tool("submit_job", text="a grandchild")
    say("result", summary="child done", data={"refused": refused})
    sys.exit(0)
heard = [post(b"{", authorization="Bearer other")[0], post({}, origin="http://evil.example")[0]]
heard += [post(None)[0], post(b"{")[0], legacy("initialize", protocolVersion="2025-11-25")]
heard += [post({"jsonrpc": "2.0", "method": "notifications/initialized"})]
heard += [legacy("tools/list")[1], modern("tools/list")[1], modern("nothing")[0]]
heard += [tool("report_progress", done=12, total=40, text="tests")]
heard += [tool("ask_human", question="Deploy?", choices=["yes", "no"])]
if heard[-1]["outcome"] == "open":
    hear() and sys.exit(0)
heard += [tool("submit_job", text="the child"), tool("submit_job", text="the child")]
heard += [tool("job_status")["status"], tool("job_status", job="D-999")]
heard += [tool("job_status", job="x")]
heard += [tool("job_status", job=heard[-4]["job"])["title"]]
say("result", summary="", data={"heard": heard})
"""
)


async def test_an_agent_in_its_sandbox_asks_and_submits_by_http(
    rt: Runtime, make: Factory, tmp_path: Path, provider: FaultyServer
) -> None:
    repo = str(make_repository(tmp_path / "repo"))
    services = with_gateway(rt, tmp_path, provider, AGENT, submit_jobs=True)
    number = await submit_agent_job(make, repo)
    async with running_worker(services, registry.load({}), leader=False):
        await wait_for_question(rt, number, 1)
        person = Actor(Source.CLI, "root", "root", owner=True)
        answer = Response(source_event_id="test:1", text="yes")
        assert (await rt.questions.answer(number, 1, answer, person)).accepted
        job = await wait_for_end(rt, number)
        assert job.status is Status.COMPLETED, job.last_error
        heard: list[Any] = (job.result or {})["data"]["heard"]
        child = heard[11]["job"]
        submitted = await wait_for_end(rt, int(child.removeprefix("D-")))
    assert heard[:4] == [401, 403, 405, 400]
    status, initialized = heard[4]
    assert (status, initialized["result"]["protocolVersion"]) == (200, "2025-11-25")
    assert heard[5] == [202, None]
    names = ["ask_human", "request_approval", "report_progress", "submit_job", "job_status"]
    for listed in heard[6:8]:
        assert [tool["name"] for tool in listed["result"]["tools"]] == names
    assert heard[8:10] == [404, {"stored": True}]
    assert heard[10] == {"outcome": "answered", "value": "yes", "by": ["root"]}
    assert heard[12] == {"job": child}, "the same text is the same job"
    assert heard[13:15] == ["running", "D-999 was not spawned by this job"]
    assert heard[15].startswith("'x' is not a job")
    assert heard[16] == "the child"
    result = submitted.result or {}
    assert result["summary"] == "child done"
    assert result["data"]["refused"] == "a job that another job submitted submits no jobs"
    assert submitted.agent_request.agent == job.agent_request.agent
    assert submitted.invoker_id == job.invoker_id


async def test_an_agent_submits_no_job_unless_its_settings_allow_it() -> None:
    tools = JobTools(cast("WorkerRun", None), "/repo", may_submit=False).tools()
    with pytest.raises(ToolError, match=r"an operator sets submit_jobs = true in \[agents"):
        await tools[0].call({"text": "more"})


def refusal(headers: dict[str, str], **message: Any) -> int | bool:
    """Return the code of the error, or whether the version is in the message."""
    try:
        return check_headers(headers, message)
    except ProtocolError as error:
        return error.code


def test_headers_repeat_what_is_in_the_message() -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}
    version = {"mcp-protocol-version": MODERN}
    call = {"method": "tools/call", "params": {"name": "ask_human"} | meta}
    complete = version | {"mcp-method": "tools/call", "mcp-name": "ask_human"}
    assert refusal(complete, **call) is True
    for name in complete:
        assert refusal(complete | {name: "other"}, **call) == HEADER_MISMATCH
        assert refusal({k: v for k, v in complete.items() if k != name}, **call) == HEADER_MISMATCH
    assert refusal(version | {"mcp-method": "tools/list"}, method="tools/list", params=meta) is True
    assert refusal({}, method="tools/list") is False
    assert refusal({"mcp-protocol-version": "2025-06-18"}, method="tools/list") is False
    assert refusal({"mcp-protocol-version": "1900-01-01"}, method="ping") == UNSUPPORTED_VERSION


@cases("params", [None, [], "text", {"_meta": 1}])
def test_odd_params_have_no_version(params: object) -> None:
    assert refusal({}, method="tools/list", params=params) is False
    assert json.dumps(params)
