"""The tools of the MCP server inside a run, and what those outside a run share with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from draftsman.agent_runs.mcp.protocol import Tool, ToolError
from draftsman.questions.question import derived_key

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
        return await self._send("approve", key=key, on_deny="continue", **fields)

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
    names = ("job", "outcome", "value", "text", "by", "reason")
    data = {name: reply[name] for name in names if reply.get(name)}
    by = f" by {', '.join(data['by'])}" if data.get("by") else ""
    given = data.get("value") or data.get("text") or data.get("reason")
    return data, f"{data['outcome']}{by}" + (f": {given}" if given else "")
