"""A program that speaks like `claude -p`, with a script instead of a model.

    python claude_agent.py '[{"run": "echo one >> ran.txt"}, {"say": "all done"}]' [OPTION] FLAGS…

A turn is a call, `{"calls": [CALL, …]}`, `say`, `refuse` (a text), `fail` (an HTTP status), `exit`,
or `mode` (another mode). A call is `run` (a command), `write` or `edit` (a file and its texts),
`read` (a file), `ask` (questions) or `form` (that of an MCP server). The next turn is chosen by the
ended calls and the prompts of its session, a file below HOME. A hook decides each call; the last
deferred call is kept when the program ends, and others are lost. It checks its flags and messages,
and exits with 70 for a violation. OPTION is `deaf`, which ignores `defer`, or `forgets`, which
keeps no call.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

TYPE_CHECKING = False  # importing `typing` takes a tenth of the time to start
if TYPE_CHECKING:
    from typing import Any, Final

VERSION: Final = "2.1.332"
HOME: Final = Path(os.environ["HOME"])
MODEL: Final = "claude-test"
FLAGS: Final = {
    "input_format": "stream-json",
    "output_format": "stream-json",
    "permission_prompt_tool": "stdio",
    "setting_sources": "user",
    "strict_mcp_config": True,
    "verbose": True,
    "print": True,
}

TRUSTED: Final = {"setting_sources": "user,project", "strict_mcp_config": False}
"""Flags that load the configuration of the repository, here a list of commands."""


def send(**message: Any) -> None:
    """Write a message."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def require(condition: object, text: str) -> None:
    """Exit with 70 unless the condition holds."""
    if not condition:
        sys.stderr.write(f"violation: {text}\n")
        sys.exit(70)


class Program:
    """A process with a session."""

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("script", type=json.loads)
        parser.add_argument("option", nargs="?")
        for name in FLAGS:
            flag = f"--{name.replace('_', '-')}"
            action = "store_true" if FLAGS[name] is True else "store"
            parser.add_argument(*(["-p", flag] if name == "print" else [flag]), action=action)
        parser.add_argument("--permission-mode", required=True)
        parser.add_argument("--settings", type=json.loads, required=True)
        parser.add_argument("--tools", required=True)
        parser.add_argument("--session-id")
        parser.add_argument("--resume", type=Path)
        options = parser.parse_args()
        given = {name: getattr(options, name) for name in FLAGS}
        trusted = options.setting_sources == "user,project"
        require(given == FLAGS | (TRUSTED if trusted else {}), f"flags {given}")
        require(options.settings["disableAllHooks"] is False, "hooks may be disabled")
        if trusted:
            require("ANTHROPIC_BASE_URL" in options.settings["env"], "no URL of the model")
            settings = Path(".claude/settings.json")
            hooks = json.loads(settings.read_text())["SessionStart"] if settings.exists() else []
            for hook in hooks:
                subprocess.run(["sh", "-c", hook], check=True)
        self.options = options
        self.script = options.script
        self.mode = options.permission_mode
        [entry] = options.settings["hooks"]["PreToolUse"]
        [hook] = entry["hooks"]
        require(entry["matcher"] == "*" and hook["type"] == "command", f"hooks {entry}")
        self.hook = hook["command"]
        folder = str(Path.cwd()).replace("/", "-").replace(".", "-")
        self.file = HOME / ".claude" / "projects" / folder / f"{options.session_id}.jsonl"
        self.state: dict[str, Any] = {"results": {}, "prompts": [], "deferred": None}
        if options.resume is not None:
            self.file = options.resume
            self.state = json.loads(self.file.read_text().splitlines()[0])
        require(options.resume or options.session_id, "a session")
        self.session = self.file.stem
        self.denials: list[dict[str, Any]] = []

    def serve(self) -> None:
        """Run the deferred call, then a turn for each message of the user."""
        if (call := self.state["deferred"]) is not None:
            self.state["deferred"] = None
            if self.make_all([call]):
                self.init()
                self.work()
        for line in sys.stdin:
            message = json.loads(line)
            require(message["type"] == "user", f"message {message}")
            self.state["prompts"].append(message["message"]["content"])
            self.init()
            self.work()

    def init(self) -> None:
        """Write the first message of a turn."""
        common = {"cwd": str(Path.cwd()), "session_id": self.session, "model": MODEL}
        tools = {"tools": self.options.tools.split(","), "mcp_servers": []}
        send(type="system", subtype="init", permissionMode=self.mode, **common, **tools)

    def work(self) -> None:
        """Run turns of the script to the end of the work."""
        while True:
            self.save()
            ended = len(self.state["results"]) + len(self.state["prompts"]) - 1
            place = min(ended, len(self.script) - 1)
            turn = self.script[place]
            if "exit" in turn:
                sys.exit(turn["exit"])
            if "fail" in turn:
                self.result(f"API Error: {turn['fail']}", api_error_status=turn["fail"])
                return
            if "refuse" in turn:  # as 2.1.332: an error without a status
                refusal = {"stop_reason": "refusal", "is_error": True}
                self.result(turn["refuse"], **refusal, terminal_reason="api_error")
                return
            if "say" in turn:
                text = turn["say"].replace("PROMPTS", json.dumps(self.state["prompts"]))
                text = text.replace("RESULTS", json.dumps(list(self.state["results"].values())))
                self.assistant({"type": "text", "text": text})
                self.result(text)
                return
            if "mode" in turn:
                self.mode = turn["mode"]
            calls = [
                self.call(call, f"toolu_{place}_{number}")
                for number, call in enumerate(turn.get("calls", [turn]))
            ]
            for call in calls:
                self.assistant({"type": "tool_use", **call})
            if not self.make_all(calls):
                return

    def call(self, turn: dict[str, Any], number: str) -> dict[str, Any]:
        """Return the call of a turn."""
        if "run" in turn:
            return {"id": number, "name": "Bash", "input": {"command": turn["run"]}}
        if "ask" in turn:
            return {"id": number, "name": "AskUserQuestion", "input": {"questions": turn["ask"]}}
        if "form" in turn:
            return {"id": number, "name": "mcp__desk__form", "input": turn["form"]}
        name = next(name for name in ("read", "write", "edit", "mode") if name in turn)
        path, *texts = turn[name] if isinstance(turn[name], list) else [turn[name]]
        keys = {"write": ["content"], "edit": ["old_string", "new_string"]}.get(name, [])
        fields = dict(zip(keys, texts, strict=True))
        return {
            "id": number,
            "name": name.title(),
            "input": {"file_path": str(Path(path).absolute()), **fields},
        }

    def make_all(self, calls: list[dict[str, Any]]) -> bool:
        """Make the calls that the hook allows; return whether the turn goes on."""
        kept = None
        for call in calls:
            output = self.decide(call)
            decision = output["permissionDecision"]
            if decision == "defer" and self.options.option == "deaf":
                decision = "deny"
                output = {"permissionDecisionReason": "nothing allows it"}
            if decision == "defer":
                kept = call  # a call deferred before is lost
            elif decision == "deny":
                reason = output["permissionDecisionReason"]
                self.ended(call, f"hook error: {reason}", is_error=True)
                denied = {"tool_name": call["name"], "tool_input": call["input"]}
                self.denials.append({**denied, "tool_use_id": call["id"]})
            else:
                given = output.get("updatedInput", call["input"])
                self.ended(call, self.make(call["name"], given))
        if kept is None:
            return True
        self.state["deferred"] = None if self.options.option == "forgets" else kept
        self.save()
        self.result("", stop_reason="tool_deferred", deferred_tool_use=kept)
        return False

    def decide(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return the decision of the hook."""
        event = {
            "session_id": self.session,
            "transcript_path": str(self.file),
            "cwd": str(Path.cwd()),
            "permission_mode": self.mode,
            "hook_event_name": "PreToolUse",
            "tool_name": call["name"],
            "tool_input": call["input"],
            "tool_use_id": call["id"],
        }
        done = subprocess.run(
            ["sh", "-c", self.hook], input=json.dumps(event).encode(), capture_output=True
        )
        if done.returncode == 2:
            return {"permissionDecision": "deny", "permissionDecisionReason": done.stderr.decode()}
        output: dict[str, Any] = json.loads(done.stdout)["hookSpecificOutput"]
        require(output["hookEventName"] == "PreToolUse", f"output {output}")
        return output

    def make(self, name: str, given: dict[str, Any]) -> str:
        """Make a call; return its result."""
        if name == "Bash":
            return subprocess.run(
                ["sh", "-c", given["command"]], check=True, capture_output=True, text=True
            ).stdout
        if name == "AskUserQuestion":
            return f"The user answered: {json.dumps(given['answers'])}"
        if name == "mcp__desk__form":
            return self.elicit(given)
        file = Path(given["file_path"])
        if name == "Write":
            file.write_text(given["content"])
        elif name == "Edit":
            file.write_text(file.read_text().replace(given["old_string"], given["new_string"], 1))
        return "ok"

    def elicit(self, form: dict[str, Any]) -> str:
        """Return the answer to the form of an MCP server."""
        asked = {"subtype": "elicitation", "mcp_server_name": "desk", "mode": "form", **form}
        send(type="control_request", request_id="form", request=asked)
        reply = json.loads(sys.stdin.readline())
        require(reply["response"]["request_id"] == "form", f"reply {reply}")
        return json.dumps(reply["response"]["response"])

    def ended(self, call: dict[str, Any], text: str, *, is_error: bool = False) -> None:
        """Write the result of a call, and add it to the session."""
        self.state["results"][call["id"]] = text
        self.save()
        block = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        block |= {"is_error": True} if is_error else {}
        message = {"role": "user", "content": [block]}
        send(type="user", message=message, parent_tool_use_id=None, session_id=self.session)

    def assistant(self, block: dict[str, Any]) -> None:
        """Write a message of the model."""
        usage = {"input_tokens": 1000, "output_tokens": 20}
        message = {"role": "assistant", "model": MODEL, "content": [block], "usage": usage}
        send(type="assistant", message=message, parent_tool_use_id=None, session_id=self.session)

    def result(self, text: str, **fields: Any) -> None:
        """Write the end of a turn."""
        usage = {"inputTokens": 900, "cacheReadInputTokens": 100, "cacheCreationInputTokens": 0}
        usage |= {"outputTokens": 20}
        failed = "api_error_status" in fields
        message: dict[str, Any] = {
            "type": "result",
            "subtype": "success",  # also for errors of the API
            "is_error": failed,
            "result": text,
            "stop_reason": "stop_sequence" if failed else "end_turn",
            "terminal_reason": "api_error" if failed else "completed",
            "session_id": self.session,
            "permission_denials": self.denials,
            "total_cost_usd": 0.01,
            "model_usage_since_last_result": {} if failed else {MODEL: {**usage, "costUSD": 0.01}},
        }
        send(**message | fields)

    def save(self) -> None:
        """Write the session's file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lines: list[dict[str, Any]] = [self.state]
        if (call := self.state["deferred"]) is not None:
            deferred = {"type": "hook_deferred_tool", "toolUseID": call["id"]}
            lines.append({"type": "attachment", "attachment": deferred})
        self.file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    if "--version" in sys.argv:
        sys.stdout.write(f"{VERSION} (Claude Code)\n")
    else:
        Program().serve()
