"""Shims of version managers: a run starts the real program, with the files beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.validation.commands import CommandRunner
from draftsman.errors import Failure
from draftsman.sandbox.mode_detection import choose_mode
from draftsman.sandbox.processes.agent_check import check_agent
from draftsman.sandbox.processes.environment import find_program
from draftsman.sandbox.version_managers import find_shim, real_path, real_program
from draftsman.settings.agents import AgentSettings
from draftsman.settings.profiles import CommandSettings
from draftsman.settings.sandbox import SandboxSettings
from tests.core.worker.agent_jobs import make_repository

HOME_SHIM: Final = '#!/bin/sh\nexec "$HOME/of-the-worker/libexec/manager" exec "${0##*/}" "$@"\n'


def write(path: Path, text: str, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def install(folder: Path, name: str) -> None:
    """Write a program that needs a file beside its folder."""
    write(folder / "bin" / name, '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")"/../lib/text\n')
    write(folder / "lib" / "text", f"{name}\n", 0o644)


def pyenv(home: Path) -> Path:
    install(home / ".pyenv/versions/3.11.9", "tool-of-pyenv")
    install(home / ".pyenv/versions/3.9.1", "old-of-pyenv")
    write(home / ".pyenv/version", "3.11\n", 0o644)
    return home / ".pyenv/shims"


def rbenv(home: Path) -> Path:
    install(home / ".rbenv/versions/3.3.0", "tool-of-rbenv")
    write(home / ".rbenv/version", "3.3.0\n", 0o644)
    return home / ".rbenv/shims"


def asdf(home: Path) -> Path:
    install(home / ".asdf/installs/nodejs/20.1.0", "tool-of-asdf")
    write(home / ".tool-versions", "# tools\nnodejs 20.1.0 system\n", 0o644)
    return home / ".asdf/shims"


def mise(home: Path) -> Path:
    install(home / ".local/share/mise/installs/npm-acme-tool/1.2.0", "tool-of-mise")
    config = '[tools]\n"npm:@acme/tool" = { version = "1.2.0" }\n'
    write(home / ".config/mise/config.toml", config, 0o644)
    return home / ".local/share/mise/shims"


def volta(home: Path) -> Path:
    tools = home / ".volta/tools"
    install(tools / "image/packages/@acme/tool", "tool-of-volta")
    install(tools / "image/node/20.1.0", "node-of-volta")
    entry = {"name": "tool-of-volta", "package": "@acme/tool"}
    write(tools / "user/bins/tool-of-volta.json", json.dumps(entry), 0o644)
    platform = {"node": {"runtime": "20.1.0", "npm": None}, "yarn": None}
    write(tools / "user/platform.json", json.dumps(platform), 0o644)
    return home / ".volta/bin"


def rustup(home: Path) -> Path:
    install(home / ".rustup/toolchains/stable-x86_64", "tool-of-rustup")
    write(home / ".rustup/settings.toml", 'default_toolchain = "stable-x86_64"\n', 0o644)
    write(home / ".cargo/bin/rustup", HOME_SHIM)
    return home / ".cargo/bin"


def nvm(home: Path) -> Path:
    install(home / ".nvm/versions/node/v20.1.0", "tool-of-nvm")
    return home / ".nvm/versions/node/v20.1.0/bin"


def fnm(home: Path) -> Path:
    install(home / ".local/share/fnm/node-versions/v20.1.0/installation", "tool-of-fnm")
    link = home / ".local/state/fnm_multishells/7/bin"
    link.parent.mkdir(parents=True)
    link.symlink_to(home / ".local/share/fnm/node-versions/v20.1.0/installation/bin")
    return link


def environment(home: Path) -> Path:
    """A virtual environment of the worker's user."""
    install(home / "venv", "tool-of-environment")
    write(home / "venv/pyvenv.cfg", "home = /usr/bin\n", 0o644)
    return home / "venv/bin"


MANAGERS: Final[tuple[Callable[[Path], Path], ...]] = (
    pyenv, rbenv, asdf, mise, volta, rustup, nvm, fnm, environment,
)  # fmt: skip
DIRECT: Final = ("nvm", "fnm", "environment")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a worker's user whose PATH has the folders of all version managers."""
    home = tmp_path / "worker"
    folders = []
    for manager in MANAGERS:
        folder = manager(home)
        name = f"tool-of-{manager.__name__}"
        if manager.__name__ not in DIRECT:
            write(folder / name, HOME_SHIM)
        folders.append(folder)
    write(home / ".pyenv/shims/old-of-pyenv", HOME_SHIM)
    write(home / ".volta/bin/node-of-volta", HOME_SHIM)
    for variable in ("MISE_GLOBAL_CONFIG_FILE", "PYENV_VERSION", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)) + ":/usr/bin:/bin")
    return home


NAMES: Final = [f"tool-of-{manager.__name__}" for manager in MANAGERS]


@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
async def test_commands_of_a_profile_use_the_tools_of_version_managers(
    mode: str, home: Path, tmp_path: Path
) -> None:
    source = make_repository(tmp_path / "source", a="one\n")
    write(source / ".tool-versions", "nodejs ../../../../outside\n", 0o644)
    workspace = await Workspace.prepare(tmp_path / "data", RepoSource.of(str(source)), job=1, run=1)
    settings = SandboxSettings.model_validate({"mode": mode})
    workspace = await workspace.with_sandbox(settings)
    runner = CommandRunner(workspace, "", {}, 60.0)
    inside = ("sh", "-c", "; ".join([*NAMES, "node-of-volta"]))
    results = [await runner.run(CommandSettings(name="first", command=(name,))) for name in NAMES]
    within = await runner.run(CommandSettings(name="within", command=inside))
    assert [result.output for result in results] == [f"{name}\n" for name in NAMES]
    assert within.output.split() == [*NAMES, "node-of-volta"]
    await workspace.remove()


def test_a_shim_is_checked_and_started_as_its_program(home: Path, tmp_path: Path) -> None:
    mode = choose_mode(SandboxSettings())
    shim = home / ".pyenv/shims/tool-of-pyenv"
    for command in (("tool-of-pyenv",), (str(shim),)):
        assert check_agent("a", AgentSettings(command=command), mode, starts=True).problem is None
    old = check_agent("a", AgentSettings(command=("old-of-pyenv",)), mode, starts=True)
    assert old.problem is not None
    assert f"{home}/.pyenv/shims/old-of-pyenv is a shim, and the version" in old.problem
    wrong = write(tmp_path / "wrong", HOME_SHIM)
    for kind in ("json", "plain"):
        agent = AgentSettings.of({"kind": kind, "command": [str(wrong)]})
        check = check_agent("a", agent, mode, starts=True)
        assert (check.installed, check.version) == (False, None)
        assert check.problem is not None
        assert check.problem.startswith(f"{wrong} ends with the code 127 inside the sandbox: ")
    endless = write(tmp_path / "endless", "#!/bin/sh\nexec sleep 600\n")
    waits = AgentSettings(command=(str(endless),))
    assert check_agent("a", waits, mode, starts=True).installed


def test_versions_are_those_of_the_user(home: Path) -> None:
    def selected(shims: str, **variables: str) -> list[str]:
        path = real_path(str(home / shims), {"HOME": str(home), **variables})
        return [folder.removeprefix(f"{home}/") for folder in path.split(os.pathsep) if folder]

    assert selected(".pyenv/shims") == [".pyenv/versions/3.11.9/bin"], "the latest of 3.11"
    both = selected(".pyenv/shims", PYENV_VERSION="3.9.1:3.11.9:system:../../x")
    assert both == [".pyenv/versions/3.9.1/bin", ".pyenv/versions/3.11.9/bin"]
    toolchain = ".rustup/toolchains/stable-x86_64/bin"
    assert selected(".cargo/bin") == [toolchain, ".cargo/bin"]
    assert selected(".cargo/bin", RUSTUP_TOOLCHAIN="../../x") == [".cargo/bin"]
    for broken in (".rustup/settings.toml", ".config/mise/config.toml"):
        (home / broken).write_text("[[")
    (home / ".volta/tools/user/platform.json").write_text("[")
    assert selected(".cargo/bin") == [".cargo/bin"]
    assert selected(".local/share/mise/shims") == []
    assert selected(".volta/bin") == [".volta/tools/image/packages/@acme/tool/bin"]
    assert real_path("relative::/usr/bin", {}) == "relative::/usr/bin"
    assert real_program("relative/tool", {}) == "relative/tool"


def test_a_plain_program_is_no_shim(home: Path, tmp_path: Path) -> None:
    plain = write(tmp_path / "bin" / "plain", "#!/bin/sh\n")
    assert find_shim(str(plain), "") is None
    assert find_program(str(plain), {}) == str(plain)
    with pytest.raises(Failure, match="'none' not found; install it, or correct the command"):
        find_program("none", {"PATH": "/usr/bin"})
