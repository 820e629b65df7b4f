"""The tools of the MCP server, inside and outside a run."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.ids import job_name
from draftsman.errors import AnswerTimeout, DraftsmanError
from draftsman_tui.cli.mcp.protocol import Tool, ToolError
from draftsman_tui.common import run_socket
from draftsman_tui.common.question_key import derived_key

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.app import App

INSTRUCTIONS: Final = (
    "draftsman asks people of the team, who may answer hours later. Ask only what you cannot find"
    " out, and give choices. If a result has the outcome `open`, there is no answer yet: follow"
    " its text."
)
MAX_WAIT: Final = 3600
MAX_RESULT: Final = 20_000
"""Maximum characters of a job's result in `job_status`."""
MAX_OPEN: Final = 100
"""Maximum number of questions that the server remembers."""
PARKED: Final = (
    "No answer yet. The question stays open, and this run ends now: stop working. Another run"
    " starts after the answer; make the same call again in it."
)


def _text(description: str, limit: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": limit, "description": description}


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_CONTEXT: Final = _text("background information for the decision", 20_000)
_CHOICES: Final = {
    "type": "array",
    "maxItems": 50,
    "items": _text("a choice", 150),
    "description": "the possible answers; without them people answer with free text",
}
_ACTION: Final = {"type": "object", "description": "the exact action, shown to people"}
_WAIT: Final = {
    "type": "integer",
    "minimum": 0,
    "maximum": MAX_WAIT,
    "description": "seconds to wait for the answer",
}
_JOB: Final = _text("its name, such as D-142", 60)


class RunTools:
    """Tools of a program inside a run, over the socket of the run."""

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            Tool(
                "ask_human",
                "Ask people a question. Without a known answer the run ends, and another run"
                " starts with the answer.",
                _object(
                    ("question",),
                    question=_text("the question", 3000),
                    choices=_CHOICES,
                    context=_CONTEXT,
                ),
                self._ask,
            ),
            Tool(
                "request_approval",
                "Ask people to approve an action before you do it.",
                _object(
                    ("question",),
                    question=_text("the action to approve", 3000),
                    action=_ACTION,
                    context=_CONTEXT,
                ),
                self._approve,
            ),
            Tool(
                "report_progress",
                "Report the progress of the work to people.",
                _object(
                    ("done", "total"),
                    done={"type": "integer", "minimum": 0, "maximum": 10**15},
                    total={"type": "integer", "minimum": 1, "maximum": 10**15},
                    text=_text("the current step", 5000),
                ),
                self._progress,
            ),
        ]

    async def _ask(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        choices = arguments.get("choices", [])
        fields = _fields(arguments) | {"choices": choices, "freeform": not choices}
        key = derived_key("ask", (fields["text"], *choices))
        return await self._send("ask", key=key, **fields)

    async def _approve(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        fields = _fields(arguments)
        key = derived_key("approve", (fields["text"],))
        return await self._send("approve", key=key, on_deny="continue", **fields)

    async def _progress(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if arguments["done"] > arguments["total"]:
            raise ToolError("done must not be greater than total")
        await _in_thread("event", kind="progress", payload=arguments)
        return {"stored": True}, "reported"

    async def _send(self, kind: str, **fields: Any) -> tuple[dict[str, Any], str]:
        reply = await _in_thread(kind, **fields)
        if reply["type"] == "park":
            return {"outcome": "open"}, PARKED
        return _answer(reply)


class TeamTools:
    """Tools outside a run, with access to the database."""

    def __init__(self, app: App, wait: float, notify: list[str]) -> None:
        self._app, self._wait, self._notify = app, wait, notify
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._opened: Runtime | None = None
        self._open: dict[str, int] = {}
        """Jobs of questions whose answer no call has returned yet, by content."""

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            Tool(
                "ask_human",
                "Ask people of the team a question, and wait for the answer.",
                _object(
                    ("question",),
                    question=_text("the question", 3000),
                    choices=_CHOICES,
                    context=_CONTEXT,
                    wait_seconds=_WAIT,
                ),
                self._ask,
            ),
            Tool(
                "request_approval",
                "Ask people of the team to approve an action before you do it.",
                _object(
                    ("question",),
                    question=_text("the action to approve", 3000),
                    action=_ACTION,
                    context=_CONTEXT,
                    wait_seconds=_WAIT,
                ),
                self._approve,
            ),
            Tool(
                "submit_job",
                "Submit a job to draftsman, such as work for another coding agent.",
                _object(
                    (),
                    text=_text("the instructions", 100_000),
                    type=_text("the type of the job; default: run_agent", 100),
                    agent=_text("the name of a configured agent", 100),
                    repo=_text("the repository: path, URL or name", 1000),
                    title=_text("a title; default: the first line of the text", 500),
                    key=_text("idempotency key: the same key is the same job, forever", 500),
                    mode={"type": "string", "maxLength": 20, "enum": ["fix", "investigate"]},
                    payload={"type": "object", "description": "the payload of another type"},
                ),
                self._submit,
            ),
            Tool(
                "job_status",
                "Return the status, the open question and the result of a job.",
                _object(("job",), job=_JOB),
                self._status,
                read_only=True,
            ),
        ]

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
        payload = _fields(arguments) | {"choices": choices}
        return await self._question(payload, arguments.get("wait_seconds"))

    async def _approve(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        payload = _fields(arguments) | {"kind": "approval"}
        return await self._question(payload, arguments.get("wait_seconds"))

    async def _question(
        self, payload: dict[str, Any], wait: float | None
    ) -> tuple[dict[str, Any], str]:
        """Ask, or wait again for the answer to the same question."""
        from draftsman_tui.cli.question.ask_team import answer_of, submit_question

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
            try:
                async with asyncio.timeout(self._wait if wait is None else wait):
                    await rt.read_model.wait(number)
            except TimeoutError:
                text = f"No answer yet. {name} stays open: make the same call again to wait for it."
                return {"outcome": "open", "job": name}, text
            job = await rt.read_model.job(number)
            self._open.pop(content, None)
            return _answer(answer_of(job) | {"job": name})
        except AnswerTimeout as error:
            return {"outcome": "expired", "job": name}, str(error)
        except DraftsmanError as error:
            raise ToolError(str(error)) from None

    async def _submit(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        from draftsman.services.jobs.request_checks import build_request, require_instructions
        from draftsman_tui.common.text.job_text import submitted_text

        try:
            rt = await self._runtime()
            require_instructions(arguments)
            request = build_request(arguments, self._app.settings)
            request = await rt.request_checks.resolve(request)
            job = await rt.submissions.submit(request, await rt.actor())
        except DraftsmanError as error:
            raise ToolError(str(error)) from None
        data = {"job": job.name, "outcome": str(job.outcome), "status": str(job.status)}
        if job.replaced is not None:
            data["replaced"] = job_name(job.replaced)
        return data, submitted_text(job)

    async def _status(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        from draftsman.domain.ids import parse_job

        try:
            rt = await self._runtime()
            number = await rt.read_model.resolve(parse_job(arguments["job"]))
            job = await rt.read_model.job(number)
            why = await rt.read_model.why(number)
            questions = await rt.questions.open(number)
        except DraftsmanError as error:
            raise ToolError(str(error)) from None
        data: dict[str, Any] = {
            "job": job.name,
            "status": str(job.status),
            "title": job.ticket_title,
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


def _fields(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a question."""
    names = ("context", "action")
    return {"text": arguments["question"]} | {
        name: arguments[name] for name in names if name in arguments
    }


def _answer(reply: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return an answer as data and as text."""
    names = ("job", "outcome", "value", "text", "by", "reason")
    data = {name: reply[name] for name in names if reply.get(name)}
    by = f" by {', '.join(data['by'])}" if data.get("by") else ""
    given = data.get("value") or data.get("text") or data.get("reason")
    return data, f"{data['outcome']}{by}" + (f": {given}" if given else "")


async def _in_thread(kind: str, /, **fields: Any) -> dict[str, Any]:
    try:
        return await asyncio.to_thread(run_socket.send, kind, **fields)
    except DraftsmanError as error:
        raise ToolError(str(error)) from None
