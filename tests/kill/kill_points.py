"""The points at which a process can be killed, collected from the code and named after it.

    claim.exchange before                     a named query of the store, not yet sent
    claim.exchange after                      executed; its transaction may still be open
    claim.exchange committed                  committed; the reply is not read
    git workspace.Workspace._clone fetch during   git runs
    agent says ask before                     a message came and nothing was done about it
    agent is told answer after                a message went out
    agent process start after
    files workspace._delete before            something is done to files, in a thread
    forge create after                        a forge did something, and nothing is recorded

A read has one point, before it: nothing depends on its end.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, get_args

from draftsman.agent_runs.protocol import codec as protocol_codec
from draftsman.agent_runs.protocol import protocol
from draftsman.forges.api import publication
from draftsman.sandbox.processes.process import AgentProcess
from tests.support.queries import TEXTS

WRITES: Final = re.compile(
    r"\b(INSERT|UPDATE|DELETE|STDIN|LISTEN|nextval|set_config|pg_notify|pg_advisory_lock"
    r"|draftsman\.(?!(?:now|current_epoch|sentence|is_job_of|is_repo_of)\b)\w+(?=\())\b"
)
"""Marks of a query that is more than a read: it changes rows, locks them, changes its session, or
calls a function of ours that may."""
GIT_READS: Final = {
    "cat-file", "diff", "for-each-ref", "ls-files", "ls-remote", "ls-tree", "rev-parse", "show",
}  # fmt: skip
GROUPS: Final = ("agent_runs", "handlers", "sandbox")
RULES: Final = re.compile(
    r"^(agent_runs.(activity|changes|evidence|policies)|handlers.job_types)\b"
)
"""Packages of the groups that run no program and write no file for an agent."""
ROOT: Final = "draftsman.agent_runs.run"
"""The module that drives agents: it and the handlers' modules that it imports are searched."""


def drives_agents(module: str) -> bool:
    """Return whether a module is one of those that are searched."""
    package = module.removeprefix("draftsman.")
    return package.startswith(tuple(f"{group}." for group in GROUPS)) and not RULES.search(package)


@cache
def texts() -> dict[str, str]:
    """Return the name of each query by its text."""
    names = [(text, f"{family}.{name}") for family in TEXTS for name, text in TEXTS[family].items()]
    names_by_text = dict(names)
    assert len(names_by_text) == len(names), "two queries have one text: their points have one name"
    return names_by_text


@cache
def is_read(query: str) -> bool:
    """Return whether a query changes nothing and locks nothing."""
    family, name = query.split(".")
    return WRITES.search(re.sub(r"--.*", "", TEXTS[family][name])) is None


def all_points() -> set[str]:
    """Return all points."""
    return sql_points() | phase_points()


def sql_points() -> set[str]:
    """Return the points of the named queries."""
    return {
        f"{name} {moment}"
        for name in texts().values()
        for moment in (("before",) if is_read(name) else ("before", "after", "committed"))
    }


def reads() -> set[str]:
    """Return the points of the queries that change nothing: people's processes only pass them."""
    return {f"{name} before" for name in texts().values() if is_read(name)}


def phase_points() -> set[str]:
    """Return the points of an agent's run other than queries."""
    both = ("before", "after")
    points = {
        f"{name} {moment}" for name in git_calls() for moment in ("before", "during", "after")
    }
    points |= {f"{name} {moment}" for name in file_calls() for moment in both}
    sent = {f"agent says {name}" for name in protocol_codec.TYPES}
    sent |= {
        f"agent is told {model.model_fields['type'].default}"
        for model in get_args(protocol.ToAgent)
    }
    sent |= {f"agent process {name}" for name in process_methods()}
    return points | {f"{name} {moment}" for name in sent for moment in both}


def forge_points() -> set[str]:
    """Return the points of an agent's run with a pull request, from its push on."""
    points = {f"forge {name} {moment}" for name in forge_calls() for moment in ("before", "after")}
    points |= {f"git source.RepoSource.push push {moment}" for moment in ("before", "after")}
    steps = ("checkpoints.begin_step", "checkpoints.finish_step", "run_state.pull_request")
    return points | {point for point in sql_points() if point.split()[0] in steps}


@cache
def forge_calls() -> set[str]:
    """Return the methods of a forge by which pull requests are opened."""
    tree = ast.parse(inspect.getsource(publication))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [ast.unparse(call.func).partition(".") for call in calls]
    return {method for owner, _, method in named if owner == "forge"}


@cache
def process_methods() -> set[str]:
    """Return the operations on an agent's process, except the dialog with it."""
    public = {name for name in vars(AgentProcess) if not name.startswith("_")}
    return {
        name
        for name in public - {"post", "send", "close_input", "lines", "chunks", "pid"}
        if inspect.isroutine(getattr(AgentProcess, name))
    }


def git_calls() -> set[str]:
    """Return every call of a git command that writes: `git MODULE.FUNCTION SUBCOMMAND`."""
    subcommands = set()
    for module, function, call in _calls():
        if _called(call) in ("git", *_relays(module)) and (word := subcommand(_words(call))):
            subcommands.add((module, function, word))
    return {
        f"git {module}.{name} {word}" for module, name, word in subcommands if word not in GIT_READS
    }


def file_calls() -> set[str]:
    """Return every file operation in a thread: `files MODULE.FUNCTION CALL`."""
    return {
        f"files {module}.{function} {ast.unparse(call.args[0]).rpartition('.')[2]}"
        for module, function, call in _calls()
        if _called(call) == "to_thread"
    }


def subcommand(arguments: list[str]) -> str | None:
    """Return the git subcommand, from the constant arguments."""
    rest = iter(arguments)
    for word in rest:
        if word == "-c":
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return None


@cache
def modules() -> dict[str, ast.Module]:
    """Return the source of the modules that an agent's run is made of, by their short names."""
    trees: dict[str, ast.Module] = {}
    waiting = [ROOT, "draftsman.agent_runs.clones.tree_removal"]
    while waiting:
        name = waiting.pop()
        if (short := name.rpartition(".")[2]) in trees:
            continue
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        trees[short] = tree = ast.parse(Path(spec.origin).read_text())
        imported = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        for node in imported:
            parts = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            waiting += [part for part in parts if drives_agents(part)
                        and _is_module(part)]  # fmt: skip
    return trees


def _is_module(name: str) -> bool:
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return False
    return spec is not None and spec.submodule_search_locations is None


@cache
def _calls() -> list[tuple[str, str, ast.Call]]:
    return [(name, *call) for name, tree in modules().items() for call in _within(tree, "")]


def _within(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{function}.{child.name}".lstrip(".")
        elif isinstance(child, ast.Call):
            yield function, child
        yield from _within(child, inner)


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


@cache
def _relays(module: str) -> set[str]:
    """Return the functions of a module that run a git command passed to them."""
    return {
        function.rpartition(".")[2]
        for name, function, call in _calls()
        if name == module and _called(call) == "git" and subcommand(_words(call)) is None
    }


def _words(call: ast.Call) -> list[str]:
    arguments: list[str] = []
    for argument in call.args:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        arguments += [str(part.value) for part in parts if isinstance(part, ast.Constant)]
    return arguments
