"""The adapter of ACP with recorded runs of real agents, each of which it replays exactly."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from draftsman.agents.acp import distrust, keep_sessions, start_folder
from draftsman.settings.agents import known_table
from tests.support import acp_recording
from tests.support.acp_recording import MODULE, PROGRAMS, REPLAY, SUMMARY, recorded
from tests.support.adapter_driver import AdapterRuns
from tests.support.cases import cases


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_approved_call_is_made_by_the_next_run_and_a_denial_reaches_the_agent(
    name: str, tmp_path: Path
) -> None:
    _, path = recorded(name)
    (workspace := tmp_path / "repo").mkdir()
    (home := tmp_path / "home").mkdir()
    runs = AdapterRuns(MODULE, workspace, home)
    command = [sys.executable, "-I", "-S", str(REPLAY), str(path)]
    options = acp_recording.options(name)
    assert runs.run([*command, "0"], options=options)[-1]["type"] == "ask"
    runs.answer("allow once")
    messages = runs.run([*command, "1"], ["not today"], options=options)
    assert messages[-1]["type"] == "result", messages[-1]
    assert messages[-1]["summary"] == SUMMARY
    shown = [*{question["key"]: question["text"] for question in runs.asked}.values()]
    assert [text.split("\n")[0] for text in shown] == ["Allow agent to run a command?"] * 2
    assert "$ echo yes >> ran.txt" in shown[0]
    assert "$ echo no >> ran.txt" in shown[1]
    usage = [message for message in messages if message["type"] == "usage"]
    assert sum(message["input_tokens"] for message in usage) >= 2000
    assert [step["state"] for step in runs.steps.values()] == ["done", "done"]
    activity = [message for message in messages if message["type"] == "activity"]
    states = {(message.get("state"), "echo" in message["text"]) for message in activity}
    assert {("running", True), ("completed", True)} <= states, "the command of a call is shown"


def test_the_settings_of_the_repository_are_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(os, "environ", environment := {"HOME": str(tmp_path)})
    distrust("/workspace/repo")
    for name in ("QWEN_CODE", "GEMINI_CLI"):
        folders = Path(environment[f"{name}_TRUSTED_FOLDERS_PATH"])
        assert json.loads(folders.read_text()) == {"/workspace/repo": "DO_NOT_TRUST"}
    settings = Path(environment["QWEN_CODE_SYSTEM_SETTINGS_PATH"])
    assert json.loads(settings.read_text())["security"]["folderTrust"]["enabled"] is True


def test_the_sessions_of_gemini_cli_are_not_overwritten_in_their_minute(tmp_path: Path) -> None:
    (chats := tmp_path / ".gemini" / "tmp" / "repo" / "chats").mkdir(parents=True)
    answered = '{"type":"gemini","content":"all done"}'
    for session, content in (("63ea3f81", answered), ("0a1b2c3d", "{}"), ("63ea3f81", "{}")):
        (chats / f"session-2026-11-27T08-45-{session}.jsonl").write_text(content)
        keep_sessions(tmp_path)
    kept = {file.name.rpartition("-")[2]: file.read_text() for file in chats.iterdir()}
    assert kept == {"63ea3f81.jsonl": answered, "0a1b2c3d.jsonl": "{}"}
    assert all(file.match("session-earlier-*-2026-11-27T08-45-*") for file in chats.iterdir())


def test_goose_is_not_started_in_the_repository_whose_hooks_it_would_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("goose", "goose-binary-linux-x64"):
        assert start_folder(f"/opt/bin/{name}", "/workspace/repo") == str(Path.home())
    assert start_folder("/opt/goose/bin/qwen", "/workspace/repo") == "/workspace/repo"
    monkeypatch.setenv("GOOSE_PROVIDER", "openai")
    assert start_folder("/opt/bin/wrapper", "/workspace/repo") == str(Path.home())


@cases("name", PROGRAMS)
def test_a_recording_has_the_mode_and_never_an_answer_for_always(name: str) -> None:
    _, path = recorded(name)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    sent = [line["message"] for line in lines if line["direction"] == ">"]
    modes = [message for message in sent if "mode" in str(message.get("method"))]
    methods = {message.get("method") for message in sent}
    assert modes or "session/set_config_option" in methods
    assert str(known_table(name)["session_mode"]) in json.dumps(sent)
    assert "always" not in json.dumps([message for message in sent if "result" in message])
