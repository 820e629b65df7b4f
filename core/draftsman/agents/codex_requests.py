"""Requests of Codex to its client, as calls that people allow and as questions that they answer.

`codex app-server generate-json-schema` writes the shapes of the messages.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from draftsman.agents.inputs import InputQuestion
from draftsman.agents.mcp_forms import fields_of
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
    if params.get("mode") == "url" or (params.get("mode") == "form" and not fields_of(params)):
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
    return call._replace(body=f"{call.body}\n\nReason of the agent: {lines}")
