"""Whatever changes something, on each surface, is a declared action, or here with its reason."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import draftsman
import draftsman_bots
import draftsman_tui
from draftsman.runtime import Runtime
from draftsman_bots.slack import ids
from draftsman_bots.slack.controls import CONTROLS, DIALOGS, FORMS
from draftsman_bots.web import job_pages, question_pages, service, start_pages
from draftsman_tui.cli.app import ACTIONS_OF, App
from draftsman_tui.cli.mcp.mcp import TeamTools
from draftsman_tui.cli.mcp.type_tools import PREFIX
from draftsman_tui.dashboard.command_table import COMMANDS
from tests.support.cases import cases
from tests.support.commands import leaves

DATABASE: Final = "the database itself; the people that migrate imports are an action"
SEEN: Final = "it reads, and records that its reader saw the open questions"
WEBHOOK: Final = "a webhook at Trello"
COMMANDS_WITHOUT_ACTION: Final = {
    "dashboard": "its commands take the actions",
    "demo": "a demonstration, on a database of its own",
    "migrate": DATABASE,
    "show": SEEN,
    "questions": SEEN,
    "wait": "on a terminal it asks the questions of the job, which actions answer",
    "boards webhook add": WEBHOOK,
    "boards webhook repair": WEBHOOK,
    "boards webhook remove": WEBHOOK,
}
"""Commands that connect to write and have no action of their own."""
KEYS_WITHOUT_ACTION: Final = {
    "undo": "the undo of an action that is still held",
    "review": "it opens questions, which actions answer",
}
"""Commands of the dashboard that write and have no action of their own."""
CONTROLS_WITHOUT_ACTION: Final = {ids.REFRESH: "it shows the App Home again"}
POSTS_WITHOUT_ACTION: Final = {
    "use_link": "the session of the browser itself",
    "sign_out": "the session of the browser itself",
    "undo": "the undo of an answer that is still held",
}
TOOLS: Final = {
    "ask_human": "request.submit",
    "request_approval": "request.submit",
    "submit_job": "request.submit",
    "run_…": "request.run type",
}
"""The actions of the tools of programs that do not only read."""
READING: Final = {
    "actor",
    "refusal",
    "require_known",
    "check",
    "check_pause",
    "checked",
    "of_question",
    "newest_of",
}
"""Methods of services that read or refuse in somebody's name, and change nothing."""
CALLS_WITHOUT_ACTION: Final = {
    "figures.record_views": "who has seen a question, for statistics",
    "questions.refuse": "the record of a refused answer",
    "job_control.refuse": "the record of a refused control",
    "people.bind_account": "the account of a person, before the person acts",
    "threads.edited": "an edit in a channel, which is no answer",
    "threads.deleted": "a deletion in a channel, which is no answer",
    "submissions.submit": "requests of Slack, whose batches of a moment are a transaction",
}
"""Changing methods of services that front ends call, with the reason."""
WITHOUT_ACTOR: Final = {
    "people.save",
    "people.create_link_code",
    "BrowserSessions.create_link",
    "BrowserSessions.end",
    "BrowserSessions.end_all",
    "TrelloBoards.save",
    "TrelloBoards.remove",
    "boards_of.save",
    "boards_of.remove",
}
"""Changing methods of services that have no parameter for an actor, or are of a channel."""
DEMO: Final = Path(draftsman_tui.__file__).parent / "cli/demo"
"""A demonstration, on a database of its own."""


def test_each_command_that_writes_takes_an_action() -> None:
    writing = {
        name
        for name, command in leaves()
        if not ACTIONS_OF[command] and _connects_to_write(command.callback)
    }
    assert writing == COMMANDS_WITHOUT_ACTION.keys()


def test_each_command_of_an_action_has_examples_and_json() -> None:
    for name, command in leaves():
        options = [str(param.name) for param in command.params]
        if ACTIONS_OF[command]:
            assert "Examples:" in (command.epilog or ""), name
            assert "json" in options, name
        is_confirmed = any(action.is_confirmed for action in ACTIONS_OF[command])
        assert options.count("yes") in ({1} if is_confirmed else {0, 1}), name


def test_each_key_that_writes_takes_an_action() -> None:
    writing = {command.name for command in COMMANDS if command.needs or command.writes}
    without = {command.name for command in COMMANDS if not command.actions}
    assert writing & without == KEYS_WITHOUT_ACTION.keys()


def test_each_control_of_slack_takes_an_action() -> None:
    known = {*CONTROLS, *DIALOGS, *FORMS, *CONTROLS_WITHOUT_ACTION}
    routed = _tree(import_module("draftsman_bots.slack.listeners.actions"))
    named = {
        getattr(ids, node.attr)
        for node in ast.walk(routed)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) == "ids"
        and node.attr.isupper()
    }
    assert named <= known


def test_each_form_of_the_web_takes_an_action() -> None:
    posts = {
        ast.unparse(node.args[1]).rpartition(".")[2]
        for node in ast.walk(_tree(service))
        if isinstance(node, ast.Call)
        and [ast.unparse(argument) for argument in node.args[2:]] == ["'POST'"]
        and ast.unparse(node.func) == "route"
    }
    assert posts == {
        question_pages.answer.__name__,
        start_pages.submit.__name__,
        job_pages.act.__name__,
        *POSTS_WITHOUT_ACTION,
    }


def test_each_tool_of_programs_takes_an_action() -> None:
    tools = TeamTools(App(), 1.0, []).tools()
    names = {tool.name for tool in tools if not tool.read_only}
    assert names | {f"{PREFIX}…"} == TOOLS.keys()
    (actions,) = (ACTIONS_OF[command] for name, command in leaves() if name == "mcp")
    assert {action.key for action in actions} == {*TOOLS.values()}


@cases("package", [draftsman_tui, draftsman_bots])
def test_front_ends_change_nothing_by_themselves(package: ModuleType) -> None:
    root = Path(str(package.__file__)).parent
    calls = [
        f"{path.relative_to(root)}:{line}: {call}"
        for path in sorted(root.rglob("*.py"))
        if DEMO not in path.parents and "@action(" not in path.read_text()
        for line, call in _changing_calls(path)
        if call not in CALLS_WITHOUT_ACTION
    ]
    assert not calls, "\n".join(calls)


def test_the_sweep_knows_the_services() -> None:
    assert {"questions.answer", "queues.pause", "submissions.submit"} <= _changing()
    assert _changing() >= CALLS_WITHOUT_ACTION.keys()


def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _connects_to_write(callback: Any) -> bool:
    """Return whether a command, or a function of its module that it calls, connects to write."""
    function = inspect.unwrap(callback)
    module = inspect.getmodule(function)
    assert module is not None
    functions = {
        node.name: node
        for node in _tree(module).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    pending = [function.__name__]
    while pending:
        node = functions.pop(pending.pop(), None)
        for call in ast.walk(node) if node is not None else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                pending.append(call.func.id)
            elif (
                isinstance(call, ast.Call)
                and ast.unparse(call.func).endswith(".runtime")
                and "read_only=True" not in map(ast.unparse, call.keywords)
            ):
                return True
    return False


@cache
def _changing() -> frozenset[str]:
    """Return the methods of services by which somebody changes something: `queues.pause`."""
    runtime = ast.parse((Path(draftsman.__file__).parent / "runtime.py").read_text())
    classes = {
        alias.name: getattr(import_module(node.module), alias.name)
        for node in ast.walk(runtime)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("draftsman.")
        for alias in node.names
    }
    return frozenset(
        f"{name}.{method}"
        for name, attribute in vars(Runtime).items()
        if isinstance(attribute, cached_property)
        and (kind := attribute.func.__annotations__["return"]) in classes
        for method, function in inspect.getmembers(classes[kind], inspect.isfunction)
        if "actor" in inspect.signature(function).parameters
        and not method.startswith("_")
        and method not in READING
    )


def _changing_calls(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line of each call of a changing method, and the method with its service."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            name = ast.unparse(owner.func if isinstance(owner, ast.Call) else owner)
            call = f"{name.rpartition('.')[2]}.{node.func.attr}"
            if ("." in name and call in _changing()) or call in WITHOUT_ACTOR:
                yield node.lineno, call
