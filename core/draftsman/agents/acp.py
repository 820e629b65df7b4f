"""The adapter for agents that speak the Agent Client Protocol (ACP), version 1.

    {python} -m draftsman.agents.acp [--name NAME] [--mode MODE] [--home PATH]… -- opencode acp

It runs in the sandbox of the agent, and is trusted no more: it starts the agent, and speaks the
agent protocol with the worker. Each permission request becomes a question. The session of the agent
and its files travel with the checkpoints, so that a later run loads it on any host.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from draftsman.agents.acp_connection import AcpConnection, AgentFailure, Message
from draftsman.agents.agent_client import AgentClient, RequestRefused, RunParked
from draftsman.agents.permissions import Call, Decision, Permissions

VERSION: Final = 1
CHECKPOINT_INTERVAL: Final = 60.0
"""Seconds between checkpoints after completed calls of tools."""
MAX_SUMMARY: Final = 20_000
MAX_BODY: Final = 4000
"""Characters of a call that the agent is reminded of."""
ENDED: Final = ("completed", "failed")
NOTHING_SAID: Final = "the agent ended its turn without a message"


class AcpAdapter:
    """A run of the agent."""

    def __init__(
        self,
        client: AgentClient,
        command: list[str],
        *,
        name: str,
        mode: str | None = None,
        home: tuple[str, ...] = (),
    ) -> None:
        self.client, self.name, self.mode, self.home = client, name, mode, home
        start = client.start
        self.workspace = start["workspace"]
        saved = start["checkpoint"]
        self.saved: dict[str, Any] = saved if isinstance(saved, dict) else {}
        self.permissions = Permissions(client, name)
        self.roots = {self.workspace: ".", str(Path.home()): "~"}
        self.tools: dict[str, Message] = {}
        self.message = self.summary = ""
        self.denials: list[str] = []
        self.cost = 0.0
        self.live = False
        """Whether the updates are of this run, not of the history that a load repeats."""
        self.mode_set = False
        self.saved_at = time.monotonic()
        self.agent = AcpConnection(
            client, command, self.workspace, _environment(), self.update, self.request
        )

    def run(self) -> None:
        """Run the agent to the end of its work, then send the result."""
        try:
            self.open_session()
            prompt: str | None = self.prompt()
            while prompt is not None:
                self.turn(prompt)
                prompt = self.denied()
            self.flush()
            self.checkpoint()
            summary = self.summary[:MAX_SUMMARY] or NOTHING_SAID
            self.client.call("result", summary=summary, data={"agent": self.name})
        except RunParked:
            if self.live and "pending" not in self.saved:
                self.checkpoint()  # the worker shuts down; a question has its checkpoint already
            raise
        finally:
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
            },
            clientInfo={"name": "draftsman", "version": str(self.client.start["v"])},
        )
        if initialized.get("protocolVersion") != VERSION:
            text = f"the agent speaks ACP {initialized.get('protocolVersion')}, not {VERSION}"
            raise AgentFailure("PERMANENT", "protocol", text)
        where = {"cwd": self.workspace, "mcpServers": []}
        loads = _part(initialized, "agentCapabilities").get("loadSession") is True
        opened: Message | None = None
        session = self.saved.get("session")
        if isinstance(session, str) and loads:
            try:
                opened = self.agent.request("session/load", sessionId=session, **where)
            except AgentFailure as error:
                if error.code != "agent_error":
                    raise
                self.client.send("log", text=f"the session is not loaded: {error}")
        self.saved["loaded"] = opened is not None
        if opened is None:
            opened = self.agent.request("session/new", **where)
            session = opened.get("sessionId")
            if not isinstance(session, str):
                raise AgentFailure("INVALID_OUTPUT", "protocol", "session/new has no sessionId")
        self.saved["session"] = session
        self.set_mode(opened)
        self.live = True

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
        listed = _part(opened, "modes").get("availableModes")
        self.check_mode([item.get("id") for item in listed] if isinstance(listed, list) else [])
        self.agent.request("session/set_mode", sessionId=session, modeId=self.mode)
        self.mode_set = True

    def check_mode(self, modes: list[Any]) -> None:
        """Raise AgentFailure for a mode that the agent does not have."""
        if self.mode not in modes:
            known = ", ".join(map(str, modes)) or "none"
            raise self.wrong_mode(f"is not among its modes: {known}")

    def wrong_mode(self, problem: str) -> AgentFailure:
        """Return the error of a mode that is not as configured."""
        text = f"the mode {self.mode!r} of the agent {problem}; correct session_mode"
        return AgentFailure("PERMANENT", "mode", text)

    # Prompts

    def prompt(self) -> str:
        """Return the first prompt of this run."""
        start, loaded = self.client.start, self.saved["loaded"]
        parts = []
        if not loaded:
            request = start["request"]
            parts += [text for text in (request["title"], request["text"]) if text]
            if start["mode"] == "investigate":
                parts.append("Report your findings. Changes of files are not kept.")
        if not loaded and (self.saved.get("pending") or start["run"] > 1):
            parts.append("An earlier run began this work; its changes are in the workspace.")
        if (decided := self.decided()) is not None:
            parts.append(decided)
        self.saved.pop("pending", None)
        for check in start["failed"]:
            parts.append(f"This check failed: {check['command']}\n{check['output']}")
        if start["failed"]:
            parts.append("Change the files so that these checks pass.")
        return "\n\n".join(parts) or "The run was interrupted. Continue."

    def decided(self) -> str | None:
        """Return the decision that ended the wait of an earlier run, for the agent."""
        pending, decision = self.saved.get("pending"), self.permissions.answered()
        if not isinstance(pending, dict) or decision is None:
            return None
        told = f"The run was stopped while this call waited for a decision:\n\n{pending['body']}\n"
        if decision.allowed:
            return f"{told}\nIt was {decision.text}. Make exactly this call now, before any other."
        self.permissions.use(pending["call"], self.checkpoint(), decision)
        return f"{told}\nIt was {decision.text}. Do not make it again; continue without it."

    def denied(self) -> str | None:
        """Return the reasons of the calls denied in this turn; None if none was."""
        denials, self.denials = self.denials, []
        return "\n\n".join([*denials, "Continue without it."]) if denials else None

    def turn(self, prompt: str) -> None:
        """Run a turn of the agent; raises AgentFailure unless it ends by itself."""
        ended = self.agent.request(
            "session/prompt",
            sessionId=self.saved["session"],
            prompt=[{"type": "text", "text": prompt}],
        )
        usage = _part(ended, "usage")
        counts = {
            name: usage[key]
            for name, key in (("input_tokens", "inputTokens"), ("output_tokens", "outputTokens"))
            if isinstance(usage.get(key), int)
        }
        if counts:
            self.client.send("usage", **counts)
        reason = ended.get("stopReason")
        if reason != "end_turn" and not (reason == "cancelled" and self.denials):
            error_class = "PERMANENT" if reason == "refusal" else "TRANSIENT_APP"
            text = f"the agent ended its turn with {reason}"
            raise AgentFailure(error_class, f"stop:{reason}", text)

    # Messages of the agent

    def update(self, params: Message) -> None:
        """Handle a `session/update`."""
        update = _part(params, "update")
        kind = update.get("sessionUpdate")
        if kind in ("current_mode_update", "config_option_update"):
            self.follow_mode(update)
        if not self.live:
            return
        if kind == "agent_message_chunk":
            self.message += str(_part(update, "content").get("text") or "")
        elif kind in ("tool_call", "tool_call_update"):
            self.flush()
            self.follow_tool(update)
        elif kind == "usage_update":
            cost = _part(update, "cost")
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
        """Log a call of a tool, and record the end of an allowed call."""
        tool_id = str(update.get("toolCallId"))
        known = self.tools.setdefault(tool_id, {})
        known.update({key: value for key, value in update.items() if value is not None})
        status = update.get("status")
        if status in ENDED:
            self.tools.pop(tool_id)
            title = str(known.get("title") or "tool")
            self.client.send("log", text=f"[{status}] {title[:1000]}")
            self.permissions.finished(tool_id)
            if time.monotonic() - self.saved_at > CHECKPOINT_INTERVAL:
                self.checkpoint()

    def flush(self) -> None:
        """Log the message of the agent; the last message is the summary."""
        if self.message.strip():
            self.summary = self.message.strip()
            self.client.send("log", text=self.summary)
        self.message = ""

    def request(self, method: str, params: Message) -> Message | None:
        """Answer a request of the agent; None for an unknown method."""
        if method != "session/request_permission":
            return None
        self.flush()
        tool = _part(params, "toolCall")
        tool_id = str(tool.get("toolCallId"))
        known = self.tools.get(tool_id, {})
        own = {key: item for key, item in tool.items() if item is not None}
        call = Call.of({**known, **own}, self.roots)
        decision = self.decide(call, tool_id)
        wanted = "allow_once" if decision.allowed else "reject_once"
        offered = params.get("options")
        for option in offered if isinstance(offered, list) else []:
            if option.get("kind") == wanted:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        if decision.allowed:
            text = "the agent offers no way to allow a call a single time"
            raise AgentFailure("PERMANENT", "protocol", text)
        return {"outcome": {"outcome": "cancelled"}}

    def decide(self, call: Call, tool_id: str) -> Decision:
        """Return the decision on a call; raises RunParked while people have not decided."""
        decision = self.permissions.for_job(call)
        if decision is None:
            self.saved["pending"] = {"call": call.digest, "body": call.body[:MAX_BODY]}
            tree = self.checkpoint()
            decision = self.permissions.denied(call, tree)
            if decision is None:
                decision = self.permissions.ask(call, tree)
                self.permissions.use(call.digest, tree, decision, tool_id)
            del self.saved["pending"]
        event = {"call": call.digest, "decision": decision.text}
        self.client.send("event", kind="permission", payload=event)
        if not decision.allowed:
            self.denials.append(f"This call was {decision.text}\n\n{call.body[:MAX_BODY]}")
        return decision

    def checkpoint(self) -> str:
        """Store the session and the workspace; return the id of the tree."""
        data = {key: value for key, value in self.saved.items() if key != "loaded"}
        reply = self.client.call("checkpoint", data=data, home=self.home)
        self.saved_at = time.monotonic()
        return str(reply.get("tree"))


def _part(message: Message, key: str) -> Message:
    part = message.get(key)
    return part if isinstance(part, dict) else {}


def _environment() -> dict[str, str]:
    """Return the environment without the path of this module, which is not the agent's."""
    own = os.environ.get("PYTHONPATH") == str(Path(__file__).parents[2])
    return {key: item for key, item in os.environ.items() if not (own and key == "PYTHONPATH")}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="draftsman.agents.acp")
    parser.add_argument("--name", default="the agent")
    parser.add_argument("--mode")
    parser.add_argument("--home", action="append", default=[])
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def main() -> int:
    """Run until completed, parked or failed; return the exit code."""
    options = _options()
    try:
        client = AgentClient()
    except RunParked:
        return 0
    try:
        AcpAdapter(
            client,
            options.command,
            name=options.name,
            mode=options.mode,
            home=tuple(options.home),
        ).run()
    except RunParked:
        return 0
    except AgentFailure as error:
        return _fail(client, error.error_class, error.code, error)
    except RequestRefused as error:
        return _fail(client, error.error_class, "refused", error)
    return 0


def _fail(client: AgentClient, error_class: str, code: str, error: Exception) -> int:
    client.send("error", **{"class": error_class, "code": code[:100], "message": str(error)})
    return 1


if __name__ == "__main__":
    sys.exit(main())
