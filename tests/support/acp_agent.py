"""An agent that speaks ACP like OpenCode, with a script instead of a model.

    python acp_agent.py '[{"run": "echo one >> ran.txt"}, {"say": "all done"}]'

A turn is `run` (a command that needs a permission), `edit` (a file and its new text), each with the
`_meta` of its call in `meta`, `say`,
`exit`, `ask` (another request), `form` (that of an MCP server), `plan` (its entries, and a
thought), `mode` (a change of the mode) or `stop` (a stop reason). With `unless`
it exits if no prompt has that text. The next turn is chosen by the ended calls in its session, a
file below HOME; a call that was pending when it was killed is dropped. It checks what a client
sends, and exits with 70 for a violation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TYPE_CHECKING = False  # importing `typing` takes a tenth of the time to start
if TYPE_CHECKING:
    from typing import Any, Final

SESSIONS: Final = Path(os.environ["HOME"], ".fake", "sessions")
OPTIONS: Final = [
    {"optionId": "always", "kind": "allow_always", "name": "Always allow"},
    {"optionId": "once", "kind": "allow_once", "name": "Allow once"},
    {"optionId": "reject", "kind": "reject_once", "name": "Reject"},
]


def send(**message: Any) -> None:
    """Write a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    """Return the next message of the client; exit at the end."""
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    require(message.get("jsonrpc") == "2.0", "a message without jsonrpc")
    return message


def require(condition: object, text: str) -> None:
    """Exit with 70 unless the condition holds."""
    if not condition:
        sys.stderr.write(f"violation: {text}\n")
        sys.exit(70)


class Agent:
    """The only session of the process."""

    def __init__(self, script: list[dict[str, Any]]) -> None:
        self.script = script
        self.session = ""
        self.state: dict[str, Any] = {"results": [], "prompts": []}
        self.is_loaded = False
        self.numbers = iter(range(1000, 2000))

    def serve(self) -> None:
        """Answer the requests of the client."""
        while True:
            message = receive()
            method = message["method"]
            params = message["params"]
            handler = getattr(self, f"on_{method.replace('/', '_')}", None)
            require(handler is not None, f"method {method}")
            assert handler is not None
            result = handler(params)
            send(id=message["id"], **result)

    def on_initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        """Require a client without file system and terminal."""
        require(params["protocolVersion"] == 1, "protocolVersion")
        require(not params["clientCapabilities"]["terminal"], "terminal")
        sys.stdout.write("fake agent: starting\n")  # noise, as of real agents
        capabilities = {"loadSession": "no-load" not in sys.argv}
        return {"result": {"protocolVersion": 1, "agentCapabilities": capabilities}}

    def on_session_new(self, params: dict[str, Any]) -> dict[str, Any]:
        """Create a session."""
        require(params["cwd"] == str(Path.cwd()) and params["mcpServers"] == [], "session/new")
        self.session = f"ses_{os.urandom(4).hex()}"
        self.state = {"prompts": [], "results": []}
        self.is_loaded = False
        return {"result": {"sessionId": self.session, "configOptions": modes("build")}}

    def on_session_load(self, params: dict[str, Any]) -> dict[str, Any]:
        """Read the session's file, and repeat its history."""
        file = SESSIONS / f"{params['sessionId']}.json"
        if not file.exists():
            return {"error": {"code": -32602, "message": "unknown", "data": {"details": "gone"}}}
        self.session = params["sessionId"]
        self.state = json.loads(file.read_text())
        self.is_loaded = True
        for _ in self.state["prompts"]:
            self.update("agent_message_chunk", content={"type": "text", "text": "of the past"})
        return {"result": {"configOptions": modes("plan")}}

    def on_session_set_config_option(self, params: dict[str, Any]) -> dict[str, Any]:
        """Set the mode."""
        require(params["sessionId"] == self.session and params["configId"] == "mode", "set mode")
        stubborn = "stubborn" in sys.argv
        return {"result": {"configOptions": modes("plan" if stubborn else params["value"])}}

    def on_session_prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        """Run the turns of the script until it ends the turn."""
        require(params["sessionId"] == self.session, "prompt of another session")
        if self.is_loaded and "no-prompt" in sys.argv:  # as OpenCode in another folder
            return {"error": {"code": -32603, "message": "service failure"}}
        self.state["prompts"].append(params["prompt"][0]["text"])
        while True:
            self.save()
            place = min(len(self.state["results"]), len(self.script) - 1)
            if (reason := self.turn(self.script[place])) is not None:
                usage = {"inputTokens": 1000, "outputTokens": 20}
                return {"result": {"stopReason": reason, "usage": usage}}

    def turn(self, turn: dict[str, Any]) -> str | None:
        """Make a turn; return the reason of its end."""
        if "unless" in turn and turn["unless"] not in "".join(self.state["prompts"]):
            sys.exit(turn["exit"])
        if "say" in turn:
            text = turn["say"].replace("PROMPTS", json.dumps(self.state["prompts"]))
            text = text.replace("RESULTS", json.dumps(self.state["results"]))
            for part in (text[:3], text[3:]):
                self.update("agent_message_chunk", content={"type": "text", "text": part})
            return "end_turn"
        if "stop" in turn:
            return str(turn["stop"])
        if "exit" in turn:
            sys.exit(turn["exit"])
        if "mode" in turn:
            self.update("current_mode_update", currentModeId=turn["mode"])
            self.result("mode")
        elif "plan" in turn:
            self.update("plan", entries=turn["plan"])
            thought = {"type": "text", "text": "Let me think"}
            self.update("agent_thought_chunk", content=thought)
            self.result("planned")
        elif "ask" in turn:
            reply = self.ask(turn["ask"], {})
            require(reply.get("error", {}).get("code") == -32601, f"{turn['ask']}: {reply}")
            self.result("refused")
        elif "form" in turn:
            reply = self.ask("elicitation/create", {"mode": "form", **turn["form"]})
            self.result(json.dumps(reply["result"]))
        else:
            self.call(turn)
        return None

    def call(self, turn: dict[str, Any]) -> None:
        """Ask for the permission of a call, and make it if it is allowed."""
        number = f"call_{len(self.state['results'])}"
        tool: dict[str, Any] = {"toolCallId": number, "status": "pending", "locations": []}
        if "run" in turn:
            tool |= {"kind": "execute", "title": turn["run"], "rawInput": {"command": turn["run"]}}
        else:
            path, new = turn["edit"]
            file = Path(path)
            diff = {"type": "diff", "path": str(file.absolute()), "newText": new}
            diff["oldText"] = file.read_text() if file.exists() else ""
            tool |= {"kind": "edit", "title": path, "rawInput": {"filePath": path}}
            tool |= {"content": [diff]}
        tool |= {"_meta": turn["meta"]} if "meta" in turn else {}
        self.update("tool_call", **tool)
        reply = self.ask("session/request_permission", {"toolCall": tool, "options": OPTIONS})
        outcome = reply["result"]["outcome"]
        require(outcome["outcome"] == "selected", f"outcome {outcome}")
        require(outcome["optionId"] in ("once", "reject"), f"option {outcome['optionId']}")
        if outcome["optionId"] == "reject":
            self.update("tool_call_update", toolCallId=number, status="failed")
            self.result("rejected")
            return
        if "run" in turn:
            subprocess.run(["sh", "-c", turn["run"]], check=True)
        else:
            Path(turn["edit"][0]).write_text(turn["edit"][1])
        self.update("tool_call_update", toolCallId=number, status="completed")
        self.result("completed")

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its reply."""
        number = next(self.numbers)
        send(id=number, method=method, params={"sessionId": self.session, **params})
        reply = receive()
        require(reply.get("id") == number, f"a reply to {number}")
        return reply

    def update(self, kind: str, /, **fields: Any) -> None:
        """Send a `session/update`."""
        update = {"sessionUpdate": kind, **fields}
        send(method="session/update", params={"sessionId": self.session, "update": update})

    def result(self, text: str) -> None:
        """Add the result of a turn to the session."""
        self.state["results"].append(text)
        self.save()

    def save(self) -> None:
        """Write the session's file."""
        SESSIONS.mkdir(parents=True, exist_ok=True)
        (SESSIONS / f"{self.session}.json").write_text(json.dumps(self.state))


def modes(current: str) -> list[dict[str, Any]]:
    """Return the configuration options of a session."""
    options = [{"value": name, "name": name} for name in ("build", "plan")]
    return [{"id": "mode", "category": "mode", "currentValue": current, "options": options}]


if __name__ == "__main__":
    Agent(json.loads(sys.argv[1])).serve()
