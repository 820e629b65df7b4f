"""The adapter for Codex without a worker: messages, questions, configuration and failures."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

from draftsman.agents.mcp_forms import form_content, form_questions
from draftsman_agents.codex import (
    command_call,
    configuration,
    edit_call,
    permissions_call,
    shell_script,
    tool_call,
    user_questions,
)
from tests.support.adapter_driver import AdapterRuns, Message
from tests.support.cases import cases
from tests.support.codex_recording import (
    FAKE_SCRIPT,
    QUESTION,
    differences,
    record,
    recorded_version,
    recording_of,
    trim,
)

AGENT: Final = Path(__file__).parents[2] / "support" / "codex_agent.py"
ROOTS: Final = {"/workspace/repo": ".", "/home/agent": "~"}
WORKSPACE: Final = "/workspace/repo"


def recorded(method: str, position: int = 0) -> dict[str, Any]:
    """Return the parameters of a recorded message of Codex."""
    found: list[dict[str, Any]] = [
        message["params"]
        for direction, message in recording_of(recorded_version())
        if direction == "<" and message.get("method") == method
    ]
    return found[position]


def test_the_scripted_agent_and_the_adapter_send_what_was_recorded(tmp_path: Path) -> None:
    agent = [sys.executable, "-I", "-S", str(AGENT)]
    failing = [*FAKE_SCRIPT[:-1], {"fail": 403}]
    first, last = ([*agent, json.dumps(script)] for script in (FAKE_SCRIPT, failing))
    lines = list(trim(record(first, tmp_path, last)))
    known = recording_of(recorded_version())
    assert differences(lines, known) == []
    changed = [
        (direction, {**message, "params": {"item": {"type": "commandExecution", "status": 1}}})
        for direction, message in lines
        if message.get("method") == "item/started"
    ]
    assert differences(changed[:1], known) == ["< item/started commandExecution: item.status: int"]


def test_requests_are_calls_that_people_can_read() -> None:
    asked = recorded("item/commandExecution/requestApproval")
    call = command_call(asked, ROOTS, WORKSPACE)
    assert (call.verb, call.body) == ("to run a command", "$ echo yes >> ran.txt")
    again = {**asked, "itemId": "call_9", "startedAtMs": 1, "reason": "to\ntest"}
    same = command_call(again, ROOTS, WORKSPACE)
    assert same.digest == call.digest
    assert same.body.endswith("\n\nReason of the agent: to test")
    for change in (
        {"command": "/bin/bash -c 'echo yes >> ran.txt'"},  # another shell, the same script
        {"cwd": "/workspace/repo/docs"},
        {"networkApprovalContext": {"host": "example.org", "protocol": "https"}},
        {"ofAnotherVersion": True},
    ):
        assert command_call({**asked, **change}, ROOTS, WORKSPACE).digest != call.digest, change
    elsewhere = command_call({**asked, "cwd": "/home/agent"}, ROOTS, WORKSPACE)
    assert elsewhere.body == "$ echo yes >> ran.txt\ncwd: ~"

    items = [recorded("item/started", position)["item"] for position in range(7)]
    [edit] = [item for item in items if item["type"] == "fileChange"]
    deleted = {"path": "/workspace/repo/c.txt", "kind": {"type": "delete"}, "diff": "c\n"}
    moved = {"type": "update", "move_path": "/workspace/repo/e.txt"}
    changes = [*edit["changes"], deleted]
    changes.append(
        {"path": "/workspace/repo/d.txt", "kind": moved, "diff": "@@ -1 +1 @@\n-1\n+2\n"}
    )
    call = edit_call(recorded("item/fileChange/requestApproval"), changes, ROOTS)
    assert call.verb == "to edit files"
    assert call.body.splitlines() == [
        *("--- a/./a.txt", "+++ b/./a.txt", "@@ -1 +1 @@", "-one", "+two"),
        *("--- a/./b.txt", "+++ b/./b.txt", "@@ -0,0 +1 @@", "+b"),
        *("--- a/./c.txt (deleted)", "+++ b/./c.txt (deleted)", "@@ -1 +0,0 @@", "-c"),
        *("--- a/./d.txt (moved to ./e.txt)", "+++ b/./d.txt (moved to ./e.txt)"),
        *("@@ -1 +1 @@", "-1", "+2"),
    ]
    granted = permissions_call({"permissions": {"network": {"enabled": True}}, "cwd": "/x"}, ROOTS)
    assert 'permissions: {"network": {"enabled": true}}' in granted.body


def test_only_the_script_of_a_shell_of_the_system_is_shown_alone() -> None:
    assert shell_script("/bin/bash -lc 'echo \"1\"'") == 'echo "1"'
    for line in (
        "/workspace/repo/bash -lc 'echo 1'",
        "bash -lc ls",
        "/bin/bash -lc ls x",
        "/bin/sh 'x",
    ):
        assert shell_script(line) == line


def test_questions_of_tools_have_their_choices_and_secrets_are_not_asked() -> None:
    asked = recorded("item/tool/requestUserInput")
    [question] = user_questions(asked) or []
    assert (question.name, question.text, question.freeform) == (
        "database",
        "Which database?",
        True,
    )
    assert question.choices[1] == {"value": "SQLite", "description": "small"}
    double = {**QUESTION, "options": [{"label": "A"}, {"label": " a "}, {"label": "x" * 300}, {}]}
    [question] = user_questions({"questions": [{**double, "isOther": False}]}) or []
    assert question.choices == ({"value": "A"}, {"value": "x" * 150})
    assert not question.freeform
    assert user_questions({"questions": [{**QUESTION, "isSecret": True}]}) is None


def test_elicitations_are_questions_or_calls_to_allow() -> None:
    fields = {
        "sure": {"type": "boolean"},
        "count": {"type": "integer", "title": "How many?"},
        "color": {"oneOf": [{"const": "red", "title": "Red"}], "type": "string"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
    }
    form = {"mode": "form", "message": "Deploy?", "requestedSchema": {"properties": fields}}
    assert tool_call(form, ROOTS) is None
    questions = form_questions(form) or []
    values = [[choice["value"] for choice in item.choices] for item in questions]
    assert values == [
        ["yes", "no", "decline"],
        ["decline"],
        ["red", "decline"],
        ["a", "b", "decline"],
    ]
    assert [item.freeform for item in questions] == [False, True, False, False]
    assert questions[1].text == "Deploy?\n\nHow many?\n\n(count)"
    answers = {"sure": "yes", "count": "3", "color": "red", "tags": "a"}
    content = {"sure": True, "count": 3, "color": "red", "tags": ["a"]}
    assert form_content(form, answers) == content
    assert form_content(form, answers | {"count": "three"}) is None
    assert form_content(form, answers | {"color": "decline"}) is None
    meta = {
        "codex_approval_kind": "mcp_tool_call",
        "tool_name": "drop",
        "tool_params": {"table": "t"},
    }
    call = tool_call({**form, "serverName": "db", "_meta": meta}, ROOTS)
    assert call is not None
    assert (call.verb, call.body) == ("to use the tool db.drop", "db.drop\ntable: t")
    page = tool_call({"mode": "url", "serverName": "db", "message": "Log in", "url": "u"}, ROOTS)
    assert page is not None
    assert (page.verb, page.body) == ("to use the tool db", "Log in\nurl: u")
    assert form_questions({"mode": "openai/userVerification"}) is None


def test_the_configuration_distrusts_the_repository_and_calls_the_gateway() -> None:
    def parsed(environment: dict[str, str]) -> dict[str, Any]:
        return tomllib.loads("\n".join(configuration('/work "space"/repo', environment)))

    plain = parsed({})
    assert plain["projects"] == {'/work "space"/repo': {"trust_level": "untrusted"}}
    assert plain["web_search"] == "disabled"
    assert "model_provider" not in plain
    [trusted] = configuration("/repo", {}, "trusted")[:1]
    assert tomllib.loads(trusted)["projects"] == {"/repo": {"trust_level": "trusted"}}
    gateway = parsed({"OPENAI_API_KEY": "t", "OPENAI_BASE_URL": "http://127.0.0.1:8787/v1"})
    provider = gateway["model_providers"][gateway["model_provider"]]
    assert provider["base_url"] == "http://127.0.0.1:8787/v1"
    assert (provider["env_key"], provider["request_max_retries"]) == ("OPENAI_API_KEY", 0)
    direct = parsed({"OPENAI_API_KEY": "k"})["model_providers"]["draftsman"]
    assert direct["base_url"] == "https://api.openai.com/v1"
    assert "request_max_retries" not in direct


def run_codex(folder: Path, script: list[dict[str, Any]], *arguments: str) -> Message:
    """Run the adapter with the scripted agent; return its last message."""
    return messages_of_codex(folder, script, *arguments)[-1]


def messages_of_codex(folder: Path, script: list[dict[str, Any]], *arguments: str) -> list[Message]:
    """Run the adapter with the scripted agent; return its messages."""
    (folder / "repo").mkdir(exist_ok=True)
    (folder / "home").mkdir(exist_ok=True)
    runs = AdapterRuns("draftsman_agents.codex", folder / "repo", folder / "home")
    options = [argument for argument in arguments if argument.startswith("--")]
    others = [argument for argument in arguments if argument not in options]
    command = [sys.executable, "-I", "-S", str(AGENT), json.dumps(script), "app-server", *others]
    return runs.run(command, options=options)


DONE: Final = {"say": "all done"}


@cases(
    "script, arguments, error_class, text",
    [
        ([{"exit": 0}], (), "TRANSIENT_APP", "exited with code 0 before the end of its turn"),
        ([{"fail": 401}], (), "PERMANENT", "unexpected status 401; pass its key"),
        ([{"fail": 503}], (), "TRANSIENT_APP", "ended its turn with failed: unexpected status 503"),
        ([DONE], ("guardian",), "PERMANENT", "has the reviewer 'auto_review', not people"),
        ([DONE], ("old",), "PERMANENT", "does not apply the configuration that draftsman passes"),
        ([DONE], ("subagents",), "PERMANENT", "does not apply the configuration that draftsman"),
        ([DONE], ("--mode=never",), "PERMANENT", "is not among its modes: untrusted, on-request"),
        (
            [{"settings": {"approvalPolicy": "never"}}, DONE],
            (),
            "PERMANENT",
            "the mode 'untrusted' of the agent is 'never'",
        ),
    ],
)
def test_a_model_in_the_place_of_people_and_other_failures_are_errors(
    script: list[dict[str, Any]],
    arguments: tuple[str, ...],
    error_class: str,
    text: str,
    tmp_path: Path,
) -> None:
    error = run_codex(tmp_path, script, *arguments)
    assert (error["type"], error["class"]) == ("error", error_class)
    assert text in error["message"]


def test_the_work_of_a_turn_that_fails_is_kept(tmp_path: Path) -> None:
    *_, saved, error = messages_of_codex(tmp_path, [{"fail": 503}])
    assert (saved["type"], error["type"]) == ("checkpoint", "error")
    assert saved["data"]["session"]


def test_unknown_requests_are_refused(tmp_path: Path) -> None:
    result = run_codex(tmp_path, [{"ask": "item/tool/call"}, {"ask": "execCommandApproval"}, DONE])
    assert (result["type"], result["summary"]) == ("result", "all done")
