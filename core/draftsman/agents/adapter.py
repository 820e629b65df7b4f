"""What the adapters of all kinds of agents share: prompts, decisions, checkpoints and the result.

An adapter runs in the sandbox of the agent, and is trusted no more: it starts the agent, and speaks
the agent protocol with the worker. Each permission request becomes a question. The session of the
agent and its files travel with the checkpoints, so that a later run resumes it on any host.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from draftsman.agents.agent_client import AgentClient, RequestRefused, RunParked
from draftsman.agents.permissions import Call, Decision, Permissions
from draftsman.agents.program import AgentFailure, Message

CHECKPOINT_INTERVAL: Final = 60.0
"""Seconds between checkpoints after completed calls of tools."""
MAX_SUMMARY: Final = 20_000
MAX_BODY: Final = 4000
"""Characters of a call that the agent is reminded of."""
NOTHING_SAID: Final = "the agent ended its turn without a message"


class Adapter:
    """A run of an agent: `saved` is the state that checkpoints store."""

    def __init__(self, client: AgentClient, options: argparse.Namespace) -> None:
        self.client = client
        self.command: list[str] = options.command
        self.mode: str | None = options.mode
        self.home: list[str] = options.home
        start = client.start
        self.workspace: str = start["workspace"]
        saved = start["checkpoint"]
        self.saved: dict[str, Any] = saved if isinstance(saved, dict) else {}
        self.name: str = options.name
        self.permissions = Permissions(client, self.name)
        self.roots = {self.workspace: ".", str(Path.home()): "~"}
        self.message = self.summary = ""
        self.denials: list[str] = []
        self.loaded = False
        """Whether the session is that of an earlier run."""
        self.live = False
        """Whether messages are of this run, not of a history that is repeated."""
        self.saved_at = time.monotonic()

    def open_session(self) -> None:
        """Start the agent, and resume the session of an earlier run or create a session."""
        raise NotImplementedError

    def turn(self, prompt: str) -> None:
        """Run a turn of the agent; raises AgentFailure unless it ends by itself."""
        raise NotImplementedError

    def close(self) -> None:
        """End the agent."""
        raise NotImplementedError

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
            self.close()

    # Prompts

    def prompt(self) -> str:
        """Return the first prompt of this run."""
        start = self.client.start
        parts = []
        if not self.loaded:
            request = start["request"]
            parts += [text for text in (request["title"], request["text"]) if text]
            if start["mode"] == "investigate":
                parts.append("Report your findings. Changes of files are not kept.")
        if not self.loaded and (self.saved.get("pending") or start["run"] > 1):
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

    # Messages and calls of the agent

    def flush(self) -> None:
        """Log the message of the agent; the last message is the summary."""
        if self.message.strip():
            self.summary = self.message.strip()
            self.client.send("log", text=self.summary)
        self.message = ""

    def ended(self, tool_id: str, title: str, status: str) -> None:
        """Log the end of a call of a tool, and record that of an allowed call."""
        self.client.send("log", text=f"[{status}] {title[:1000]}")
        self.permissions.finished(tool_id)
        if time.monotonic() - self.saved_at > CHECKPOINT_INTERVAL:
            self.checkpoint()

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
        self.record(call, decision)
        return decision

    def record(self, call: Call, decision: Decision) -> None:
        """Record a decision that the agent gets now."""
        event = {"call": call.digest, "decision": decision.text}
        self.client.send("event", kind="permission", payload=event)
        if not decision.allowed:
            self.denials.append(f"This call was {decision.text}\n\n{call.body[:MAX_BODY]}")

    def checkpoint(self) -> str:
        """Store the session and the workspace; return the id of the tree."""
        reply = self.client.call("checkpoint", data=self.saved, home=self.home)
        self.saved_at = time.monotonic()
        return str(reply.get("tree"))

    def wrong_mode(self, problem: str) -> AgentFailure:
        """Return the error of a mode that is not as configured."""
        text = f"the mode {self.mode!r} of the agent {problem}; correct session_mode"
        return AgentFailure("PERMANENT", "mode", text)


def part_of(message: Message, key: str) -> Message:
    """Return the object with this key; an empty object if there is none."""
    part = message.get(key)
    return part if isinstance(part, dict) else {}


def main(module: str, adapter: Callable[[AgentClient, argparse.Namespace], Adapter]) -> int:
    """Run an adapter until completed, parked or failed; return the exit code."""
    parser = argparse.ArgumentParser(prog=module)
    parser.add_argument("--name", default="the agent")
    parser.add_argument("--mode")
    parser.add_argument("--home", action="append", default=[])
    parser.add_argument("--prompt")
    parser.add_argument("--scratch", action="append", default=[])
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    try:
        client = AgentClient()
    except RunParked:
        return 0
    try:
        adapter(client, options).run()
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
