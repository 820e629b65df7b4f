"""The `mcp` command: an MCP server on standard input and output."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from draftsman.actions.requests import run_type, submit
from draftsman.agent_runs.mcp.protocol import (
    MAX_LINE,
    TOO_LONG,
    McpServer,
    MoreTools,
    Tool,
    ToolError,
)
from draftsman.agent_runs.mcp.run_tools import (
    ACTION,
    CHOICES,
    CONTEXT,
    INSTRUCTIONS,
    JOB,
    MAX_RESULT,
    RunTools,
    answer_result,
    object_schema,
    question_fields,
    text_schema,
)
from draftsman.errors import AnswerTimeout, DraftsmanError
from draftsman.ids import job_name, parse_question
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.mcp.type_tools import tool_names
from draftsman_tui.cli.perform import call_of
from draftsman_tui.common import run_socket
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.actions.action import ActionResult
    from draftsman.job_types.published.description import PublishedType
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.runtime import Runtime


LISTING: Final = 5.0
"""Seconds after which the tools are listed without the types that cannot be read."""
MAX_WAIT: Final = 3600
MAX_OPEN: Final = 100
"""Maximum number of questions that the server remembers."""
_WAIT: Final = {
    "type": "integer",
    "minimum": 0,
    "maximum": MAX_WAIT,
    "description": "seconds to wait for the answer",
}
_log = logging.getLogger(__name__)


class TeamTools:
    """Tools outside a run, with access to the database."""

    def __init__(self, app: App, wait: float, notify: list[str]) -> None:
        self._app = app
        self._wait = wait
        self._notify = notify
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._opened: Runtime | None = None
        self._open: dict[str, int] = {}
        """Jobs of questions whose answer no call has returned yet, by content."""
        self._type_tools: list[Tool] = []

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            Tool(
                "ask_human",
                "Ask people of the team a question, and wait for the answer.",
                object_schema(
                    ("question",),
                    question=text_schema("the question", 3000),
                    choices=CHOICES,
                    context=CONTEXT,
                    wait_seconds=_WAIT,
                ),
                self._ask,
            ),
            Tool(
                "request_approval",
                "Ask people of the team to approve an action before you do it.",
                object_schema(
                    ("question",),
                    question=text_schema("the action to approve", 3000),
                    action=ACTION,
                    context=CONTEXT,
                    wait_seconds=_WAIT,
                ),
                self._approve,
            ),
            Tool(
                "submit_job",
                "Submit a job to draftsman: work for another coding agent, or a type without a tool"
                " of its own.",
                object_schema(
                    (),
                    text=text_schema("the instructions", 100_000),
                    type=text_schema("the type of the job; default: run_agent", 100),
                    agent=text_schema("the name of a configured agent", 100),
                    repo=text_schema("the repository: path, URL or name", 1000),
                    title=text_schema("a title; default: the first line of the text", 500),
                    key=text_schema("idempotency key: the same key is the same job, forever", 500),
                    mode={"type": "string", "maxLength": 20, "enum": ["fix", "investigate"]},
                    payload={
                        "type": "object",
                        "description": "the payload of another type than run_agent",
                    },
                ),
                self._submit,
            ),
            Tool(
                "job_status",
                "Return the status, the open questions and the result of a job.",
                object_schema(("job",), job=JOB),
                self._status,
                read_only=True,
            ),
        ]

    async def type_tools(self) -> list[Tool]:
        """Return a tool for each type that workers have described.

        Without the database, they are those that were read before.
        """
        from draftsman.job_types.published.description import deployed

        try:
            async with asyncio.timeout(LISTING):
                rt = await self._runtime()
                types = deployed(await rt.published_types.all())
        except (DraftsmanError, TimeoutError) as error:
            problem = str(error) or f"no answer within {LISTING:g} s"
            _log.warning("mcp: the job types are not read: %s", problem)
            return self._type_tools
        names = tool_names(type.name for type in types)
        self._type_tools = [
            Tool(
                names[type.name],
                "\n\n".join(filter(None, (f"Submit a job of {type.name}.", type.description))),
                {"type": "object", **type.parameters},
                functools.partial(self._run_type, type),
                title=f"Run {type.name}",
                is_checked=False,  # by its schema, when the job is submitted
            )
            for type in types
        ]
        return self._type_tools

    async def close(self) -> None:
        """Close the connections to the database."""
        await self._stack.aclose()

    async def _runtime(self) -> Runtime:
        async with self._opening:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(self._app.runtime(pooled=True))
            return self._opened

    async def _ask(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        choices = arguments.get("choices", [])
        payload = question_fields(arguments) | {"choices": choices}
        return await self._question(payload, arguments.get("wait_seconds"))

    async def _approve(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        payload = question_fields(arguments) | {"kind": "approval"}
        return await self._question(payload, arguments.get("wait_seconds"))

    async def _question(
        self, payload: dict[str, Any], wait: float | None
    ) -> tuple[dict[str, Any], str]:
        """Ask, or wait again for the answer to the same question."""
        from draftsman_tui.cli.questions.ask_team import (
            answer_of,
            submit_question,
            why_unanswered,
        )

        content = json.dumps(payload, sort_keys=True)
        try:
            rt = await self._runtime()
            async with self._opening:
                if content not in self._open:
                    if len(self._open) >= MAX_OPEN:
                        raise ToolError(f"{MAX_OPEN} questions are open; wait for their answers")
                    submitted = await submit_question(self._app, rt, payload, notify=self._notify)
                    self._open[content] = submitted.number
                number = self._open[content]
            name = job_name(number)
            wait = self._wait if wait is None else wait
            try:
                async with asyncio.timeout(wait):
                    await rt.read_model.wait(number)
            except TimeoutError:
                reason = await why_unanswered(rt, number, wait)
                text = f"{reason}. {name} stays open: make the same call again to wait for it."
                return {"outcome": "open", "job": name}, text
            job = await rt.read_model.job(number)
            self._open.pop(content, None)
            return answer_result(answer_of(job) | {"job": name})
        except AnswerTimeout as error:
            return {"outcome": "expired", "job": name}, str(error)
        except DraftsmanError as error:
            raise ToolError(str(error)) from None

    async def _submit(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        from draftsman.jobs.requests.service.request_checks import (
            build_request,
            require_instructions,
        )

        try:
            rt = await self._runtime()
            require_instructions(arguments)
            request = build_request(arguments, self._app.settings)
            request = await rt.request_checks.resolve(request)
            result = await submit(await call_of(self._app, rt), request)
        except DraftsmanError as error:
            raise ToolError(str(error)) from None
        return _submitted(result)

    async def _run_type(
        self, type: PublishedType, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], str]:
        try:
            rt = await self._runtime()
            return _submitted(await run_type(await call_of(self._app, rt), type, arguments))
        except DraftsmanError as error:
            raise ToolError(str(error)) from None

    async def _status(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        try:
            rt = await self._runtime()
            number = await rt.read_model.resolve(parse_question(arguments["job"])[0])
            job = await rt.read_model.job(number)
            why = await rt.read_model.why(number)
            questions = await rt.questions.open(number)
        except DraftsmanError as error:
            raise ToolError(str(error)) from None
        data: dict[str, Any] = {
            "job": job.name,
            "status": str(job.status),
            "title": job.own_title,
        }
        data |= {"why": why.text, "error": job.last_error, "pull_request": job.pr_url}
        data["questions"] = [
            {"question": question.name, "text": question.text} for question in questions
        ]
        result = json.dumps(job.result, ensure_ascii=False)
        fits = len(result) <= MAX_RESULT
        data |= {"result": job.result} if fits else {"result_truncated": result[:MAX_RESULT]}
        data = {name: value for name, value in data.items() if value not in (None, [], "")}
        return data, json.dumps(data, ensure_ascii=False)


def _submitted(result: ActionResult[SubmittedJob]) -> tuple[dict[str, Any], str]:
    """Return a submitted job as data and as text."""
    job = result.value
    data = {"job": job.name, "outcome": str(job.outcome), "status": str(job.status)}
    if job.warning is not None:
        data["warning"] = job.warning
    return data, "; ".join([str(result), *result.warnings])


async def ask_run(kind: str, /, **fields: Any) -> dict[str, Any]:
    """Send a message on the socket of the run; return its reply. Raises ToolError."""
    try:
        return await asyncio.to_thread(run_socket.send, kind, **fields)
    except DraftsmanError as error:
        raise ToolError(str(error)) from None


async def serve(
    tools: Sequence[Tool],
    instructions: str,
    source: BinaryIO,
    output: BinaryIO,
    *,
    more: MoreTools | None = None,
) -> None:
    """Answer the messages of a client until the end of its input."""

    def send(message: dict[str, Any]) -> None:
        output.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        output.flush()

    server = McpServer(tools, instructions, send, more=more)
    reader = asyncio.StreamReader(limit=MAX_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    try:
        while (line := await _read_line(reader)) is not None:
            server.receive(line)
    finally:
        await server.cancel()


async def _read_line(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next line; None at the end, and invalid JSON for a line over the limit."""
    try:
        return await reader.readuntil() or None
    except asyncio.IncompleteReadError as error:
        return error.partial or None
    except asyncio.LimitOverrunError:
        pass
    while True:  # discard the rest of the line
        try:
            await reader.readuntil()
        except asyncio.LimitOverrunError as error:
            await reader.readexactly(error.consumed)
        except asyncio.IncompleteReadError:
            return TOO_LONG
        else:
            return TOO_LONG


DEFAULT_WAIT: Final = 50.0
"""Seconds that a call waits for people: clients give up after a minute by default."""


@command(
    "mcp",
    section="Programs",
    examples=(
        "draftsman mcp",
        "draftsman mcp --wait 30m --notify slack:C0123",
        "claude mcp add draftsman -- draftsman mcp --notify slack:C0123",
    ),
    does=(submit, run_type),
)
@click.option(
    "--wait",
    type=params.DURATION,
    default=DEFAULT_WAIT,
    help="Time that a question waits for an answer, unless the call sets it. Default: 50s.",
)
@params.notify_option("Target of questions")
async def mcp(app: App, wait: float, notify: tuple[str, ...]) -> None:
    """Run an MCP server for a coding agent.

    The client starts this command, and speaks JSON-RPC with it on standard input and output.
    Outside a run the tools are ask_human, request_approval, submit_job and job_status, and one for
    each job type that workers have described; inside of a run they are ask_human, request_approval
    and report_progress, for the run's job.
    """
    team = None if run_socket.path() else TeamTools(app, wait, list(notify))
    tools = RunTools(ask_run).tools() if team is None else team.tools()
    try:
        more = None if team is None else team.type_tools
        await serve(tools, INSTRUCTIONS, sys.stdin.buffer, sys.stdout.buffer, more=more)
    finally:
        if team is not None:
            await team.close()
