"""The adapter for Claude Code, which waits for people without a process.

{python} -m draftsman_agents.claude [--mode MODE] [--home PATH]… [--allow TOOL]… -- claude

A hook asks the adapter about each call. A call that people have to decide is deferred: Claude Code
exits and keeps the exact call in its session, and makes it when the session is resumed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import stat
import sys
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from draftsman.agents.adapter import MAX_BODY, Adapter, main, part_of
from draftsman.agents.agent_client import AgentClient, RunParked
from draftsman.agents.hook_socket import HookSocket
from draftsman.agents.mcp_forms import matching_key, stored_value
from draftsman.agents.permissions import Call
from draftsman.agents.program import AgentFailure, AgentProgram, Message
from draftsman_agents import claude_hook

# Session files of Claude Code: JSON lines, a file for each session.


SESSIONS: Final = ".claude/projects"
"""Folder below HOME."""
MARKS: Final = (b'"hook_deferred_tool"', b'"tool_result"')
"""Texts of the lines that matter; the others are not parsed."""


def transcript_of(session: Any) -> Path | None:
    """Return the file of a session; its folder has the name of an earlier workspace."""
    if not isinstance(session, str):
        return None
    return next((Path.home() / SESSIONS).glob(f"*/{session}.jsonl"), None)


def deferred_call(transcript: Path | None) -> str | None:
    """Return the id of the call that the program makes when the session is resumed."""
    if transcript is None:
        return None
    deferred: str | None = None
    with transcript.open("rb") as lines:
        for line in lines:
            if not any(mark in line for mark in MARKS):
                continue
            try:
                entry = json.loads(line)
            except ValueError:  # the last line of a program that was killed
                continue
            attachment = entry.get("attachment")
            message = entry.get("message")
            if isinstance(attachment, dict) and attachment.get("type") == "hook_deferred_tool":
                deferred = str(attachment.get("toolUseID"))
            elif deferred in _results(message):
                deferred = None
    return deferred


def _results(message: Any) -> set[str]:
    content = message.get("content") if isinstance(message, dict) else None
    return {
        str(block.get("tool_use_id"))
        for block in (content if isinstance(content, list) else [])
        if isinstance(block, dict)
    }


# Calls of the tools of Claude Code, as people see them.


ASK: Final = "AskUserQuestion"
"""Tool with which the model asks the person."""
MAX_FILE: Final = 1 << 20
"""Maximum bytes of a file whose text a diff begins with."""
MAX_TEXT: Final = 2500
MAX_VALUE: Final = 150
MAX_DESCRIPTION: Final = 500
"""Maximum characters of a question, a choice and its description."""
SEVERAL: Final = "Several choices are possible: answer in your own words, separated by commas."


def call_of(event: Mapping[str, Any], roots: Mapping[str, str]) -> Call:
    """Return the call of an event of the hook."""
    name = str(event.get("tool_name"))
    tool_input = event.get("tool_input")
    fields = tool_input if isinstance(tool_input, dict) else {}
    tool = {
        "kind": "execute" if name == "Bash" else name,
        "title": name,
        "rawInput": tool_input,
        "content": _diffs(name, fields),
        "cwd": event.get("cwd"),
    }
    return Call.of(tool, roots)


def questions_of(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages `ask`, without their keys, of a call of the tool that asks."""
    tool_input = event.get("tool_input")
    listed = tool_input.get("questions") if isinstance(tool_input, dict) else None
    return [_question(item) for item in (listed if isinstance(listed, list) else []) if _asks(item)]


def with_answers(event: Mapping[str, Any], answers: list[str]) -> dict[str, Any]:
    """Return the input of the call with the answers to its questions, in their order."""
    tool_input: dict[str, Any] = event["tool_input"]
    questions = [item["question"] for item in tool_input["questions"] if _asks(item)]
    return {**tool_input, "answers": dict(zip(questions, answers, strict=True))}


def _asks(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("question"), str)


def _question(item: Mapping[str, Any]) -> dict[str, Any]:
    options = item.get("options")
    choices = [
        {
            "value": option["label"],
            "description": str(option.get("description") or "")[:MAX_DESCRIPTION],
        }
        for option in (options if isinstance(options, list) else [])
        if isinstance(option, dict)
        and isinstance(option.get("label"), str)
        and stored_value(option["label"])
    ]
    text = item["question"][:MAX_TEXT] or "…"
    labels = [choice["value"] for choice in choices]
    if len({matching_key(value) for value in labels}) < len(labels) or any(
        len(unicodedata.normalize("NFKC", value)) > MAX_VALUE for value in labels
    ):
        text = "\n".join([text, "", *labels])[:MAX_TEXT]
        choices = []
    context = SEVERAL if item.get("multiSelect") is True else None
    return {"text": text, "choices": choices, "freeform": True, "context": context}


def _diffs(name: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the change of the file by a call that edits it."""
    path = str(fields.get("file_path") or fields.get("notebook_path") or "")
    if name == "Write":
        return [_diff(path, _text_of(path) or "", str(fields.get("content") or ""))]
    if name == "Edit":
        old = str(fields.get("old_string") or "")
        new = str(fields.get("new_string") or "")
        text = _text_of(path)
        if text is None or not old or old not in text:
            return [_diff(path, old, new)]
        count = -1 if fields.get("replace_all") is True else 1
        return [_diff(path, text, text.replace(old, new, count))]
    return []


def _diff(path: str, old: str, new: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def _text_of(path: str) -> str | None:
    """Return the text of a regular file; None if it has none that can be shown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE:
            return None
        return file.read().decode(errors="replace")


TOOLS: Final = (ASK, "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write")
"""Built-in tools, unless the command has `--tools`."""
FORBIDDEN_MODES: Final = ("auto", "bypassPermissions")
"""Modes in which a model, or nothing, decides in the place of people."""
API: Final = "https://api.anthropic.com"
HOOK_SECONDS: Final = 600
EXIT_SECONDS: Final = 20.0
"""Time to exit after a result."""
DEFERRED: Final = "tool_deferred"
REFUSAL: Final = "refusal"
LATER: Final = (
    "This call was not made, because another call of this turn waits for the decision of a person."
    " Make it again when you have the result of that call."
)
SUBAGENT: Final = "Subagents may not make this call. Make it in the main conversation."
UNDECIDED: Final = "There is no decision on this call, so it was not made."


class DeferredCall(NamedTuple):
    """A call that waits for people: a permission, or questions of the model."""

    tool_id: str
    call: Call | None
    asks: tuple[dict[str, Any], ...] = ()


class ClaudeAdapter(Adapter):
    """A run of Claude Code: each turn, and each resumed call, may be a process of its own."""

    def __init__(self, client: AgentClient, options: argparse.Namespace) -> None:
        super().__init__(client, options)
        self.allowed = frozenset(options.allow)
        self.mode = self.mode or "default"
        self.hooks = HookSocket(Path.home(), self.decide_call)
        self.program: AgentProgram | None = None
        self.deferred: DeferredCall | None = None
        self.expected: str | None = part_of(self.saved, "pending").get("call")
        """Digest of the call that people were asked about."""
        self.answered = False
        """Whether the decision on that call came in this run."""
        self.granted: dict[str, Any] = {}
        """Inputs of the calls that the hook allowed, by id of the call."""

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--allow", action="append", default=[])

    def close(self) -> None:
        """End the program."""
        if self.program is not None:
            self.program.close()
        self.hooks.close()

    # The session

    def open_session(self) -> None:
        """Find the session of an earlier run, or name a new session."""
        if self.mode in FORBIDDEN_MODES:
            raise self.wrong_mode("lets calls pass without people")
        self.loaded = transcript_of(self.saved.get("session")) is not None
        if not self.loaded:
            import uuid

            self.saved["session"] = str(uuid.uuid4())
        self.live = True

    def start(self) -> AgentProgram:
        """Start the program with the session."""
        transcript = transcript_of(self.saved["session"])
        session = ("--resume", str(transcript))
        if transcript is None:
            session = ("--session-id", self.saved["session"])
        hook = (sys.executable, "-I", "-S", claude_hook.__file__, str(self.hooks.path))
        entry = {"type": "command", "command": shlex.join(hook), "timeout": HOOK_SECONDS}
        settings: dict[str, Any] = {
            "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [entry]}]},
            "permissions": {"disableBypassPermissionsMode": "disable"},
            "disableAllHooks": False,  # overrides that of the repository
        }
        sources = ["--setting-sources", "user", "--strict-mcp-config"]
        if self.repo_config:
            sources = ["--setting-sources", "user,project"]
            # the repository must not send the key to another server
            settings["env"] = {"ANTHROPIC_BASE_URL": os.environ.get("ANTHROPIC_BASE_URL", API)}
        tools = () if "--tools" in self.command else ("--tools", ",".join(TOOLS))
        command = (
            *self.command,
            *tools,
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-prompt-tool",
            "stdio",
            "--permission-mode",
            str(self.mode),
            *sources,
            "--settings",
            json.dumps(settings),
            *session,
        )
        program = AgentProgram(self.client, command, self.workspace)
        program.serve(self.hooks.fileno(), self.hooks.answer)
        return program

    # Turns

    def prompt(self) -> str:
        """Return the first prompt; empty if the session makes its pending call without any."""
        deferred_id = deferred_call(transcript_of(self.saved["session"]))
        pending = part_of(self.saved, "pending")
        if deferred_id is not None and (
            deferred_id == pending.get("tool_id") or "questions" in pending
        ):
            return ""
        return super().prompt()

    def decided(self) -> str | None:
        """Return the decision on a call that the session does not make by itself."""
        kinds = part_of(self.saved, "pending").keys() & {"call", "questions"}
        return super().decided() if kinds else None

    def turn(self, prompt: str) -> None:
        """Run a turn to its end; raises RunParked for a call that waits for people."""
        while True:
            if self.program is None:
                self.program = self.start()
            if prompt:
                message = {"role": "user", "content": prompt}
                self.program.send(
                    {
                        "type": "user",
                        "message": message,
                        "parent_tool_use_id": None,
                        "session_id": self.saved["session"],
                    }
                )
            result = self.follow(self.program)
            if not prompt or self.deferred is not None:
                self.program.finish(EXIT_SECONDS)
                self.program = None
            if self.deferred is None:
                self.check(result)
                return
            prompt = self.ask_people(self.deferred)

    def denied(self) -> str | None:
        """Return a prompt for a pending call that the resumed session did not make.

        The reasons of denied calls are their results already.
        """
        self.denials.clear()
        return None if "pending" not in self.saved else super().prompt()

    def follow(self, program: AgentProgram) -> Message:
        """Handle the messages of the program until the result of its turn."""
        while True:
            message = program.receive()
            kind = message.get("type")
            if kind == "result":
                self.flush()
                self.count(message)
                return message
            if kind == "system" and message.get("subtype") == "init":
                self.check_mode(message.get("permissionMode"))
            elif kind == "assistant":
                self.follow_message(message)
            elif kind == "user":
                self.follow_results(message)
            elif kind == "control_request":
                program.send(self.control(message))

    def check(self, result: Message) -> None:
        """Raise AgentFailure unless the agent ended its turn by itself."""
        reason = str(result.get("stop_reason"))
        if reason == REFUSAL:  # is_error, too, without a status of the provider
            text = f"the agent ended its turn with {reason}: {result.get('result') or self.summary}"
            raise AgentFailure("PERMANENT", f"stop:{reason}", text[:2000])
        if result.get("subtype") == "success" and not result.get("is_error"):
            if reason.startswith(DEFERRED):
                text = f"the agent ended its turn with {reason}"
                raise AgentFailure("TRANSIENT_APP", f"stop:{reason}", text)
            self.summary = self.summary or str(result.get("result") or "")
            return
        status = result.get("api_error_status")
        ended = result.get("terminal_reason") or result.get("subtype")
        text = f"the agent ended its turn with {ended}: {result.get('result') or 'no message'}"
        if status == 401:
            hint = "pass its key with pass_env, or configure its gateway"
            raise AgentFailure("PERMANENT", "authentication", f"{text[:1900]}; {hint}")
        error_class = "PERMANENT" if status in (400, 402, 403) else "TRANSIENT_APP"
        raise AgentFailure(error_class, f"stop:{ended}", text[:2000])

    def count(self, result: Message) -> None:
        """Report tokens and cost of the turn."""
        for model, usage in part_of(result, "model_usage_since_last_result").items():
            if not isinstance(usage, dict):
                continue
            keys = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
            self.client.send(
                "usage",
                model=str(model)[:200],
                input_tokens=sum(int(usage.get(key) or 0) for key in keys),
                output_tokens=int(usage.get("outputTokens") or 0),
                cost_usd=float(usage.get("costUSD") or 0),
            )

    # Messages

    def follow_message(self, message: Message) -> None:
        """Add the text of the agent, and log its calls."""
        if message.get("parent_tool_use_id") is not None:
            return
        for block in _blocks(message):
            if block.get("type") == "text":
                self.said(str(block.get("text") or ""))
            elif block.get("type") == "tool_use":
                self.flush()
                self.tool_started(str(block.get("id")), _title(block), str(block.get("name")))

    def follow_results(self, message: Message) -> None:
        """Record the ends of calls."""
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                tool_id = str(block.get("tool_use_id"))
                status = "failed" if block.get("is_error") is True else "completed"
                title, _ = self.titles.get(tool_id, ("the call of the earlier run", None))
                self.ended(tool_id, title, status)

    def control(self, message: Message) -> Message:
        """Return the reply to a request of the program besides those of the hook."""
        request = part_of(message, "request")
        reply: Message = {"request_id": message.get("request_id")}
        if request.get("subtype") == "can_use_tool":
            tool_input = request.get("input")
            granted = self.granted.get(str(request.get("tool_use_id")))
            reply["response"] = (
                {"behavior": "allow", "updatedInput": tool_input}
                if granted is not None and granted == tool_input
                else {"behavior": "deny", "message": UNDECIDED}
            )
        elif request.get("subtype") == "elicitation":
            self.flush()
            form = {**request, "requestedSchema": request.get("requested_schema")}
            reply["response"] = self.answer_form(form)
        else:
            reply |= {"subtype": "error", "error": f"unknown request {request.get('subtype')}"}
            return {"type": "control_response", "response": reply}
        return {"type": "control_response", "response": {"subtype": "success", **reply}}

    def check_mode(self, mode: Any) -> None:
        """Raise AgentFailure for a mode other than the configured mode."""
        if mode != self.mode:
            raise self.wrong_mode(f"is {mode!r}")

    # Calls of tools

    def decide_call(self, event: Message) -> Message:
        """Return the output of the hook for a call."""
        self.check_mode(event.get("permission_mode"))
        name = str(event.get("tool_name"))
        tool_id = str(event.get("tool_use_id"))
        if name in self.allowed:
            return self.allow(event)
        if event.get("agent_id") is not None:
            return _output("deny", SUBAGENT)
        if self.deferred is not None:
            return _output("deny", LATER)
        self.flush()
        if name == ASK and questions_of(event):
            return self.decide_questions(event, tool_id)
        call = call_of(event, self.roots)
        answered = self.answered or self.permissions.answered() is not None
        is_expected = answered and call.digest == self.expected
        if is_expected or self.permissions.for_job(call) is not None:
            try:
                decision = self.decide(call, tool_id)
            except RunParked:  # the answer was for another tree
                return self.defer(DeferredCall(tool_id, call))
            self.answered = False
            if decision.allowed:
                return self.allow(event, reason=decision.text)
            return _output("deny", decision.text)
        return self.defer(DeferredCall(tool_id, call))

    def decide_questions(self, event: Message, tool_id: str) -> Message:
        """Return the output of the hook for questions of the model."""
        asks = tuple(
            {"key": f"question:{tool_id[:100]}:{number}", **ask}
            for number, ask in enumerate(questions_of(event), 1)
        )
        answers = []
        for ask in asks:
            try:
                if not self.answered and ask["key"] not in self.client.start["answers"]:
                    return self.defer(DeferredCall(tool_id, None, asks))
                answer = self.client.call("ask", **ask)
            except RunParked:
                return self.defer(DeferredCall(tool_id, None, asks))
            text = answer.get("text") or answer.get("value")
            if text is None:
                return _output(
                    "deny", f"The question is {answer.get('outcome')} without an answer."
                )
            answers.append(str(text))
        self.saved.pop("pending", None)
        self.answered = False
        return self.allow(event, updated=with_answers(event, answers))

    def allow(self, event: Message, reason: str = "", updated: Message | None = None) -> Message:
        """Return the output that allows a call."""
        tool_input = event.get("tool_input") if updated is None else updated
        self.granted[str(event.get("tool_use_id"))] = tool_input
        output = _output("allow", reason)
        if updated is not None:
            output["hookSpecificOutput"]["updatedInput"] = updated
        return output

    def defer(self, deferred: DeferredCall) -> Message:
        """Return the output that ends the program with this call pending."""
        self.deferred = deferred
        return _output("defer")

    def ask_people(self, deferred: DeferredCall) -> str:
        """Ask about a call after the program has exited; raises RunParked.

        Return the next prompt for an answer that is known.
        """
        self.deferred = None
        self.loaded = True
        call = deferred.call
        self.expected = None if call is None else call.digest
        pending = {"tool_id": deferred.tool_id}
        if call is not None:
            pending |= {"call": call.digest, "body": call.body[:MAX_BODY]}
        self.saved["pending"] = pending
        tree = self.checkpoint()
        for ask in deferred.asks:
            self.client.call("ask", **ask)
        if call is not None and self.permissions.denied(call, tree) is None:
            self.permissions.ask(call, tree)
        self.answered = True
        return self.prompt()


def _output(decision: str, reason: str = "") -> Message:
    output = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    if reason:
        output["permissionDecisionReason"] = reason
    return {"hookSpecificOutput": output}


def _blocks(message: Message) -> list[Message]:
    content = part_of(message, "message").get("content")
    return [
        item for item in (content if isinstance(content, list) else []) if isinstance(item, dict)
    ]


def _title(block: Message) -> str:
    fields = part_of(block, "input")
    for key in ("command", "file_path", "notebook_path", "pattern", "url"):
        if isinstance(fields.get(key), str):
            return f"{block.get('name')} {fields[key]}"
    return str(block.get("name"))


if __name__ == "__main__":
    sys.exit(main("draftsman_agents.claude", ClaudeAdapter))
