"""Parts that the adapters of all kinds of agents share: prompts, decisions, checkpoints, result.

An adapter runs in the sandbox of the agent, and is trusted no more: it starts the agent, and speaks
the agent protocol with the worker. Each permission request becomes a question. The session of the
agent and its files travel with the checkpoints, so that a later run resumes it on any host.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from draftsman.agents.agent_client import AgentClient, RequestRefused, RunParked
from draftsman.agents.mcp_forms import InputQuestion, Inputs, form_content, form_questions
from draftsman.agents.permissions import Call, Decision, Permissions
from draftsman.agents.program import AgentFailure, Message, attachment_text, missing_text

# A growing text of an agent, shown in pieces: at most two messages a second.


INTERVAL: Final = 0.5
"""Minimum seconds between two pieces."""
PIECE: Final = 16_000
"""Maximum characters of a piece."""


class TextStream:
    """A message or a thought, of which the pieces that are not shown yet are collected."""

    def __init__(self, client: AgentClient, kind: str) -> None:
        self._client = client
        self._kind = kind
        self._text = ""
        self._sent = 0
        self._sent_at = -INTERVAL

    def add(self, piece: str) -> None:
        """Append a piece, and show what was collected, if it is time."""
        self.send(self._text + piece)

    def send(self, text: str) -> None:
        """Show the rest of this text, if it is time."""
        self._text = text
        if time.monotonic() - self._sent_at >= INTERVAL:
            self._show()

    def end(self, text: str | None = None) -> None:
        """Show the rest of the text; the next piece begins another."""
        self._text = self._text if text is None else text
        self._show()
        self._text = ""
        self._sent = 0

    def _show(self) -> None:
        if not self._text.strip():
            return
        while piece := self._text[self._sent : self._sent + PIECE]:
            self._client.send("activity", kind=self._kind, text=piece, continues=self._sent > 0)
            self._sent += len(piece)
            self._sent_at = time.monotonic()


CHECKPOINT_INTERVAL: Final = 60.0
"""Seconds between checkpoints after completed calls of tools."""
MAX_SUMMARY: Final = 20_000
MAX_BODY: Final = 4000
"""Characters of a call that the agent is reminded of."""
MAX_MESSAGES: Final = 100_000
"""Characters of the messages of people that are saved for a session that cannot be resumed."""
MAX_TITLE: Final = 500
"""Characters of the title of a call, of a path and of a step of the plan."""
MAX_STEPS: Final = 50
PLAN_STATES: Final = ("pending", "completed")
MAKE_NOW: Final = "Make exactly this call now, before any other."
MAKE_AGAIN: Final = "It may have run. Make exactly this call again, unless its effect is there."
NOTHING_SAID: Final = "the agent ended its turn without a message"
UNKNOWN_STATE: Final = frozenset({"agent_exited", "mode"})
"""Failures after which nothing is saved: the session broke off, or people do not guard it."""


class Adapter(ABC):
    """A run of an agent: `saved` is the state that checkpoints store."""

    def __init__(self, client: AgentClient, options: argparse.Namespace) -> None:
        self.client = client
        self.command: list[str] = options.command
        self.mode: str | None = options.mode
        self.home: list[str] = options.home
        self.repo_config: bool = options.repo_config
        """Whether the agent loads its own configuration of the repository."""
        start = client.start
        self.workspace: str = start["workspace"]
        saved = start["checkpoint"]
        self.saved: dict[str, Any] = saved if isinstance(saved, dict) else {}
        self.name: str = options.name
        self.permissions = Permissions(client, self.name)
        self.inputs = Inputs(client, self.name)
        self.roots = {self.workspace: ".", str(Path.home()): "~"}
        self.message = ""
        self.summary = ""
        self.texts = {kind: TextStream(client, kind) for kind in ("message", "thought")}
        self.titles: dict[str, tuple[str, str | None]] = {}
        """Title and kind of the running calls of tools."""
        self.denials: list[str] = []
        self.offered: list[Message] = []
        """Messages of people that the agent got, and has not reacted to."""
        self.received: list[str] = []
        """Ids of the messages that the session of the agent has."""
        self.loaded = False
        """Whether the session is that of an earlier run."""
        self.live = False
        """Whether messages are of this run, not of a history that is repeated."""
        self.saved_at = time.monotonic()

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add the options before the command, which are from the keys of the agent's table."""
        parser.add_argument("--name", default="the agent")
        parser.add_argument("--mode")
        parser.add_argument("--home", action="append", default=[])
        parser.add_argument("--repo-config", action="store_true")

    @abstractmethod
    def open_session(self) -> None:
        """Start the agent, and resume the session of an earlier run or create a session."""

    @abstractmethod
    def turn(self, prompt: str) -> None:
        """Run a turn of the agent; raises AgentFailure unless it ends by itself."""

    @abstractmethod
    def close(self) -> None:
        """End the agent."""

    def deliver(self, text: str) -> bool:
        """Give the agent a message of a person during its turn; False gives it the next prompt.

        Called while the adapter waits for the agent. It must not wait for a reply.
        """
        return False

    def run(self) -> None:
        """Run the agent to the end of its work, then send the result."""
        try:
            self.open_session()
            self.client.send("listen")
            prompt: str | None = self.prompt()
            self.client.on_message = self._deliver
            while prompt is not None:
                self.turn(prompt)
                self.flush()
                self.heard()
                prompt = self.next_prompt()
            self.client.on_message = None
            self.checkpoint()
            summary = self.summary[:MAX_SUMMARY] or NOTHING_SAID
            self.client.call(
                "result", summary=summary, data={"agent": self.name}, messages=self.received
            )
        except RunParked:
            if self.live and "pending" not in self.saved:
                self.checkpoint()  # the worker shuts down; a question has its checkpoint already
            raise
        except AgentFailure as error:
            if self.live and "pending" not in self.saved and error.code not in UNKNOWN_STATE:
                with contextlib.suppress(RequestRefused, RunParked):
                    self.checkpoint()  # the next run continues from here
            raise
        finally:
            self.close()

    # Prompts

    def prompt(self) -> str:
        """Return the first prompt of this run."""
        start = self.client.start
        paragraphs = [] if self.loaded else self.introduction()
        if (decided := self.decided()) is not None:
            paragraphs.append(decided)
        self.saved.pop("pending", None)
        for check in start["failed"]:
            paragraphs.append(f"This check failed: {check['command']}\n{check['output']}")
        if start["failed"]:
            paragraphs.append("Change the files so that these checks pass.")
        paragraphs += self.person_messages()
        return "\n\n".join(paragraphs) or "The run was interrupted. Continue."

    def introduction(self) -> list[str]:
        """Return the request, and what a new session does not know of earlier runs."""
        start = self.client.start
        request = start["request"]
        texts = request["title"], request["text"], attachment_text(start), missing_text(start)
        paragraphs = [text for text in texts if text]
        if start["mode"] == "investigate":
            paragraphs.append("Report your findings. Changes of files are not kept.")
        if self.saved.get("pending") or start["run"] > 1:
            paragraphs.append("An earlier run began this work; its changes are in the workspace.")
        return [*paragraphs, *self.saved.get("messages", [])]

    def next_prompt(self) -> str | None:
        """Return the prompt of another turn: denials, and messages of people; None for no turn."""
        self.client.poll()
        denied = self.denied()
        paragraphs = [denied] if denied else []
        paragraphs += self.person_messages()
        return "\n\n".join(paragraphs) or None

    def person_messages(self) -> list[str]:
        """Return the messages of people that the agent has not got, for its next prompt."""
        messages = self.client.messages
        self.client.messages = []
        self.offered += messages
        return [_quoted(message) for message in messages]

    def heard(self) -> None:
        """Count the messages that the agent got as part of its session: it has reacted."""
        if not self.offered:
            return
        self.received += [message["id"] for message in self.offered]
        texts = [*self.saved.get("messages", []), *map(_quoted, self.offered)]
        while sum(map(len, texts)) > MAX_MESSAGES and len(texts) > 1:
            del texts[0]
        self.saved["messages"] = texts
        self.offered.clear()

    def _deliver(self, message: Message) -> bool:
        if not self.live or not self.deliver(_quoted(message)):
            return False
        self.offered.append(message)
        return True

    def decided(self) -> str | None:
        """Return the decision that ended the wait of an earlier run, for the agent."""
        pending = self.saved.get("pending")
        decision = self.permissions.answered()
        if not isinstance(pending, dict):
            return None
        if "questions" in pending:
            return self._answered(pending)
        if decision is None:
            if not self.permissions.may_have_run(str(pending.get("call"))):
                return None
            return f"The run was stopped during this call:\n\n{pending['body']}\n\n{MAKE_AGAIN}"
        reminder = (
            f"The run was stopped while this call waited for a decision:\n\n{pending['body']}\n"
        )
        if decision.allowed:
            return f"{reminder}\nIt was {decision.text}. {MAKE_NOW}"
        self.permissions.use(pending["call"], self.checkpoint(), decision)
        return f"{reminder}\nIt was {decision.text}. Do not make it again; continue without it."

    def _answered(self, pending: Message) -> str:
        """Return the answers that ended the wait of an earlier run, for the agent."""
        questions = [
            InputQuestion(name, text, tuple(choices), freeform)
            for name, text, choices, freeform in pending["questions"]
        ]
        answers = self.inputs.answer_all(questions)
        if not pending["in_prompt"]:
            return (
                f"The run was stopped while this question waited:\n\n{pending['body']}\n\n"
                "It is answered. Make the same call of the tool again, to get the answer."
            )
        self.inputs.give(questions)
        pairs = "\n\n".join(f"{item.text}\nAnswer: {answers[item.name]}" for item in questions)
        return f"Your questions were answered. Do not ask them again.\n\n{pairs}"

    def denied(self) -> str | None:
        """Return the reasons of the calls denied in this turn; None if none was."""
        denials = self.denials
        self.denials = []
        return "\n\n".join([*denials, "Continue without it."]) if denials else None

    # Messages and calls of the agent

    def said(self, text: str) -> None:
        """Add a piece to the message of the agent, and show the message as it grows."""
        self.message += text
        self.texts["message"].send(self.message)

    def thought(self, text: str) -> None:
        """Show a piece of a thought of the agent."""
        self.texts["thought"].add(text)

    def flush(self) -> None:
        """Show the rest of the message of the agent; the last message is the summary."""
        self.texts["thought"].end()
        self.texts["message"].end(self.message)
        if self.message.strip():
            self.heard()
            self.summary = self.message.strip()
        self.message = ""

    def tool_started(self, tool_id: str, title: str, kind: str | None = None) -> None:
        """Show a call of a tool that the agent makes."""
        self.titles[tool_id] = title, kind
        self.show_tool(tool_id, "running", title, kind)

    def ended(self, tool_id: str, title: str, status: str) -> None:
        """Show the end of a call of a tool, and record that of an allowed call."""
        _, kind = self.titles.pop(tool_id, ("", None))
        self.show_tool(tool_id, "failed" if status == "failed" else "completed", title, kind)
        self.heard()
        self.permissions.finished(tool_id)
        if time.monotonic() - self.saved_at > CHECKPOINT_INTERVAL:
            self.checkpoint()

    def show_tool(self, tool_id: str, state: str, title: str, kind: str | None) -> None:
        """Show the state of a call of a tool."""
        text = " ".join(title.split())[:MAX_TITLE] or "tool"
        fields = {"tool": kind[:100]} if kind else {}
        self.client.send(
            "activity", kind="tool", key=tool_id[:200], state=state, text=text, **fields
        )

    def file_changed(self, path: str, change: str = "changed") -> None:
        """Show a file that the agent `created`, `changed` or `deleted`."""
        name = path.removeprefix(f"{self.workspace}/")[:MAX_TITLE]
        if name:
            self.client.send("activity", kind="file", state=change, text=name)

    def plan(self, entries: Iterable[tuple[str, str]]) -> None:
        """Show the plan of the agent: text and state of each step.

        A state is `pending`, `completed`, or that of a step that runs.
        """
        steps = [
            {"text": text[:MAX_TITLE], "state": state if state in PLAN_STATES else "running"}
            for text, state in itertools.islice(entries, MAX_STEPS)
        ]
        self.client.send("activity", kind="plan", entries=steps)

    def decide(self, call: Call, tool_id: str) -> Decision:
        """Return the decision on a call; raises RunParked while people have not decided."""
        self.heard()
        decision = self.permissions.for_job(call)
        if decision is None:
            title, kind = self.titles.get(tool_id, (call.body, None))
            if self.permissions.answered() is None:
                self.show_tool(tool_id, "pending", title, kind)
            self.saved["pending"] = {"call": call.digest, "body": call.body[:MAX_BODY]}
            tree = self.checkpoint()
            decision = self.permissions.denied(call, tree)
            if decision is None:
                decision = self.permissions.ask(call, tree)
                self.permissions.use(call.digest, tree, decision, tool_id)
            del self.saved["pending"]
            if decision.allowed:
                self.show_tool(tool_id, "running", title, kind)
        self.record(call, decision)
        return decision

    def ask_inputs(self, questions: list[InputQuestion], *, in_prompt: bool) -> dict[str, str]:
        """Return answers by name; raises RunParked while people have not answered.

        `in_prompt`: the next run has the answers in its prompt, and the model does not ask again.
        """
        stored = [[item.name, item.text, list(item.choices), item.freeform] for item in questions]
        body = "\n".join(item.text for item in questions)[:MAX_BODY]
        self.saved["pending"] = {"body": body, "questions": stored, "in_prompt": in_prompt}
        self.checkpoint()
        answers = self.inputs.answer_all(questions)
        del self.saved["pending"]
        self.inputs.give(questions)
        return answers

    def answer_form(self, params: Message) -> Message:
        """Return the answer of people to a form of a server of the Model Context Protocol."""
        questions = form_questions(params)
        if questions is None:
            self.client.send("log", text=f"an elicitation {params.get('mode')!r} is declined")
            return {"action": "decline"}
        content = form_content(params, self.ask_inputs(questions, in_prompt=False))
        return (
            {"action": "decline"} if content is None else {"action": "accept", "content": content}
        )

    def record(self, call: Call, decision: Decision) -> None:
        """Record a decision that the agent gets now."""
        event = {"call": call.digest, "decision": decision.text}
        self.client.send("event", kind="permission", payload=event)
        if not decision.allowed:
            self.denials.append(f"This call was {decision.text}\n\n{call.body[:MAX_BODY]}")

    def checkpoint(self) -> str:
        """Store the session and the workspace; return the id of the tree."""
        reply = self.client.call(
            "checkpoint", data=self.saved, home=self.home, messages=self.received
        )
        self.inputs.finish()  # the session has the answers that the model was given
        self.saved_at = time.monotonic()
        return str(reply.get("tree"))

    def wrong_mode(self, problem: str) -> AgentFailure:
        """Return the error of a mode that is not as configured."""
        text = f"the mode {self.mode!r} of the agent {problem}; correct session_mode"
        return AgentFailure("PERMANENT", "mode", text)


def _quoted(message: Message) -> str:
    text = f"A message from {message['by']}:\n\n{message['text']}"
    return "\n\n".join(filter(None, (text, attachment_text(message))))


def part_of(message: Message, key: str) -> Message:
    """Return the object with this key; an empty object if there is none."""
    part = message.get(key)
    return part if isinstance(part, dict) else {}


def main(module: str, adapter: type[Adapter]) -> int:
    """Run an adapter until completed, parked or failed; return the exit code."""
    parser = argparse.ArgumentParser(prog=module)
    adapter.add_options(parser)
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
