"""The adapter for Codex, which it drives through `codex app-server`.

{python} -m draftsman_agents.codex [--name NAME] [--mode POLICY] [--home PATH]… -- codex app-server

`thread/start` trusts a repository whose commands run without Codex's own sandbox, and would start
the servers and hooks of its `.codex`: the configuration that the adapter passes forbids this,
unless the repository's profile allows it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from draftsman.agents.adapter import Adapter, main, part_of
from draftsman.agents.agent_client import AgentClient
from draftsman.agents.json_rpc import RpcConnection
from draftsman.agents.mcp_forms import InputQuestion, fields_of
from draftsman.agents.permissions import Call
from draftsman.agents.program import AgentFailure, Message

# Requests of Codex to its client, as calls that people allow and as questions that they answer.
#
# `codex app-server generate-json-schema` writes the shapes of the messages.


SYSTEM_SHELL: Final = re.compile(r"(/usr)?/bin/(ba|da|z)?sh\Z")
NOT_THE_CALL: Final = frozenset(
    {
        "_meta",
        "approvalId",
        "availableDecisions",
        "command",
        "commandActions",
        "itemId",
        "message",
        "mode",
        "proposedExecpolicyAmendment",
        "proposedNetworkPolicyAmendments",
        "reason",
        "serverName",
        "startedAtMs",
        "threadId",
        "turnId",
    }
)
"""Members of a request that are no part of the call."""
DEFAULTS: Final[Mapping[str, Any]] = {"kind": "command", "environmentId": "local"}


def command_call(params: Message, roots: Mapping[str, str], workspace: str) -> Call:
    """Return a command; its digest has the command line with the shell, which is not shown."""
    line = str(params.get("command") or "")
    fields = {"command": shell_script(line), **_rest(params)}
    if fields.get("cwd") == workspace:
        del fields["cwd"]
    tool = {"kind": "execute", "title": line, "rawInput": fields}
    return _with_reason(Call.of(tool, roots), params)


def edit_call(params: Message, changes: Sequence[Message], roots: Mapping[str, str]) -> Call:
    """Return an edit, of which Codex sends the content of new files and the hunks of others."""
    fields = {"changes": list(changes), **_rest(params)}
    diffs = [_diff(change) for change in changes]
    tool = {"kind": "edit", "title": "edit", "rawInput": fields, "content": diffs}
    return _with_reason(Call.of(tool, roots), params)


def permissions_call(params: Message, roots: Mapping[str, str]) -> Call:
    """Return a request for permissions of Codex's own sandbox, for a turn."""
    tool = {"kind": "request_permissions", "title": "more permissions", "rawInput": _rest(params)}
    return _with_reason(Call.of(tool, roots), params)


def tool_call(params: Message, roots: Mapping[str, str]) -> Call | None:
    """Return the call that an elicitation of an MCP server asks to allow; None for a question."""
    meta = params.get("_meta")
    server = str(params.get("serverName"))
    if isinstance(meta, dict) and meta.get("codex_approval_kind") == "mcp_tool_call":
        name = f"{server}.{meta.get('tool_name')}"
        tool_input = meta.get("tool_params")
        return Call.of({"kind": name, "title": name, "rawInput": tool_input}, roots)
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
    path = str(change.get("path"))
    diff = str(change.get("diff") or "")
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


UNTRUSTED: Final = "untrusted"
TRUSTED: Final = "trusted"
POLICIES: Final = (UNTRUSTED, "on-request")
"""Approval policies that ask: `on-request` asks only where the model wants it."""
API: Final = "https://api.openai.com/v1"
SETTINGS: Final = (
    'web_search="disabled"',
    "features.unified_exec_tty=false",  # input of a running program is not asked for
    "features.multi_agent=false",
    "agents.enabled=false",  # with models that have agents of their own, too
    "features.goals=false",
    "features.default_mode_request_user_input=true",
    "suppress_unstable_features_warning=true",
)
REVIEWED: Final = ("item/autoApprovalReview/started", "item/autoApprovalReview/completed")
PERMANENT: Final = ("unauthorized", "badRequest", "modelNotFound", "cyberPolicy")
"""Errors of turns for which a retry is useless."""
ENDED: Final = ("completed", "failed", "declined")


class CodexAdapter(Adapter):
    """A run of Codex: a thread, whose turns have the prompts."""

    def __init__(self, client: AgentClient, options: argparse.Namespace) -> None:
        super().__init__(client, options)
        self.mode = self.mode or UNTRUSTED
        self.policy = self.mode
        self.model = ""
        self.items: dict[str, Message] = {}
        self.turn_id = ""
        self.turn_ended: Message | None = None
        self.counted: Message | None = None
        self.trust = TRUSTED if self.repo_config else UNTRUSTED
        settings = configuration(self.workspace, os.environ, self.trust)
        command = [*self.command, *(part for item in settings for part in ("-c", item))]
        self.agent = RpcConnection(
            client,
            command=command,
            cwd=self.workspace,
            on_notice=self.notice,
            on_request=self.request,
            header={},
        )

    def close(self) -> None:
        """End Codex."""
        self.agent.close()

    # The thread

    def open_session(self) -> None:
        """Resume the thread of an earlier run, or start a thread, and verify its settings."""
        if self.policy not in POLICIES:
            raise self.wrong_mode(f"is not among its modes: {', '.join(POLICIES)}")
        self.agent.request(
            "initialize",
            clientInfo={"name": "draftsman", "version": str(self.client.start["v"])},
            capabilities={"experimentalApi": True},
        )
        self.agent.notify("initialized")
        wanted = {
            "cwd": self.workspace,
            "approvalPolicy": self.policy,
            "approvalsReviewer": "user",
            "sandbox": "danger-full-access",
        }
        opened: Message | None = None
        if isinstance(thread := self.saved.get("session"), str):
            try:
                opened = self.agent.request("thread/resume", threadId=thread, **wanted)
            except AgentFailure as error:
                if error.code != "agent_error":
                    raise
                self.client.send("log", text=f"the thread is not resumed: {error}")
        self.loaded = opened is not None
        if opened is None:
            opened = self.agent.request("thread/start", historyMode="legacy", **wanted)
        thread = part_of(opened, "thread").get("id")
        if not isinstance(thread, str):
            raise AgentFailure("INVALID_OUTPUT", "protocol", "the thread has no id")
        self.saved["session"] = thread
        self.model = str(opened.get("model") or "")
        self.verify(opened, part_of(opened, "sandbox"))
        self.verify_configuration()
        self.live = True

    def verify(self, settings: Message, sandbox: Message) -> None:
        """Raise AgentFailure `mode` unless people decide, in the sandbox of the run."""
        if (policy := settings.get("approvalPolicy")) != self.policy:
            raise self.wrong_mode(f"is {policy!r}")
        if (reviewer := settings.get("approvalsReviewer")) != "user":
            raise self.wrong_mode(f"has the reviewer {reviewer!r}, not people")
        if (kind := sandbox.get("type")) != "dangerFullAccess":
            raise self.wrong_mode(f"has a sandbox of its own: {kind}")

    def verify_configuration(self) -> None:
        """Raise AgentFailure `mode` for another trust level, subagents or programs with input."""
        config = part_of(self.agent.request("config/read", cwd=self.workspace), "config")
        projects = part_of(config, "projects")
        differs = any(
            part_of(projects, folder).get("trust_level") != self.trust
            for folder in folders_of(self.workspace)
        )
        differs = differs or part_of(config, "agents").get("enabled", False) is not False
        if differs or part_of(config, "features").get("unified_exec_tty") is not False:
            text = "this version of Codex does not apply the configuration that draftsman passes"
            raise AgentFailure("PERMANENT", "mode", text)

    def turn(self, prompt: str) -> None:
        """Run a turn of the thread; raises AgentFailure unless it completes."""
        self.turn_ended = None
        started = self.agent.request(
            "turn/start",
            threadId=self.saved["session"],
            input=[{"type": "text", "text": prompt}],
        )
        self.turn_id = str(part_of(started, "turn").get("id"))
        while self.turn_ended is None or self.turn_ended.get("id") != self.turn_id:
            self.agent.handle_next()
        if (status := self.turn_ended.get("status")) != "completed":
            raise _turn_failure(str(status), part_of(self.turn_ended, "error"))

    # Messages of Codex

    def notice(self, method: str, params: Message) -> None:
        """Handle a notification."""
        if method in REVIEWED:
            raise self.wrong_mode("has a model as the reviewer of this call")
        if method in ("item/started", "item/completed"):
            self.follow_item(part_of(params, "item"), in_thread=self.is_in_thread(params))
        elif not self.is_in_thread(params):
            return
        elif method == "thread/settings/updated":
            settings = part_of(params, "threadSettings")
            self.verify(settings, part_of(settings, "sandboxPolicy"))
        elif method == "turn/completed":
            self.turn_ended = part_of(params, "turn")
        elif method == "thread/tokenUsage/updated" and params.get("turnId") == self.turn_id:
            self.count(part_of(params, "tokenUsage"))
        elif method == "error":
            text = part_of(params, "error").get("message")
            self.client.send("log", text=f"error: {text}"[:2000])

    def is_in_thread(self, params: Message) -> bool:
        """Return whether a message is of the thread, not of an agent that the model started."""
        return params.get("threadId") == self.saved.get("session")

    def count(self, usage: Message) -> None:
        """Report the tokens since the last report; the first has those of a resumed thread."""
        total = part_of(usage, "total")
        counted = self.counted
        self.counted = total
        new = part_of(usage, "last") if counted is None else total
        before = {} if counted is None else counted
        counts = {
            name: _number(new, key) - _number(before, key)
            for name, key in (("input_tokens", "inputTokens"), ("output_tokens", "outputTokens"))
        }
        if all(number >= 0 for number in counts.values()) and any(counts.values()):
            self.client.send("usage", **counts, model=self.model[:100] or None)

    def follow_item(self, item: Message, *, in_thread: bool) -> None:
        """Show a message or a call of a tool, and record the end of an allowed call."""
        item_id = str(item.get("id"))
        status = item.get("status")
        if item.get("type") == "agentMessage":
            if in_thread and item.get("completedAtMs") is not None:
                self.message = str(item.get("text") or "")
                self.flush()
        elif status in ENDED:
            self.items.pop(item_id, None)
            self.ended(self.tool_id(item), _title(item), str(status))
        elif status == "inProgress":
            self.items[item_id] = item
            self.tool_started(self.tool_id(item), _title(item), str(item.get("type")))

    @staticmethod
    def tool_id(item: Message) -> str:
        """Return the id of a call: a request to allow a tool of an MCP server has no other."""
        if item.get("type") == "mcpToolCall":
            return f"{item.get('server')}.{item.get('tool')}"
        return str(item.get("id"))

    def request(self, method: str, params: Message) -> Message | None:
        """Answer a request of Codex; None for an unknown method."""
        item_id = str(params.get("itemId"))
        if method == "item/commandExecution/requestApproval":
            call = command_call(params, self.roots, self.workspace)
            return _decision(self.decide(call, item_id).allowed)
        if method == "item/fileChange/requestApproval":
            return _decision(self.allow_edit(params, item_id))
        if method == "item/permissions/requestApproval":
            allowed = self.decide(permissions_call(params, self.roots), item_id).allowed
            permissions = part_of(params, "permissions")
            granted = {key: value for key, value in permissions.items() if value is not None}
            return {"permissions": granted if allowed else {}, "scope": "turn"}
        if method == "item/tool/requestUserInput":
            return {"answers": self.answer_user_input(params)}
        if method == "mcpServer/elicitation/request":
            return self.answer_elicitation(params)
        return None

    def allow_edit(self, params: Message, item_id: str) -> bool:
        """Return whether an edit is allowed; an edit that Codex did not show is denied."""
        changes = self.items.get(item_id, {}).get("changes")
        if not isinstance(changes, list) or not changes:
            self.denials.append("An edit was denied, because its changes were not shown.")
            return False
        return self.decide(edit_call(params, changes, self.roots), item_id).allowed

    def answer_user_input(self, params: Message) -> Message:
        """Return the answers of people to the questions of the model."""
        questions = user_questions(params)
        if questions is None:
            self.client.send("log", text="a question for a secret is not asked")
            return {}
        answers = self.ask_inputs(questions, in_prompt=True)
        return {name: {"answers": [answer]} for name, answer in answers.items()}

    def answer_elicitation(self, params: Message) -> Message:
        """Return the answer of people to a server of the Model Context Protocol (MCP)."""
        if (call := tool_call(params, self.roots)) is not None:
            tool = part_of(params, "_meta").get("tool_name")
            decision = self.decide(call, f"{params.get('serverName')}.{tool}")
            if not decision.allowed:
                return {"action": "decline"}
            return {"action": "accept", "content": {} if params.get("mode") == "form" else None}
        return self.answer_form(params)


def folders_of(workspace: str) -> list[str]:
    """Return the paths by which Codex may know the workspace."""
    return sorted({workspace, str(Path(workspace).resolve())})


def configuration(
    workspace: str, environment: Mapping[str, str], trust: str = UNTRUSTED
) -> list[str]:
    """Return settings for `-c`, which override all files of configuration.

    The configuration of a trusted repository is loaded.

    With a key in the environment, which is the token of the run where there is a gateway, the
    model is called there.
    """
    levels = [f"{_toml(path)}={{trust_level={_toml(trust)}}}" for path in folders_of(workspace)]
    settings = [f"projects={{{','.join(levels)}}}", *SETTINGS]
    if "OPENAI_API_KEY" not in environment:
        return settings
    url = environment.get("OPENAI_BASE_URL")
    retries = ",request_max_retries=0,stream_max_retries=0" if url else ""
    provider = (
        f'{{name="draftsman",base_url={_toml(url or API)},wire_api="responses"'
        f',env_key="OPENAI_API_KEY"{retries}}}'
    )
    return [*settings, f"model_providers.draftsman={provider}", 'model_provider="draftsman"']


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _decision(allowed: bool) -> Message:
    return {"decision": "accept" if allowed else "decline"}


def _number(counts: Message, key: str) -> int:
    value = counts.get(key)
    return value if isinstance(value, int) else 0


def _title(item: Message) -> str:
    if isinstance(command := item.get("command"), str):
        return shell_script(command)
    changes = item.get("changes")
    paths = [str(change.get("path")) for change in changes or [] if isinstance(change, dict)]
    return ", ".join(paths) or str(item.get("tool") or item.get("type"))


def _turn_failure(status: str, error: Message) -> AgentFailure:
    info: Any = error.get("codexErrorInfo")
    name = next(iter(info), "error") if isinstance(info, dict) else str(info or status)
    code = part_of(info, name).get("httpStatusCode") if isinstance(info, dict) else None
    text = f"the agent ended its turn with {status}: {error.get('message') or name}"[:2000]
    if code == 401 or name == "unauthorized":
        hint = "pass its key with pass_env, or configure a gateway"
        return AgentFailure("PERMANENT", "authentication", f"{text}; {hint}")
    error_class = "PERMANENT" if name in PERMANENT or code == 400 else "TRANSIENT_APP"
    return AgentFailure(error_class, f"turn:{name}", text)


if __name__ == "__main__":
    sys.exit(main("draftsman_agents.codex", CodexAdapter))
