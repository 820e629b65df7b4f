"""Requests of Codex to its client, as calls that people allow and as questions that they answer.

`codex app-server generate-json-schema` writes the shapes of the messages.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from draftsman.agents.inputs import InputQuestion
from draftsman.agents.permissions import Call
from draftsman.agents.program import Message

SYSTEM_SHELL: Final = re.compile(r"(/usr)?/bin/(ba|da|z)?sh\Z")
NOT_THE_CALL: Final = frozenset(
    {
        *("threadId", "turnId", "itemId", "approvalId", "startedAtMs", "reason", "command"),
        *("commandActions", "availableDecisions", "proposedExecpolicyAmendment"),
        *("proposedNetworkPolicyAmendments", "_meta", "mode", "message", "serverName"),
    }
)
"""Members of a request that are no part of the call."""
DEFAULTS: Final[Mapping[str, Any]] = {"kind": "command", "environmentId": "local"}
DECLINE: Final = "decline"
YES: Final = "yes"
NO: Final = "no"


def command_call(params: Message, roots: Mapping[str, str], workspace: str) -> Call:
    """Return a command; its digest has the command line with the shell, which is not shown."""
    line = str(params.get("command") or "")
    given = {"command": shell_script(line), **_rest(params)}
    if given.get("cwd") == workspace:
        del given["cwd"]
    tool = {"kind": "execute", "title": line, "rawInput": given}
    return _with_reason(Call.of(tool, roots), params)


def edit_call(params: Message, changes: Sequence[Message], roots: Mapping[str, str]) -> Call:
    """Return an edit, of which Codex sends the content of new files and the hunks of others."""
    given = {"changes": list(changes), **_rest(params)}
    diffs = [_diff(change) for change in changes]
    tool = {"kind": "edit", "title": "edit", "rawInput": given, "content": diffs}
    return _with_reason(Call.of(tool, roots), params)


def permissions_call(params: Message, roots: Mapping[str, str]) -> Call:
    """Return a request for permissions of Codex's own sandbox, for a turn."""
    tool = {"kind": "request_permissions", "title": "more permissions", "rawInput": _rest(params)}
    return _with_reason(Call.of(tool, roots), params)


def tool_call(params: Message, roots: Mapping[str, str]) -> Call | None:
    """Return the call that an elicitation of an MCP server asks to allow; None for a question."""
    meta, server = params.get("_meta"), str(params.get("serverName"))
    if isinstance(meta, dict) and meta.get("codex_approval_kind") == "mcp_tool_call":
        name = f"{server}.{meta.get('tool_name')}"
        given = meta.get("tool_params")
        return Call.of({"kind": name, "title": name, "rawInput": given}, roots)
    if params.get("mode") == "url" or (params.get("mode") == "form" and not _properties(params)):
        message = str(params.get("message") or "")
        return Call.of({"kind": server, "title": message, "rawInput": _rest(params)}, roots)
    return None


def user_questions(params: Message) -> list[InputQuestion] | None:
    """Return the questions of `requestUserInput`; None if an answer would be a secret."""
    listed = [item for item in params.get("questions") or [] if isinstance(item, dict)]
    if any(item.get("isSecret") for item in listed):
        return None
    return [
        InputQuestion.of(
            str(item.get("id")),
            str(item.get("question") or ""),
            [
                (str(option.get("label") or ""), str(option.get("description") or ""))
                for option in item.get("options") or []
            ],
            freeform=item.get("isOther") is True,
        )
        for item in listed
    ]


def form_questions(params: Message) -> list[InputQuestion] | None:
    """Return a question for each field of an MCP form; None for another kind of elicitation."""
    if params.get("mode") != "form":
        return None
    message, questions = str(params.get("message") or ""), []
    for name, field in _properties(params).items():
        choices = [(value, "") for value in _values(field)]
        described = field.get("description") or field.get("title")
        text = f"{message}\n\n{described}" if described else message
        if len(_properties(params)) > 1:
            text += f"\n\n({name})"
        choices.append((DECLINE, "the tool gets no answer"))
        freeform = field.get("type") != "boolean" and not _values(field)
        questions.append(InputQuestion.of(name, text, choices, freeform=freeform))
    return questions


def form_content(params: Message, answers: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the content of a form; None if a person declined, or wrote no number for a number."""
    content: dict[str, Any] = {}
    for name, field in _properties(params).items():
        answer = answers[name]
        if answer == DECLINE:
            return None
        try:
            content[name] = _typed(answer, field.get("type"))
        except ValueError:
            return None
    return content


def shell_script(line: str) -> str:
    """Return the script of a command line that runs it with a shell of the system."""
    try:
        words = shlex.split(line)
    except ValueError:
        return line
    if len(words) == 3 and SYSTEM_SHELL.match(words[0]) and words[1] in ("-c", "-lc"):
        return words[2]
    return line


def _rest(params: Message) -> dict[str, Any]:
    return {
        key: value
        for key, value in params.items()
        if value is not None and key not in NOT_THE_CALL and DEFAULTS.get(key) != value
    }


def _diff(change: Message) -> Message:
    kind = change.get("kind")
    kind = kind if isinstance(kind, dict) else {}
    path, diff = str(change.get("path")), str(change.get("diff") or "")
    if kind.get("type") == "add":
        return {"type": "diff", "path": path, "newText": diff}
    if kind.get("type") == "delete":
        return {"type": "diff", "path": f"{path} (deleted)", "oldText": diff}
    if isinstance(target := kind.get("move_path"), str):
        path = f"{path} (moved to {target})"
    return {"type": "diff", "path": path, "patch": diff}


def _with_reason(call: Call, params: Message) -> Call:
    """Return the call with the model's reason, which is shown but no part of the call."""
    reason = params.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        return call
    lines = " ".join(reason.split())[:500]
    return replace(call, body=f"{call.body}\n\nReason of the agent: {lines}")


def _properties(params: Message) -> dict[str, Message]:
    schema = params.get("requestedSchema")
    listed = schema.get("properties") if isinstance(schema, dict) else None
    fields = listed if isinstance(listed, dict) else {}
    return {str(name): field for name, field in fields.items() if isinstance(field, dict)}


def _values(field: Message) -> list[str]:
    if field.get("type") == "boolean":
        return [YES, NO]
    if field.get("type") == "array":
        items = field.get("items")
        return _values({**items, "type": "string"}) if isinstance(items, dict) else []
    listed = field.get("enum")
    if isinstance(listed, list):
        return [str(value) for value in listed]
    listed = field.get("oneOf") or field.get("anyOf")
    constants = listed if isinstance(listed, list) else []
    return [str(item["const"]) for item in constants if isinstance(item, dict) and "const" in item]


def _typed(answer: str, kind: Any) -> Any:
    """Return the value of an answer; raises ValueError if it is not of this type."""
    if kind == "boolean":
        return answer == YES
    if kind == "array":
        return [answer]
    if kind == "integer":
        return int(answer)
    return float(answer) if kind == "number" else answer
