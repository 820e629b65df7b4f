"""The adapter for agents that speak the Agent Client Protocol (ACP), version 1.

{python} -m draftsman.agents.acp [--name NAME] [--mode MODE] [--home PATH]… -- opencode acp
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from draftsman.agents.adapter import Adapter, main, part_of
from draftsman.agents.agent_client import AgentClient
from draftsman.agents.json_rpc import RpcConnection
from draftsman.agents.permissions import Call
from draftsman.agents.program import AgentFailure, Message

VERSION: Final = 1
ENDED: Final = ("completed", "failed")
WORK: Final = ("agent_message_chunk", "agent_thought_chunk", "plan", "tool_call")
"""Updates of a session in which the agent works."""
TRUST: Final = ".draftsman-trusted-folders.json"
"""File in the home with the folders that an agent does not trust."""
STARTED_IN_HOME: Final = "goose"
"""Beginning of the names of programs that run hooks of the folder in which they are started; the
session has its own."""
ANSWERED: Final = '"type":"gemini"'
"""Part of a session of Gemini CLI in which the model has answered."""
GOOSE_SHELL: Final = {"toolName": "shell", "extensionName": "developer"}
"""The tool of Goose that runs commands; Goose gives no kind of a call."""
GOOSE_SUBAGENT: Final = {"toolName": "delegate", "extensionName": "summon"}
"""The tool of Goose that starts a subagent, whose calls are made without a permission."""
CALL_FAILED: Final = ("Ran into this error: ", "transient or recoverable error.")
"""Start and end of a message of Goose, which ends its turn as usual when its model fails."""


class AcpAdapter(Adapter):
    """A run of the agent."""

    def __init__(self, client: AgentClient, options: argparse.Namespace) -> None:
        super().__init__(client, options)
        self.tools: dict[str, Message] = {}
        self.cost = 0.0
        self.mode_set = False
        self.is_active = False
        """Whether the agent has said or done something in this run."""
        distrust(self.workspace)
        keep_sessions(Path.home())
        self.agent = RpcConnection(
            client,
            command=self.command,
            cwd=start_folder(self.command[0], self.workspace),
            on_notice=self.notice,
            on_request=self.request,
            header={"jsonrpc": "2.0"},
        )

    def close(self) -> None:
        """End the agent."""
        self.agent.close()

    # The session

    def open_session(self) -> None:
        """Load the session of an earlier run, or create a session, and set its mode."""
        initialized = self.agent.request(
            "initialize",
            protocolVersion=VERSION,
            clientCapabilities={
                "fs": {"readTextFile": False, "writeTextFile": False},
                "terminal": False,
                "elicitation": {"form": {}},
            },
            clientInfo={"name": "draftsman", "version": str(self.client.start["v"])},
        )
        if initialized.get("protocolVersion") != VERSION:
            text = f"the agent speaks ACP {initialized.get('protocolVersion')}, not {VERSION}"
            raise AgentFailure("PERMANENT", "protocol", text)
        where = {"cwd": self.workspace, "mcpServers": []}
        loads = part_of(initialized, "agentCapabilities").get("loadSession") is True
        opened: Message | None = None
        session = self.saved.get("session")
        if isinstance(session, str) and loads:
            try:
                opened = self.agent.request("session/load", sessionId=session, **where)
            except AgentFailure as error:
                if error.code != "agent_error":
                    raise
                self.client.send("log", text=f"the session is not loaded: {error}")
        self.loaded = opened is not None
        if opened is None:
            self.new_session()
        else:
            self.set_mode(opened)
        self.live = True

    def new_session(self) -> None:
        """Create a session, and set its mode."""
        self.mode_set = False
        opened = self.agent.request("session/new", cwd=self.workspace, mcpServers=[])
        session = opened.get("sessionId")
        if not isinstance(session, str):
            raise AgentFailure("INVALID_OUTPUT", "protocol", "session/new has no sessionId")
        self.saved["session"] = session
        self.loaded = False
        self.set_mode(opened)

    def set_mode(self, opened: Message) -> None:
        """Set the mode of the session, and verify it; raises AgentFailure `mode`."""
        if self.mode is None:
            return
        session = self.saved["session"]
        options = opened.get("configOptions")
        for option in options if isinstance(options, list) else []:
            if option.get("category") == "mode" or option.get("id") == "mode":
                modes = [item.get("value") for item in option.get("options", [])]
                self.check_mode(modes)
                reply = self.agent.request(
                    "session/set_config_option",
                    sessionId=session,
                    configId=option["id"],
                    value=self.mode,
                )
                current = [
                    item.get("currentValue")
                    for item in reply.get("configOptions", [])
                    if item.get("id") == option["id"]
                ]
                if current != [self.mode]:
                    raise self.wrong_mode(f"is {current[0] if current else 'unknown'}")
                self.mode_set = True
                return
        listed = part_of(opened, "modes").get("availableModes")
        self.check_mode([item.get("id") for item in listed] if isinstance(listed, list) else [])
        self.agent.request("session/set_mode", sessionId=session, modeId=self.mode)
        self.mode_set = True

    def check_mode(self, modes: list[Any]) -> None:
        """Raise AgentFailure for a mode that the agent does not have."""
        if self.mode not in modes:
            names = ", ".join(map(str, modes)) or "none"
            raise self.wrong_mode(f"is not among its modes: {names}")

    def turn(self, prompt: str) -> None:
        """Run a turn of the agent; raises AgentFailure unless it ends by itself."""
        try:
            ended = self.send_prompt(prompt)
        except AgentFailure as error:
            if not self.loaded or self.is_active or error.code != "agent_error":
                raise
            # such as OpenCode in another folder than that of the session
            self.client.send("log", text=f"the session does not go on: {error}")
            self.new_session()
            ended = self.send_prompt("\n\n".join([*self.introduction(), prompt]))
        quota = part_of(part_of(ended, "_meta"), "quota")
        self.report(part_of(ended, "usage") or part_of(quota, "token_count"))  # of Gemini CLI
        reason = ended.get("stopReason")
        if reason != "end_turn" and not (reason == "cancelled" and self.denials):
            error_class = "PERMANENT" if reason == "refusal" else "TRANSIENT_APP"
            text = f"the agent ended its turn with {reason}"
            raise AgentFailure(error_class, f"stop:{reason}", text)
        message = self.message.strip()
        if message.startswith(CALL_FAILED[0]) and message.endswith(CALL_FAILED[1]):
            raise AgentFailure("TRANSIENT_APP", "model_error", message)

    def send_prompt(self, prompt: str) -> Message:
        """Return the end of the turn."""
        text = {"type": "text", "text": prompt}
        return self.agent.request("session/prompt", sessionId=self.saved["session"], prompt=[text])

    def report(self, usage: Message) -> None:
        """Report the tokens of calls, if there are any."""
        counts: Message = {}
        for name, key in (("input_tokens", "inputTokens"), ("output_tokens", "outputTokens")):
            count = usage.get(key, usage.get(name))
            if type(count) is int and count > 0:
                counts[name] = count
        if counts:
            self.client.send("usage", **counts)

    # Messages of the agent

    def notice(self, method: str, params: Message) -> None:
        """Handle a notification, of which `session/update` matters."""
        if method != "session/update":
            return
        update = part_of(params, "update")
        kind = update.get("sessionUpdate")
        if kind in ("current_mode_update", "config_option_update"):
            self.follow_mode(update)
        if not self.live:
            return
        self.is_active = self.is_active or kind in WORK
        if kind == "agent_message_chunk":
            self.said(str(part_of(update, "content").get("text") or ""))
            self.report(part_of(part_of(update, "_meta"), "usage"))  # of Qwen Code
        elif kind == "agent_thought_chunk":
            self.thought(str(part_of(update, "content").get("text") or ""))
        elif kind == "plan":
            entries = update.get("entries")
            self.plan(
                (str(entry.get("content") or ""), str(entry.get("status")))
                for entry in (entries if isinstance(entries, list) else [])
                if isinstance(entry, dict)
            )
        elif kind in ("tool_call", "tool_call_update"):
            self.flush()
            self.follow_tool(update)
        elif kind == "usage_update":
            cost = part_of(update, "cost")
            amount = cost.get("amount")
            if cost.get("currency") == "USD" and isinstance(amount, int | float):
                self.client.send("usage", cost_usd=max(amount - self.cost, 0))
                self.cost = max(amount, self.cost)

    def follow_mode(self, update: Message) -> None:
        """Raise AgentFailure once the agent leaves the mode that was set."""
        current = update.get("currentModeId")
        for option in update.get("configOptions") or []:
            if option.get("category") == "mode" or option.get("id") == "mode":
                current = option.get("currentValue")
        if self.mode_set and current is not None and current != self.mode:
            raise self.wrong_mode(f"was changed by the agent to {current!r}")

    def follow_tool(self, update: Message) -> None:
        """Show a call of a tool, and record the end of an allowed call."""
        tool_id = str(update.get("toolCallId"))
        tool = self.tools.setdefault(tool_id, {})
        before = tool.get("title")
        tool.update({key: value for key, value in update.items() if value is not None})
        if goose_tool(tool) == GOOSE_SHELL:
            tool["kind"] = "execute"
        title = str(tool.get("title") or "tool")
        status = update.get("status")
        if status in ENDED:
            self.tools.pop(tool_id)
            self.ended(tool_id, title, str(status))
            if status == "completed":
                self.show_files(tool)
        elif tool.get("title") != before:
            kind = tool.get("kind")
            self.tool_started(tool_id, title, kind if isinstance(kind, str) else None)

    def retitle(self, tool_id: str, title: str, kind: Any) -> None:
        """Show a call by the title of its request: that of its start may name the tool only."""
        self.tools.setdefault(tool_id, {})["title"] = title
        _, kind_at_start = self.titles.get(tool_id, ("", None))
        self.titles[tool_id] = title, kind_at_start or (kind if isinstance(kind, str) else None)

    def show_files(self, tool: Message) -> None:
        """Show the files that a completed call changed."""
        content = tool.get("content")
        for item in content if isinstance(content, list) else []:
            if isinstance(item, dict) and item.get("type") == "diff" and item.get("path"):
                created = not item.get("oldText")
                self.file_changed(str(item["path"]), "created" if created else "changed")

    def request(self, method: str, params: Message) -> Message | None:
        """Answer a request of the agent; None for an unknown method."""
        if method == "elicitation/create":
            self.flush()
            return self.answer_form(params)
        if method != "session/request_permission":
            return None
        self.flush()
        requested = part_of(params, "toolCall")
        tool_id = str(requested.get("toolCallId"))
        started = self.tools.get(tool_id, {})
        fields = {key: item for key, item in requested.items() if item is not None}
        if fields.get("kind") == "other":  # the kind of a call that has none
            fields.pop("kind")
        call = Call.of({**started, **fields}, self.roots)
        if isinstance(title := fields.get("title"), str) and title:
            self.retitle(tool_id, title, fields.get("kind"))
        if goose_tool(started) == GOOSE_SUBAGENT:
            self.client.send("log", text="denied: calls of a subagent would not be asked")
            allowed = False
        else:
            allowed = self.decide(call, tool_id).allowed
        wanted = "allow_once" if allowed else "reject_once"
        offered = params.get("options")
        for option in offered if isinstance(offered, list) else []:
            if option.get("kind") == wanted:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        if allowed:
            text = "the agent offers no way to allow a call a single time"
            raise AgentFailure("PERMANENT", "protocol", text)
        return {"outcome": {"outcome": "cancelled"}}


def goose_tool(tool: Message) -> Any:
    """Return the names of the tool and of its extension, which Goose adds to a call."""
    return part_of(part_of(tool, "_meta"), "goose").get("toolCall")


def start_folder(program: str, workspace: str) -> str:
    """Return the folder in which a program is started."""
    names = {Path(program).name, Path(program).resolve().name}
    in_home = any(name.startswith(STARTED_IN_HOME) for name in names)
    return str(Path.home()) if in_home or "GOOSE_PROVIDER" in os.environ else workspace


def keep_sessions(home: Path) -> None:
    """Rename the sessions of Gemini CLI, and remove the empty copies of those that were loaded.

    It names the file of a session by the minute of its start and the session's id, and finds it by
    its content. To load a session it first creates a file without messages for it: in the same
    minute that overwrites the session, and at the next start both are removed.
    """
    for file in home.glob(".gemini/tmp/*/chats/session-2*.jsonl"):
        session = file.stem.rpartition("-")[2]
        same_session = [path for path in file.parent.glob(f"*-{session}.jsonl") if path != file]
        if same_session and ANSWERED not in file.read_text(encoding="utf-8"):
            file.unlink()
        else:
            name = f"session-earlier-{time.time_ns()}-{file.name.removeprefix('session-')}"
            file.rename(file.with_name(name))


def distrust(workspace: str) -> None:
    """Let Qwen Code and Gemini CLI load no settings of the repository, which name programs.

    Qwen Code trusts every folder unless its settings say otherwise. Other agents ignore the
    variables.
    """
    folders = Path.home() / TRUST
    folders.write_text(json.dumps({workspace: "DO_NOT_TRUST"}), encoding="utf-8")
    settings = Path(__file__).with_name("settings") / "untrusted_folder.json"
    os.environ["QWEN_CODE_SYSTEM_SETTINGS_PATH"] = str(settings)
    for program in ("QWEN_CODE", "GEMINI_CLI"):
        os.environ[f"{program}_TRUSTED_FOLDERS_PATH"] = str(folders)


if __name__ == "__main__":
    sys.exit(main("draftsman.agents.acp", AcpAdapter))
