"""Permission requests of agents as durable questions, each bound to its exact call.

A decision has a slot, `permission:N`, which is the key of its question and of a step. The step is
recorded before the agent gets the decision, so that a decision to allow is used once: a call that
is made again is another slot. While a slot has no step, its question asks for the next call; if the
agent comes with another call, the question with the same key supersedes the earlier question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from draftsman.agents.agent_client import AgentClient
from draftsman.formats.invisible import escape_invisible

PREFIX: Final = "permission:"
ONCE: Final = "allow once"
DENY: Final = "deny"
JOB: Final = "allow for this job"
CHOICES: Final = ({"value": ONCE}, {"value": DENY}, {"value": JOB})
"""The worker describes them (`draftsman.questions.permission_rules.permission_rule`)."""
GRACE: Final = 3600
"""Maximum seconds that the agent can wait for a decision; the setting of the worker is less."""
FOREGROUND: Final = (("is_background", False), ("run_in_background", False))
"""Options of a call that are as if they were absent."""
SHOWN: Final = 2200
"""Maximum characters of a call in its question; a longer call is an artifact as well."""
ANY_ANSWER: Final = "An answer in your own words denies the call; the agent gets it as the reason."
MAY_HAVE_RUN: Final = "An earlier run was interrupted during this call: it may have run already."


class Call(NamedTuple):
    """A call of a tool; `digest` is that of tool, input and working directory."""

    verb: str
    body: str
    digest: str
    command: str | None = None
    """The command, if the call is nothing else than to run it in the workspace."""

    @classmethod
    def of(cls, tool: Mapping[str, Any], roots: Mapping[str, str]) -> Call:
        """Return the call of an ACP request; `roots` are names of folders, which differ by run.

        A diff has `oldText` and `newText`, or a `patch`.
        """
        content = tool.get("content")
        diffs = [
            item
            for item in (content if isinstance(content, list) else [])
            if isinstance(item, dict) and item.get("type") == "diff"
        ]
        exact = {
            "tool": tool.get("kind") or "other",
            "title": tool.get("title") or "",
            "input": tool.get("rawInput"),
            "diffs": diffs,
            "locations": _paths(tool.get("locations")),
            "cwd": tool.get("cwd") or ".",
        }
        if exact["input"] is None:  # of some programs: the title and the texts are all of the call
            exact["texts"] = _texts(content)
        line = _command(exact)
        exact = _with_names(exact, roots)
        verb, body = _describe(exact)
        if exact["cwd"] != ".":
            body += f"\nin {_visible(str(exact['cwd']))}"
        is_whole = exact["cwd"] == "." and f"$ {line}" in body.splitlines()
        return cls(verb, body, canonical_digest(exact), line if is_whole else None)


def canonical_digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of a value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Decision(NamedTuple):
    """The answer to a permission request."""

    allowed: bool
    reason: str | None = None
    by: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The decision for the agent."""
        people = f" by {', '.join(self.by)}" if self.by else ""
        if self.allowed:
            return f"allowed{people}"
        return f"denied{people}" + (f": {self.reason}" if self.reason else "")


class Permissions:
    """The decisions of a job, and the question for the next call."""

    def __init__(self, client: AgentClient, name: str) -> None:
        self._client = client
        self._name = name
        self._answers: dict[str, dict[str, Any]] = dict(client.start["answers"])
        self._slots: dict[str, str] = {}
        self._interrupted: set[str] = set()
        for key, step in client.start["steps"].items():
            if key.startswith(PREFIX):
                self._slots[key] = step["invocation_id"] or ""
                if step["state"] == "pending":
                    self._interrupted.add(self._slots[key])
        self._running: dict[str, str] = {}

    @property
    def slot(self) -> str:
        """The key of the next decision."""
        return f"{PREFIX}{len(self._slots) + 1}"

    def answered(self) -> Decision | None:
        """Return the decision of the next slot, which no run has used yet."""
        answer = self._answers.get(self.slot)
        return None if answer is None else _decision(answer)

    def may_have_run(self, call_digest: str) -> bool:
        """Return whether an earlier run may have made this call after the newest checkpoint.

        The changes of files of such a call are lost, also if it had ended. Its question says that
        it may have run.
        """
        self._interrupted |= {
            bound
            for key, bound in self._slots.items()
            if bound.startswith(f"{call_digest}:")
            and (key not in self._answers or _decision(self._answers[key]).allowed)
        }
        return any(bound.startswith(f"{call_digest}:") for bound in self._interrupted)

    def for_job(self, call: Call) -> Decision | None:
        """Return the decision that allows this call for the whole job, whatever the tree is."""
        for key, bound in self._slots.items():
            answer = self._answers.get(key, {})
            if answer.get("value") == JOB and bound.startswith(f"{call.digest}:"):
                return _decision(answer)
        return None

    def denied(self, call: Call, tree: str) -> Decision | None:
        """Return the decision that denied this call on the same tree."""
        for key, bound in self._slots.items():
            answer = self._answers.get(key)
            if answer is not None and bound == f"{call.digest}:{tree}":
                decision = _decision(answer)
                if not decision.allowed:
                    return decision
        return None

    def ask(self, call: Call, tree: str) -> Decision:
        """Return the recorded answer; else ask people, which parks the run (RunParked)."""
        key = self.slot
        bound = f"{call.digest}:{tree}"
        body = call.body
        if len(body) > SHOWN:
            body = f"{body[:SHOWN]}\n… the whole call is the artifact {self._attach(key, call)}"
        digest = canonical_digest({"call": call.digest, "tree": tree})
        text = f"Allow {self._name} {call.verb}?\n\n{body}\n\nTree {tree[:12]}, call {digest}"
        context = f"{ANY_ANSWER} {MAY_HAVE_RUN}" if bound in self._interrupted else ANY_ANSWER
        answer = self._client.call(
            "ask",
            key=key,
            text=text,
            choices=CHOICES,
            freeform=True,
            context=context,
            grace=GRACE,
            **({} if call.command is None else {"command": call.command}),
        )
        self._answers[key] = answer
        return _decision(answer)

    def use(self, call_digest: str, tree: str, decision: Decision, tool_id: str = "") -> None:
        """Record the next decision as used, before the agent gets it."""
        key = self.slot
        bound = f"{call_digest}:{tree}"
        state = "pending" if decision.allowed else "done"
        self._client.call("step", key=key, state=state, invocation_id=bound)
        self._slots[key] = bound
        if decision.allowed:
            self._running[tool_id] = key

    def finished(self, tool_id: str) -> None:
        """Record that an allowed call has ended."""
        if (key := self._running.pop(tool_id, None)) is not None:
            self._client.call("step", key=key, state="done")

    def _attach(self, key: str, call: Call) -> str:
        name = f"{key.replace(':', '-')}.txt"
        path = Path.home() / name
        path.write_text(call.body, encoding="utf-8")
        self._client.call("artifact", path=str(path), name=name)
        return name


def _decision(answer: Mapping[str, Any]) -> Decision:
    value = answer.get("value")
    by = tuple(answer.get("by") or ())
    if value in (ONCE, JOB):
        return Decision(True, by=by)
    return Decision(False, answer.get("text") or answer.get("reason"), by)


def _with_names(value: Any, roots: Mapping[str, str]) -> Any:
    """Return the JSON value with the folders of the run replaced by their names."""
    if isinstance(value, str):
        for folder, name in roots.items():
            value = value.replace(folder, name)
        return value
    if isinstance(value, dict):
        return {key: _with_names(item, roots) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_names(item, roots) for item in value]
    return value


def _paths(locations: Any) -> list[str]:
    locations = locations if isinstance(locations, list) else []
    return sorted({str(item.get("path")) for item in locations if isinstance(item, dict)})


def _texts(content: Any) -> list[str]:
    content = content if isinstance(content, list) else []
    blocks = [item.get("content") for item in content if isinstance(item, dict)]
    return [str(item["text"]) for item in blocks if isinstance(item, dict) and "text" in item]


def _describe(call: Mapping[str, Any]) -> tuple[str, str]:
    """Return the action of the call, and its readable text."""
    tool_input = call["input"] if isinstance(call["input"], dict) else {}
    command = tool_input.get("command")
    if call["tool"] == "execute" and isinstance(command, str | list):
        line = command if isinstance(command, str) else json.dumps(command)
        options = {key: item for key, item in tool_input.items() if key != "command"}
        return "to run a command", _visible(f"$ {line}") + _fields(options)
    if call["diffs"]:
        return "to edit files", "\n".join(_diff(item) for item in call["diffs"])
    title = "\n".join(_visible(text) for text in (str(call["title"]), *call.get("texts", ())))
    if call["tool"] == "execute" and call["input"] is None:
        return "to run a command", f"$ {title}"
    if host := _host(tool_input):
        return f"to connect to {host}", title + _fields(tool_input)
    return f"to use the tool {_visible(str(call['tool']))}", title + _fields(tool_input)


def _command(call: Mapping[str, Any]) -> str | None:
    """Return the command of a call that runs it without any other option."""
    tool_input = call["input"] if isinstance(call["input"], dict) else {}
    line = tool_input.get("command")
    if call["tool"] != "execute" or not isinstance(line, str):
        return None
    options = {key for key, value in tool_input.items() if (key, value) not in FOREGROUND}
    return line if options <= {"command", "description", "timeout"} else None


def _host(tool_input: Mapping[str, Any]) -> str:
    """Return the host that a call connects to; empty if it names none."""
    url = tool_input.get("url")
    try:
        return _visible(urlsplit(url).netloc.rpartition("@")[2]) if isinstance(url, str) else ""
    except ValueError:
        return ""


def _fields(fields: Mapping[str, Any]) -> str:
    return "".join(
        f"\n{_visible(str(key))}: "
        + _visible(item if isinstance(item, str) else json.dumps(item, sort_keys=True))
        for key, item in fields.items()
    )


def _diff(item: Mapping[str, Any]) -> str:
    old = str(item.get("oldText") or "")
    new = str(item.get("newText") or "")
    path = _visible(str(item.get("path")))
    if isinstance(patch := item.get("patch"), str):
        return f"--- a/{path}\n+++ b/{path}\n{_visible(patch.rstrip())}"
    import difflib

    lines = difflib.unified_diff(_lines(old), _lines(new), f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(map(_visible, lines))


def _lines(text: str) -> list[str]:
    r"""Return the lines of a file, which only `\n` ends."""
    return text.removesuffix("\n").split("\n") if text else []


def _visible(text: str) -> str:
    """Return the text with invisible characters escaped: a person decides on the visible text."""
    return escape_invisible(text, strict=True)
