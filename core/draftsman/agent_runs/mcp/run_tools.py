"""The tools of the MCP server inside a run, and what those outside a run share with them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from draftsman.agent_runs.mcp.protocol import Tool, ToolError
from draftsman.errors import DraftsmanError
from draftsman.ids import job_name, job_number
from draftsman.questions.question import derived_key
from draftsman.questions.review_comment import ReviewComment
from draftsman.text import humanize

if TYPE_CHECKING:
    from draftsman.handlers.worker_run import WorkerRun

Ask = Callable[..., Awaitable[dict[str, Any]]]
"""Sends a message of a program to the run, by its type and fields; raises ToolError."""
INSTRUCTIONS: Final = (
    "draftsman asks people of the team; an answer may take hours. Ask only if you cannot find the"
    " answer yourself, and give choices. A result with the outcome `open` has no answer yet: follow"
    " its text."
)
MAX_RESULT: Final = 20_000
"""Maximum characters of a job's result in `job_status`."""
PARKED: Final = (
    "No answer yet. The question stays open, and this run ends now: stop working. Another run"
    " starts after the answer; make the same call again in it."
)


def text_schema(description: str, limit: int) -> dict[str, Any]:
    """Return the schema of a text."""
    return {"type": "string", "minLength": 1, "maxLength": limit, "description": description}


def object_schema(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    """Return the schema of arguments."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


CONTEXT: Final = text_schema("background information for the decision", 20_000)
CHOICES: Final = {
    "type": "array",
    "maxItems": 50,
    "items": text_schema("a choice", 150),
    "description": "the possible answers; without them people answer with free text",
}
ACTION: Final = {"type": "object", "description": "the exact action, shown to people"}
JOB: Final = text_schema("its name, such as D-142", 60)


class RunTools:
    """Tools of a program inside a run, which sends messages to the run by `ask`."""

    def __init__(self, ask: Ask) -> None:
        self._send_message = ask

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            Tool(
                "ask_human",
                "Ask people a question. Without a known answer the run ends, and another run"
                " starts with the answer.",
                object_schema(
                    ("question",),
                    question=text_schema("the question", 3000),
                    choices=CHOICES,
                    context=CONTEXT,
                ),
                self._ask,
            ),
            Tool(
                "request_approval",
                "Ask people to approve an action before you do it.",
                object_schema(
                    ("question",),
                    question=text_schema("the action to approve", 3000),
                    action=ACTION,
                    context=CONTEXT,
                ),
                self._approve,
            ),
            Tool(
                "report_progress",
                "Report the progress of the work to people.",
                object_schema(
                    ("done", "total"),
                    done={"type": "integer", "minimum": 0, "maximum": 10**15},
                    total={"type": "integer", "minimum": 1, "maximum": 10**15},
                    text=text_schema("the current step", 5000),
                ),
                self._progress,
            ),
        ]

    async def _ask(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        choices = arguments.get("choices", [])
        fields = question_fields(arguments) | {"choices": choices, "freeform": not choices}
        key = derived_key("ask", (fields["text"], *choices))
        return await self._send("ask", key=key, **fields)

    async def _approve(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        fields = question_fields(arguments)
        key = derived_key("approve", (fields["text"],))
        ends = {"on_deny": "continue", "on_changes": "continue"}
        return await self._send("approve", key=key, **ends, **fields)

    async def _progress(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if arguments["done"] > arguments["total"]:
            raise ToolError("done must not be greater than total")
        await self._send_message("event", kind="progress", payload=arguments)
        return {"stored": True}, "reported"

    async def _send(self, kind: str, **fields: Any) -> tuple[dict[str, Any], str]:
        reply = await self._send_message(kind, **fields)
        if reply["type"] == "park":
            return {"outcome": "open"}, PARKED
        return answer_result(reply)


def question_fields(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a question."""
    names = ("context", "action")
    return {"text": arguments["question"]} | {
        name: arguments[name] for name in names if name in arguments
    }


def answer_result(reply: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return an answer as data and as text."""
    names = ("job", "outcome", "value", "text", "by", "reason", "comments")
    data = {name: reply[name] for name in names if reply.get(name)}
    by = f" by {', '.join(data['by'])}" if data.get("by") else ""
    comments = [str(ReviewComment(**comment)) for comment in data.get("comments", ())]
    answer = data.get("value") or data.get("text") or data.get("reason") or ""
    answer = "\n".join(filter(None, (answer, *comments)))
    return data, f"{humanize(data['outcome'])}{by}" + (f": {answer}" if answer else "")


# The tools of a run about jobs: its own and those that it submits.


SUBMIT_SETTING: Final = "submit_jobs = true in [agents.NAME]"


class JobTools:
    """Tools about jobs.

    A job is submitted for the same agent, repository and person, so that it may do no more than
    this run; a job that another job submitted submits none, and the database counts those of a job
    over all of its runs, so that their number has a limit.
    """

    def __init__(self, run: WorkerRun, repo: str, *, may_submit: bool) -> None:
        self._run = run
        self._repo = repo
        self._may_submit = may_submit

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            Tool(
                "submit_job",
                "Submit a job for this agent on this repository. It runs on its own.",
                object_schema(
                    ("text",),
                    text=text_schema("the instructions", 100_000),
                    title=text_schema("a title; default: the first line of the text", 500),
                    key=text_schema("the same key is the same job; default: of the text", 300),
                    mode={"type": "string", "maxLength": 20, "enum": ["fix", "investigate"]},
                ),
                self._submit,
            ),
            Tool(
                "job_status",
                "Return the status and the result of this job, or of a job that it submitted.",
                object_schema((), job=JOB),
                self._status,
                read_only=True,
            ),
        ]

    async def _submit(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if not self._may_submit:
            raise ToolError(f"this agent may not submit jobs; an operator sets {SUBMIT_SETTING}")
        fields = {name: value for name, value in arguments.items() if name != "key"}
        fields |= {"agent": self._run.job.agent_request.agent, "repo": self._repo}
        key = arguments.get("key") or derived_key("job", (arguments["text"],))
        workflows = self._run.services.workflows
        spawn = workflows.spawn
        try:
            if await self._run.wait(workflows.is_spawned, self._run.job):
                raise ToolError("a job that another job submitted submits no jobs")
            number = await self._run.wait(spawn, self._run.job, f"mcp:{key}", "run_agent", fields)
        except DraftsmanError as error:
            raise ToolError(str(error)) from None
        return {"job": job_name(number)}, f"{job_name(number)} is submitted"

    async def _status(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        caller = self._run.job
        data: dict[str, Any] = {
            "job": caller.name,
            "status": "running",
            "title": caller.own_title,
        }
        try:
            name = arguments.get("job", caller.name)
            if (number := job_number(name)) is None:
                raise ToolError(f"{name!r} is not a job; use a name such as {caller.name}")
            if number != caller.number:
                job = await self._run.wait(self._run.services.workflows.spawned, caller, number)
                data = {"job": job.name, "status": str(job.status), "title": job.title}
                result = json.dumps(job.result, ensure_ascii=False)
                fits = len(result) <= MAX_RESULT
                data |= (
                    {"result": job.result} if fits else {"result_truncated": result[:MAX_RESULT]}
                )
                data["error"] = job.error
        except DraftsmanError as error:
            raise ToolError(str(error)) from None
        data = {name: value for name, value in data.items() if value not in (None, "")}
        return data, json.dumps(data, ensure_ascii=False)
