"""A program that speaks the app-server protocol of Codex, with a script instead of a model.

    python codex_agent.py '[{"run": "echo one >> ran.txt"}, {"say": "all done"}]' app-server -c …

A turn of the script is `run` (a command that is asked for), `edit` (a file and its new text),
`input` (questions to people), `ask` (another request), `say`, `exit`, `fail` (an error of the
model) or `settings` (changed settings of the thread). A `say` with `continues` is followed by the
next turn at the next prompt. The next turn is chosen by the ended calls in
the thread, a file below HOME; a call that was pending when it was killed is dropped. Like Codex, it
trusts a repository unless the configuration says otherwise, and runs its file `.codex/server`. It
checks the client, and exits with 70 for a violation.

`tests/support/codex_recording.py` compares its messages with recorded messages of Codex.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

TYPE_CHECKING = False  # importing `typing` takes a tenth of the time to start
if TYPE_CHECKING:
    from typing import Any, Final

SESSIONS: Final = Path(os.environ["HOME"], ".codex", "sessions")
TIME: Final = 1_795_645_380_000
USAGE: Final = {"totalTokens": 1020, "inputTokens": 1000, "outputTokens": 20}


def send(**message: Any) -> None:
    """Write a message."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    """Return the next message of the client; exit at the end."""
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    require("jsonrpc" not in message, "a message with jsonrpc")
    return message


def require(condition: object, text: str) -> None:
    """Exit with 70 unless the condition holds."""
    if not condition:
        sys.stderr.write(f"violation: {text}\n")
        sys.exit(70)


def configuration() -> dict[str, Any]:
    """Return the settings of the command line."""
    lines = [item for flag, item in zip(sys.argv, sys.argv[1:], strict=False) if flag == "-c"]
    return tomllib.loads("\n".join(lines))


class Agent:
    """The only thread of the process."""

    def __init__(self, script: list[dict[str, Any]]) -> None:
        self.script = script
        self.config = configuration()
        self.thread = self.turn_id = ""
        self.state: dict[str, Any] = {"results": [], "prompts": []}
        self.calls = 0
        self.numbers = iter(range(1000))

    def serve(self) -> None:
        """Answer the requests of the client."""
        while True:
            message = receive()
            if "id" not in message:
                require(message["method"] == "initialized", f"notification {message['method']}")
                continue
            handler = getattr(self, f"on_{message['method'].replace('/', '_')}", None)
            require(handler is not None, f"method {message['method']}")
            assert handler is not None
            send(id=message["id"], **handler(message["params"]))
            if message["method"] == "turn/start":
                self.run_turn()

    def on_initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        """Require the experimental methods, which have the questions of the model."""
        require(params["capabilities"]["experimentalApi"], "experimentalApi")
        sys.stdout.write("fake codex: starting\n")
        return {"result": {"userAgent": "draftsman/0", "codexHome": str(SESSIONS.parent)}}

    def on_thread_start(self, params: dict[str, Any]) -> dict[str, Any]:
        """Create a thread."""
        self.thread = f"thread-{os.urandom(4).hex()}"
        require(params["historyMode"] == "legacy", "a history that is no file")
        return self.opened(params)

    def on_thread_resume(self, params: dict[str, Any]) -> dict[str, Any]:
        """Read the file of a thread."""
        file = SESSIONS / f"{params['threadId']}.json"
        if not file.exists():
            text = f"no rollout found for thread id {params['threadId']}"
            return {"error": {"code": -32600, "message": text}}
        self.thread = params["threadId"]
        self.state = json.loads(file.read_text())
        return self.opened(params)

    def opened(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of the thread; run what a trusted repository wants."""
        require(params["cwd"] == str(Path.cwd()), "cwd")
        require(params["sandbox"] == "danger-full-access", "sandbox")
        project = self.config.get("projects", {}).get(params["cwd"], {})
        server = Path(".codex", "server")
        if project.get("trust_level") != "untrusted" and server.exists():
            subprocess.run([str(server.absolute())], check=True)
        reviewer = "auto_review" if "guardian" in sys.argv else params["approvalsReviewer"]
        opened = {"thread": {"id": self.thread, "cwd": params["cwd"]}, "model": "fake-1"}
        opened |= {"approvalPolicy": params["approvalPolicy"], "approvalsReviewer": reviewer}
        return {"result": opened | {"sandbox": {"type": "dangerFullAccess"}}}

    def on_config_read(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the configuration, unless this version does not know it."""
        config = {} if "old" in sys.argv else self.config
        features = config.get("features", {})
        agents = {"enabled": True} if "subagents" in sys.argv else config.get("agents", {})
        shown = {"projects": config.get("projects", {}), "features": features, "agents": agents}
        return {"result": {"config": shown}}

    def on_turn_start(self, params: dict[str, Any]) -> dict[str, Any]:
        """Begin a turn."""
        require(params["threadId"] == self.thread, "a turn of another thread")
        self.state["prompts"].append(params["input"][0]["text"])
        self.turn_id = f"turn-{len(self.state['prompts'])}"
        turn: dict[str, Any] = {"id": self.turn_id, "status": "inProgress", "error": None}
        return {"result": {"turn": turn}}

    def run_turn(self) -> None:
        """Run the turns of the script until one ends the turn of the thread."""
        ended: dict[str, Any] | None = None
        while ended is None:
            self.save()
            self.calls += 1
            place = min(len(self.state["results"]), len(self.script) - 1)
            ended = self.act(self.script[place])
            total = {key: number * self.calls for key, number in USAGE.items()}
            usage = {"total": total, "last": USAGE}
            self.notify("thread/tokenUsage/updated", turnId=self.turn_id, tokenUsage=usage)
        turn = {"id": self.turn_id, "error": None, **ended}
        self.notify("turn/completed", turn=turn)

    def act(self, turn: dict[str, Any]) -> dict[str, Any] | None:
        """Make a turn of the script; return the end of the turn, if it ends."""
        if "say" in turn:
            text = turn["say"].replace("PROMPTS", json.dumps(self.state["prompts"]))
            item = {"type": "agentMessage", "id": f"m{self.calls}", "text": text}
            self.item("item/started", item)
            self.item("item/completed", item)
            if turn.get("continues"):
                self.result("said")
            return {"status": "completed"}
        if "fail" in turn:
            info = {"httpConnectionFailed": {"httpStatusCode": turn["fail"]}}
            error = {"message": f"unexpected status {turn['fail']}", "codexErrorInfo": info}
            return {"status": "failed", "error": error}
        if "exit" in turn:
            sys.exit(turn["exit"])
        if "settings" in turn:
            settings = {"approvalPolicy": "untrusted", "approvalsReviewer": "user"}
            settings |= {"sandboxPolicy": {"type": "dangerFullAccess"}} | turn["settings"]
            self.notify("thread/settings/updated", threadSettings=settings)
            self.result("settings")
        elif "input" in turn:
            self.result("aborted")  # unless it is answered
            questions = [{"isOther": True, "isSecret": False, **item} for item in turn["input"]]
            reply = self.ask("item/tool/requestUserInput", "q", questions=questions)
            answers = {name: item["answers"] for name, item in reply["result"]["answers"].items()}
            self.state["results"][-1] = json.dumps(answers)
        elif "ask" in turn:
            reply = self.ask(turn["ask"], "other")
            require(reply.get("error", {}).get("code") == -32601, f"{turn['ask']}: {reply}")
            self.result("refused")
        else:
            self.call(turn)
        return None

    def call(self, turn: dict[str, Any]) -> None:
        """Ask for a command or an edit, and make it if it is allowed."""
        number = f"call_{len(self.state['results'])}"
        if "run" in turn:
            script = turn["run"].replace("'", "'\"'\"'")
            line = {"command": f"/bin/bash -lc '{script}'", "cwd": str(Path.cwd())}
            item: dict[str, Any] = {"type": "commandExecution", "id": number, **line}
            method = "item/commandExecution/requestApproval"
            asked: dict[str, Any] = {"kind": "command", **line}
        else:
            path = Path(turn["edit"][0])
            old = path.read_text().splitlines() if path.exists() else None
            new = turn["edit"][1].splitlines()
            kind: dict[str, Any] = {"type": "add"}
            diff = turn["edit"][1]
            if old is not None:
                kind = {"type": "update", "move_path": None}
                lines = [*(f"-{text}" for text in old), *(f"+{text}" for text in new)]
                diff = "\n".join([f"@@ -1,{len(old)} +1,{len(new)} @@", *lines, ""])
            changes = [{"path": str(path.absolute()), "kind": kind, "diff": diff}]
            item = {"type": "fileChange", "id": number, "changes": changes}
            method = "item/fileChange/requestApproval"
            asked = {"reason": None, "grantRoot": None}
        if not turn.get("hidden"):
            self.item("item/started", item | {"status": "inProgress"})
        reply = self.ask(method, number, startedAtMs=TIME, **asked)
        decision = reply["result"]["decision"]
        require(decision in ("accept", "decline"), f"decision {decision}")
        if decision == "accept":
            if "run" in turn:
                subprocess.run(["sh", "-c", turn["run"]], check=True)
            else:
                Path(turn["edit"][0]).write_text(turn["edit"][1])
        status = "completed" if decision == "accept" else "declined"
        self.item("item/completed", item | {"status": status})
        self.result(status)

    def ask(self, method: str, item: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its reply."""
        number = next(self.numbers)
        params |= {"threadId": self.thread, "turnId": self.turn_id, "itemId": item}
        send(id=number, method=method, params=params)
        reply = receive()
        require(reply.get("id") == number, f"a reply to {number}")
        return reply

    def item(self, method: str, item: dict[str, Any]) -> None:
        """Send the start or the end of an item."""
        ended = TIME if method == "item/completed" else None
        item = {**item, "startedAtMs": TIME, "completedAtMs": ended}
        self.notify(method, turnId=self.turn_id, item=item)

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification of the thread."""
        send(method=method, params={"threadId": self.thread, **params})

    def result(self, text: str) -> None:
        """Add the result of a call to the thread."""
        self.state["results"].append(text)
        self.save()

    def save(self) -> None:
        """Write the file of the thread."""
        SESSIONS.mkdir(parents=True, exist_ok=True)
        (SESSIONS / f"{self.thread}.json").write_text(json.dumps(self.state))


if __name__ == "__main__":
    Agent(json.loads(sys.argv[1])).serve()
