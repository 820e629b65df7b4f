"""Check of an agent's command: whether a run could start it, seen from inside the sandbox.

The program is not started: it might work for hours, or cost money.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from draftsman.errors import Failure
from draftsman.handlers.sandbox.mode_detection import (
    SandboxMode,
    probe_folder,
    probe_sandbox,
    run_probe,
)
from draftsman.handlers.subprocesses.environment import (
    agent_command,
    agent_environment,
    find_program,
)
from draftsman.settings import AgentSettings

INTERPRETER: Final = re.compile(
    r"(python|pypy|node|deno|bun|ruby|perl|php|bash|dash|sh|zsh)[\d.]*\Z"
)
PYTHON: Final = re.compile(r"(python|pypy)[\d.]*\Z")
TAKES_VALUE: Final = frozenset({"-X", "-W"})
"""Options of Python whose value follows as an argument of its own."""
TAKES_CODE: Final = frozenset({"-c", "-e", "-m", "-"})
"""Options after which no file of a script follows."""
CHECK_FILES: Final = """
opens() { [ ! -r "$1" ] || true <"$1"; }
for item do
    place=${item#?:}
    case $item in
        x:*) [ -x "$place" ] && opens "$place" && continue ;;
        r:*) [ -r "$place" ] && opens "$place" && continue ;;
        c:*) found=$(command -v "$place") && opens "$found" && continue ;;
    esac 2>/dev/null
    printf '%s\n' "$item"
done
"""
"""Prints what cannot be run (x), read (r) or found on PATH (c); Landlock shows in opening only."""
FIND_MODULE: Final = """
import importlib.util, sys
try: found = importlib.util.find_spec(sys.argv[1])
except (ImportError, ValueError): found = None
sys.exit(7 if found is None else 0)
"""
MAKE_READABLE: Final = (
    "add its folder to [sandbox] read_only, or move it to where every user may read it"
)
MOVE_OUT_OF_TMP: Final = "move it out of /tmp, which is private to each run"


def find_command_problem(
    agent: AgentSettings, sandbox: SandboxMode | None
) -> tuple[str, str] | None:
    """Return why a run could not start the agent, and what to do; None: it could.

    Without a sandbox that holds, only this machine is looked at.
    """
    try:
        environment = agent_environment(agent, Path.home())
        command = agent_command(agent)
        program = _program(command[0], environment)
        script = _script(command)
    except Failure as error:
        return str(error), "install it, or change its command in the configuration"
    if sandbox is None:
        return None
    return _inside(agent, sandbox, (program, *command[1:]), script, environment)


def relative_arguments(agent: AgentSettings) -> str | None:
    """Return what of the command depends on the folder that it is started in."""
    command = agent_command(agent)
    if "/" in command[0] and not command[0].startswith("/"):
        return (
            f"{command[0]!r} is a relative path: it is found only from the folder in which"
            " `draftsman worker` is started"
        )
    script = _script_argument(command)
    if script is not None and not script.startswith("/"):
        return f"{script!r} is a relative path: it is looked for in the repository of the job"
    return None


def _program(name: str, environment: Mapping[str, str]) -> str:
    """Return the path of the program; raises Failure that says what is wrong with it."""
    if "/" in name and Path(name).is_dir():
        raise Failure(f"{name} is a folder, not a program", origin="agent")
    if "/" in name and Path(name).exists() and not os.access(name, os.X_OK):
        raise Failure(f"{name} is not executable; run: chmod +x {name}", origin="agent")
    return find_program(name, environment)


def _script(command: Sequence[str]) -> str | None:
    """Return the file that an interpreter is to run, if it is known where; raises Failure."""
    script = _script_argument(command)
    if script is None or not script.startswith("/"):
        return None
    if not Path(script).is_file():
        raise Failure(f"there is no file {script}, which {command[0]} is to run", origin="agent")
    return script


def _script_argument(command: Sequence[str]) -> str | None:
    if not INTERPRETER.match(Path(command[0]).name):
        return None
    skip = False
    for argument in command[1:]:
        if skip:
            skip = False
        elif argument in TAKES_CODE:
            return None
        elif not argument.startswith("-"):
            return argument
        else:
            skip = argument in TAKES_VALUE
    return None


def _inside(
    agent: AgentSettings,
    sandbox: SandboxMode,
    command: Sequence[str],
    script: str | None,
    environment: Mapping[str, str],
) -> tuple[str, str] | None:
    """Look at the program, what its first line names and its script, as a run of it would."""
    wanted = [f"x:{command[0]}", *_interpreters(command[0])]
    wanted += [f"r:{script}"] if script else []
    with probe_folder() as folder:
        home = folder / "home"
        box = probe_sandbox(sandbox, home)
        plan = box.plan(command, home, agent.network)
        variables = box.environment(environment)
        try:
            done = run_probe(plan, ["/bin/sh", "-c", CHECK_FILES, "sh", *wanted], variables)
            if done.returncode != 0:
                return _not_started(done.stderr)
            if missing := done.stdout.splitlines():
                return _missing(missing[0], command[0])
            if (module := _module(command)) is not None:
                flags, name = module
                find = [command[0], *flags, "-c", FIND_MODULE, name]
                done = run_probe(plan, find, variables)
                if done.returncode == 7:
                    return f"no module {name!r}", f"install it for {command[0]}"
                if done.returncode != 0:
                    return _not_started(done.stderr)
        except (OSError, subprocess.TimeoutExpired) as error:
            return _not_started(str(error))
    return None


def _interpreters(program: str) -> Iterator[str]:
    """Yield what the first line of a script names, where the program is one."""
    try:
        with Path(program).open("rb") as file:
            first = file.readline(4096)
    except OSError:
        return
    if not first.startswith(b"#!"):
        return
    words = first[2:].decode(errors="replace").split()
    if words:
        yield f"x:{words[0]}"
    if len(words) > 1 and Path(words[0]).name == "env" and not words[1].startswith("-"):
        yield f"c:{words[1]}"


def _module(command: Sequence[str]) -> tuple[list[str], str] | None:
    """Return the options before `-m` and the module that Python is to run."""
    arguments = list(command[1:])
    if not PYTHON.match(Path(command[0]).name) or "-m" not in arguments[:-1]:
        return None
    place = arguments.index("-m")
    if _script_argument([command[0], *arguments[:place]]) is not None:
        return None
    return arguments[:place], arguments[place + 1]


def _missing(item: str, program: str) -> tuple[str, str]:
    kind, _, place = item.partition(":")
    of_first_line = place != program and kind != "r"
    why = f", which the first line of {program} names," if of_first_line else ""
    verb = {"x": "run", "r": "read", "c": "found on PATH"}[kind]
    then = MOVE_OUT_OF_TMP if place.startswith("/tmp/") else MAKE_READABLE  # noqa: S108 - that of the sandbox
    return f"{place}{why} cannot be {verb} inside the sandbox", then


def _not_started(said: str) -> tuple[str, str]:
    lines = said.strip().splitlines()
    why = lines[-1][:200] if lines else "no reason was given"
    return f"it could not be tried inside the sandbox: {why}", "see docs/sandbox.md"
