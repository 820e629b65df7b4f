"""Check of a configured agent: whether a run could start it, its version and its model."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from draftsman.errors import ConfigError, Failure
from draftsman.outbound import secret_values
from draftsman.outbound.secret_values import MissingSecret
from draftsman.sandbox.failed_modes import PROBE_TIMEOUT
from draftsman.sandbox.mode_detection import (
    probe_folder,
    probe_sandbox,
    run_probe,
)
from draftsman.sandbox.processes.environment import (
    OwnPort,
    agent_command,
    agent_environment,
    find_program,
    is_own_agent,
)
from draftsman.sandbox.sandbox_plan import SandboxMode
from draftsman.settings.agents import PROTOCOL, AgentSettings
from draftsman.settings.llm import GatewaySettings
from draftsman.version import installed

# Check whether a run could start an agent's command inside the sandbox.


INTERPRETER: Final = re.compile(
    r"(python|pypy|node|deno|bun|ruby|perl|php|bash|dash|sh|zsh)[\d.]*\Z"
)
PYTHON: Final = re.compile(r"(python|pypy)[\d.]*\Z")
TAKES_VALUE: Final = frozenset({"-X", "-W"})
"""Options of Python whose value is the next argument."""
TAKES_CODE: Final = frozenset({"-c", "-e", "-m", "-"})
"""Options that are followed by code or a module, not by a script."""
CHECK_FILES: Final = """
opens() { [ ! -r "$1" ] || true <"$1"; }
for item do
    path=${item#?:}
    case $item in
        x:*) [ -x "$path" ] && opens "$path" && continue ;;
        r:*) [ -r "$path" ] && opens "$path" && continue ;;
        c:*) program=$(command -v "$path") && opens "$program" && continue ;;
    esac 2>/dev/null
    printf '%s\n' "$item"
done
"""
"""Prints items that cannot be run (x), read (r) or found on PATH (c).

Opens each file, since `test` does not see the restrictions of Landlock.
"""
FIND_MODULE: Final = """
import importlib.util, sys
try: spec = importlib.util.find_spec(sys.argv[1])
except (ImportError, ValueError): spec = None
sys.exit(7 if spec is None else 0)
"""
VERSION: Final = re.compile(r"\d+(\.\d+)+[-+.\w]{0,40}")
MAKE_READABLE: Final = (
    "add its folder to [sandbox] read_only, or move it to a folder that every user can read"
)


START_TIMEOUT: Final = 5.0
"""Seconds after which a program that has not ended counts as started."""
NOT_STARTED: Final = (126, 127)
"""Exit codes for a program that cannot be executed, or was not found."""


def find_command_problem(
    agent: AgentSettings, sandbox: SandboxMode | None
) -> tuple[str, str | None] | None:
    """Return the reason why a run could not start the agent, and a hint; None if it could.

    `sandbox` is None if no sandbox works here: then only the files of this machine are checked.
    """
    if sandbox is not None and sandbox.mode == "container":
        return _find_problem_in_image(agent, sandbox)
    try:
        environment = agent_environment(agent, Path.home())
        command = agent_command(agent)
        program = _program(command[0], environment)
        script = _script(command)
    except Failure as error:
        return str(error), None  # the error says what to do
    if sandbox is None:
        return None
    return _find_problem_inside(agent, sandbox, (program, *command[1:]), script, environment)


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """A program of an agent that was started in the sandbox, without network and input."""

    program: str
    exit_code: int | None = None
    """None if it did not end in time."""
    output: str = ""
    errors: str = ""

    @property
    def version(self) -> str | None:
        """The version that it prints; None if it fails."""
        match = VERSION.search(self.output)
        return match[0] if self.exit_code == 0 and match else None

    def problem(self, must_succeed: bool) -> tuple[str, str] | None:
        """Return why it does not start, and a hint; None if it starts."""
        code = self.exit_code
        runs = code is None or (code >= 0 and code not in NOT_STARTED)
        if code == 0 or (runs and not must_succeed):
            return None
        lines = self.errors.strip().splitlines() or self.output.strip().splitlines()
        detail = f": {lines[-1][:200]}" if lines else ""
        end = "does not end" if code is None else f"ends with the code {code}"
        return (
            f"{self.program} {end} inside the sandbox{detail}",
            "see: draftsman help --page sandbox#file-system",
        )


def start_program(
    agent: AgentSettings, sandbox: SandboxMode, arguments: Sequence[str] | None = None
) -> StartedProgram:
    """Start the program of an agent, with other arguments than its own if they are given."""
    own_port = OwnPort.of(agent)
    environment = agent_environment(agent, Path.home(), sandbox=sandbox, own_port=own_port)
    program, *own = agent_command(agent, sandbox, own_port)
    try:
        if sandbox.mode != "container":
            program = _program(program, environment)
        command = [program, *(own if arguments is None else arguments)]
        with probe_folder() as folder:
            run_sandbox = probe_sandbox(sandbox, home := folder / "home")
            path = environment.get("PATH", "")
            plan = run_sandbox.plan(command, home, network=False, path=path)
            completed = run_probe(
                plan,
                command,
                run_sandbox.environment(environment),
                START_TIMEOUT if arguments is None else PROBE_TIMEOUT,
            )
    except subprocess.TimeoutExpired:
        return StartedProgram(program)
    except (Failure, OSError) as error:
        return StartedProgram(program, NOT_STARTED[-1], errors=str(error))
    return StartedProgram(program, completed.returncode, completed.stdout, completed.stderr)


def relative_arguments(agent: AgentSettings) -> str | None:
    """Return a warning if the command has a relative path; None if it has none."""
    command = agent_command(agent)
    if "/" in command[0] and not command[0].startswith("/"):
        return (
            f"{command[0]!r} is a relative path, resolved from the folder where the"
            " worker is started"
        )
    script = _script_argument(command)
    if script is not None and not script.startswith("/"):
        return f"{script!r} is a relative path, resolved in the repository of the job"
    return None


def _program(name: str, environment: Mapping[str, str]) -> str:
    """Return the path of the program; raises Failure if it cannot be run."""
    if "/" in name and Path(name).is_dir():
        raise Failure(f"{name} is a folder, not a program; correct the command", origin="agent")
    if "/" in name and Path(name).exists() and not os.access(name, os.X_OK):
        raise Failure(f"{name} is not executable; run: chmod +x {name}", origin="agent")
    return find_program(name, environment)


def _script(command: Sequence[str]) -> str | None:
    """Return the absolute path of an interpreter's script, if it has a script; raises Failure."""
    script = _script_argument(command)
    if script is None or not script.startswith("/"):
        return None
    if not Path(script).is_file():
        raise Failure(
            f"{command[0]} cannot run {script}: no such file; correct the command", origin="agent"
        )
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


def _find_problem_inside(
    agent: AgentSettings,
    sandbox: SandboxMode,
    command: Sequence[str],
    script: str | None,
    environment: Mapping[str, str],
) -> tuple[str, str] | None:
    """Check program, interpreter, script and module inside the sandbox."""
    files = [f"x:{command[0]}", *_interpreters(command[0])]
    if script:
        files.append(f"r:{script}")
    with probe_folder() as folder:
        home = folder / "home"
        run_sandbox = probe_sandbox(sandbox, home)
        path = environment.get("PATH", "")
        plan = run_sandbox.plan(command, home, agent.network is True, path=path)
        variables = run_sandbox.environment(environment)
        try:
            completed = run_probe(plan, ["/bin/sh", "-c", CHECK_FILES, "sh", *files], variables)
            if completed.returncode != 0:
                return _check_failed(completed.stderr)
            if missing := completed.stdout.splitlines():
                return _missing(missing[0], command[0])
            if (module := _module(command)) is not None:
                flags, name = module
                find = [command[0], *flags, "-c", FIND_MODULE, name]
                completed = run_probe(plan, find, variables)
                if completed.returncode == 7:
                    return f"no module {name!r}", f"install it for {command[0]}"
                if completed.returncode != 0:
                    return _check_failed(completed.stderr)
        except (OSError, subprocess.TimeoutExpired) as error:
            return _check_failed(str(error))
    return None


def _find_problem_in_image(agent: AgentSettings, sandbox: SandboxMode) -> tuple[str, str] | None:
    """Check that the image of the container has the program."""
    program = agent_command(agent, sandbox)[0]
    with probe_folder() as folder:
        home = folder / "home"
        run_sandbox = probe_sandbox(sandbox, home)
        plan = run_sandbox.plan([program], home, network=False)
        find = ["/bin/sh", "-c", 'command -v "$1" >/dev/null', "sh", program]
        try:
            completed = run_probe(plan, find, run_sandbox.environment({}))
        except (OSError, subprocess.TimeoutExpired) as error:
            return _check_failed(str(error))
    if completed.returncode == 0:
        return None
    image = sandbox.settings.image
    return (
        f"{program} is not in the image {image}",
        "install it in the image, or add it to read_only",
    )


def _interpreters(program: str) -> Iterator[str]:
    """Yield the programs in the first line of a script, as items of CHECK_FILES."""
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
    """Return the options before `-m`, and the module, of a Python command."""
    arguments = list(command[1:])
    if not PYTHON.match(Path(command[0]).name) or "-m" not in arguments[:-1]:
        return None
    position = arguments.index("-m")
    if _script_argument([command[0], *arguments[:position]]) is not None:
        return None
    return arguments[:position], arguments[position + 1]


def _missing(item: str, program: str) -> tuple[str, str]:
    kind, _, path = item.partition(":")
    in_first_line = path != program and kind != "r"
    origin = f" (in the first line of {program})" if in_first_line else ""
    verb = {"x": "run", "r": "read", "c": "found on PATH"}[kind]
    return f"{path}{origin} cannot be {verb} inside the sandbox", MAKE_READABLE


def _check_failed(stderr: str) -> tuple[str, str]:
    lines = stderr.strip().splitlines()
    reason = lines[-1][:200] if lines else "unknown error"
    return (
        f"cannot check the command inside the sandbox: {reason}",
        "see: draftsman help --page sandbox",
    )


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """The result of a check; without a `problem` a run could start the agent."""

    name: str
    kind: str
    command: tuple[str, ...]
    network: bool | tuple[str, ...]
    version: str | None = None
    problem: str | None = None
    warning: str | None = None
    hint: str | None = None
    model: str | None = None
    """The way to its model; None for agents without a kind that has one."""

    @property
    def installed(self) -> bool:
        """Whether a run could start the agent."""
        return self.problem is None


def check_agent(
    name: str,
    agent: AgentSettings,
    sandbox: SandboxMode | None,
    gateways: Mapping[str, GatewaySettings] | None = None,
    starts: bool = False,
) -> AgentCheck:
    """Check an agent's command inside the sandbox, without starting a run.

    `sandbox` is None if no sandbox works here: then only the files of this machine are checked.
    With `gateways`, the way to its model is checked, too. A program behind an adapter prints its
    version; with `starts`, others are started without input, for a moment.
    """
    program = agent.model_copy(update={"kind": PROTOCOL})  # without the adapter
    has_adapter = agent.usable and agent.plugin.adapter is not None
    found = _package_problem(agent) or find_command_problem(program, sandbox)
    problem, hint = found or (None, None)
    if problem is None and sandbox is not None:
        try:
            sandbox.check_network(agent.network)
        except Failure as error:
            problem = str(error)
            hint = "see: draftsman help --page sandbox#network"
    warning = None
    if problem is None and (warning := relative_arguments(program)) is not None:
        hint = "use an absolute path"
    version = agent.version or (installed() if is_own_agent(agent) else None)
    if problem is None and warning is None and sandbox is not None and (has_adapter or starts):
        started = start_program(program, sandbox, ["--version"] if has_adapter else None)
        version = version or (started.version if has_adapter else None)
        must_succeed = has_adapter and agent.plugin.needs_model
        problem, hint = started.problem(must_succeed) or (problem, hint)
    model = None
    if gateways is not None and has_adapter:
        model, model_warning = find_model(agent, gateways, os.environ)
        if problem is None and warning is None and model_warning is not None:
            warning = model_warning
            hint = "see: draftsman help --page coding-agents#network-and-keys"
    return AgentCheck(
        name=name,
        kind=agent.kind,
        command=agent.command,
        network=agent.network,
        version=version,
        problem=problem,
        warning=warning,
        hint=hint,
        model=model,
    )


def _package_problem(agent: AgentSettings) -> tuple[str, str | None] | None:
    """Return why the package of the kind cannot be used; None if it can."""
    try:
        agent.plugin  # noqa: B018 - raises
    except ConfigError as error:
        return str(error), None
    return None


def find_model(
    agent: AgentSettings,
    gateways: Mapping[str, GatewaySettings],
    environment: Mapping[str, str],
) -> tuple[str, str | None]:
    """Return the way of an agent to its model, and a warning if it is not complete."""
    if agent.gateway is not None:
        way = f"gateway {agent.gateway}"
        key = gateways[agent.gateway].api_key
        if key is None:
            return f"{way}, without a key", None
        try:
            secret_values.read_secret(key, way)
        except MissingSecret as error:
            return f"{way}, no key", error.problem
        return f"{way}, with a key", None
    if not agent.network:
        text = "it has no gateway and no network to reach a model"
        return "none", text if agent.plugin.needs_model else None
    names = ", ".join(agent.pass_env) or "its own configuration"
    missing = [variable for variable in agent.pass_env if not environment.get(variable)]
    problem = f"{', '.join(missing)} of pass_env is not set here" if missing else None
    return f"network, with {names}", problem
