"""The coding agents of the demo, and its scripted model; `soak_codex.py` runs the real program."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from draftsman.agents.adapter import MAKE_AGAIN, MAKE_NOW
from draftsman.database.embedded.layout import MAJOR
from draftsman.errors import SchemaOutdated, UsageError
from draftsman.questions.answer import Verdict
from draftsman.settings import Settings
from draftsman.settings.agents import AgentSettings, demo_calls, known_table
from draftsman.settings.llm import GatewaySettings
from draftsman.settings.sandbox import SandboxSettings
from draftsman_testing.channel.samples import question
from draftsman_tui.cli.demo.agent import (
    SUMMARY,
    UNCHANGED,
    DemoModel,
    demo_agent,
    find_agent,
    own_configuration,
    unusable_database,
)
from draftsman_tui.cli.demo.demo import Demo
from draftsman_tui.cli.demo.steps import STEPS, label_of
from draftsman_tui.terminal.output import CommandOutput
from tests.support.cases import cases

TURN = {"tool": "exec_command", "args": {}}
CALLS = demo_calls()
KINDS = {name: known_table(name)["kind"] for name in CALLS}


def settings(**agents: dict[str, Any]) -> Settings:
    """Return settings with these agents, without a sandbox."""
    tables = {name: AgentSettings.of(table) for name, table in agents.items()}
    return Settings.model_construct(
        agents=tables,
        gateways={"own": GatewaySettings(provider="openai")},
        sandbox=SandboxSettings(mode="off"),
    )


@cases("name", CALLS)
def test_a_known_agent_gets_a_scripted_model_behind_a_gateway(name: str) -> None:
    table = {"kind": KINDS[name], "command": [sys.executable]}
    with demo_agent(settings(**{name: table}), name) as env:
        agent = json.loads(env["DRAFTSMAN_AGENTS"])[name]
        gateway = json.loads(env["DRAFTSMAN_GATEWAYS"])[agent["gateway"]]
    assert agent["command"][0] == sys.executable
    assert not agent["network"]
    assert gateway["provider"] == CALLS[name].provider
    assert gateway["base_url"].startswith("http://127.0.0.1:")
    texts = env["DRAFTSMAN_AGENTS"]
    assert "{model}" not in texts
    assert "{command}" not in texts


def test_an_agent_with_a_gateway_of_its_own_keeps_its_model() -> None:
    table = {"kind": "codex", "command": [sys.executable], "gateway": "own"}
    with demo_agent(settings(codex=table), "codex") as env:
        assert env == {}


def test_an_installed_agent_is_found() -> None:
    table = {"kind": "codex", "command": [sys.executable]}
    missing = {"kind": "claude", "command": ["/nonexistent/claude"]}
    assert find_agent(settings(claude=missing, codex=table)) == "codex"


@cases(
    ("name", "command", "text"),
    [
        ("unknown", None, "it is not configured; add [agents.unknown] to the configuration"),
        ("codex", "/nonexistent/codex", "the agent codex cannot run here: "),
        ("own", sys.executable, "no scripted model for the agent own, only for claude, codex,"),
    ],
)
def test_other_agents_are_refused(name: str, command: str | None, text: str) -> None:
    agents = {} if command is None else {name: {"command": [command]}}
    with pytest.raises(UsageError, match=re.escape(text)), demo_agent(settings(**agents), name):
        pass


@cases("phrase", [MAKE_NOW, MAKE_AGAIN])
def test_the_model_makes_a_lost_call_again(phrase: str) -> None:
    model = DemoModel([TURN, {"text": SUMMARY}])
    assert model.turn(0, [{"text": "Do it"}]) == TURN
    assert model.turn(1, [{"output": "done"}]) == {"text": SUMMARY}
    assert model.turn(1, [{"output": "aborted"}, {"text": f"… {phrase}"}]) == TURN
    assert model.turn(1, [{"output": "denied by anna: no"}, {"text": "go on"}]) == {
        "text": UNCHANGED
    }


def test_steps_are_printed_in_order_with_each_line_of_a_context_indented(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing: Any = None
    demo = Demo(nothing, CommandOutput(color=False), nothing, None, "tidy", {})
    demo.steps.info("answer", "all", at=demo.steps.began + 5)
    demo.steps.info("resumed", "by anna", at=demo.steps.began + 4.9)
    demo._show_question(replace(question(), context_snippet="one\n  two"))
    lines = capsys.readouterr().out.splitlines()
    assert [line[:10] for line in lines[:2]] == ["   5.0 s  "] * 2
    assert [line for line in lines if line.strip() in ("one", "two")] == [
        f"{'':21}one",
        f"{'':23}two",
    ]


async def test_choices_are_aligned_and_an_answer_by_number_is_shown_as_its_label(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def answer(*_: object) -> Verdict:
        return Verdict(1, 1, accepted=True, resolved=True, answer_text="allow for this job")

    runtime: Any = SimpleNamespace(questions=SimpleNamespace(answer=answer))
    demo = Demo(runtime, CommandOutput(color=False), runtime, None, "codex", {})
    choices = [
        {"value": "deny", "label": "deny", "description": "first"},
        {"value": "always", "label": "allow for this job", "description": "second"},
    ]
    asked = replace(question(), choices=choices)
    demo._show_question(asked)
    assert await demo._submit_answer(asked, "2")
    *_, first, second, answered = capsys.readouterr().out.splitlines()
    assert first.index("first") == second.index("second")
    assert answered.endswith("answer    allow for this job")


def test_an_unusable_database_of_the_demo_is_named_with_its_deletion(tmp_path: Path) -> None:
    folder = tmp_path / "draftsman demo"
    elsewhere = tmp_path / "clusters"
    for path in (folder, elsewhere):
        path.mkdir()
    config = folder / "draftsman.toml"
    link = folder / f"postgres{MAJOR}"
    stop = f"draftsman --config '{config}' db stop"
    inside = str(unusable_database(config, SchemaOutdated("it is old")))
    assert f"the demo's database in {link} is of another version" in inside
    assert inside.endswith(f"to delete it: {stop}; rm -r '{folder}'")
    link.symlink_to(elsewhere)
    outside = str(unusable_database(config, SchemaOutdated("it is old")))
    assert f"the demo's database in {elsewhere} is" in outside
    assert outside.endswith(f"; rm -r {elsewhere} '{folder}'")


def test_labels_of_steps_are_words_that_end_before_the_text() -> None:
    assert label_of("delivery_dead_lettered") == ("delivery", "red")
    assert label_of("job_dead_lettered") == ("dead", "red")
    assert all(len(label) < 10 for label, _ in STEPS.values())


def test_each_kind_of_demo_has_its_own_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = []
    for chosen in (True, False):
        for chat in (None, "slack", "trello"):
            monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
            monkeypatch.delenv("DRAFTSMAN_DATA_DIR", raising=False)
            if chosen:
                monkeypatch.setenv("DRAFTSMAN_DATA_DIR", str(tmp_path / "chosen"))
            configs.append(own_configuration(chat))
    assert len(set(configs)) == len(configs)
    assert all(config.is_relative_to(tmp_path) for config in configs)
    texts = [config.read_text() for config in configs]
    assert texts == [f'data_dir = "{config.parent}"\n' for config in configs]
