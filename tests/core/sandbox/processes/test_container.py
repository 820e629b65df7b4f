"""Command lines of container engines, and which programs are those of the image."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from draftsman import plugins
from draftsman.agent_runs.protocol.protocol import Profile
from draftsman.errors import Failure
from draftsman.resources import PACKAGE_ROOT
from draftsman.sandbox import container, container_init, landlock, mode_detection
from draftsman.sandbox.processes.environment import (
    agent_command,
    agent_environment,
    find_program,
)
from draftsman.sandbox.sandbox_plan import RunSandbox, SandboxMode
from draftsman.settings.agents import AgentSettings
from draftsman.settings.profiles import ProfileSettings
from draftsman.settings.sandbox import SandboxSettings

SETTINGS = SandboxSettings(
    mode="container", image="registry.example/agent:1", read_only=(Path("/opt/a,b"),),
    memory_mb=64, processes=32, file_size_mb=1,
)  # fmt: skip
MEGABYTE = 1 << 20


def plan(engine: str, network: bool = False, uid: int | None = 200_001) -> dict[str, Any]:
    """Return the plan of a program in /home/agent."""
    mode = SandboxMode("container", SETTINGS, engine)
    sandbox = RunSandbox(mode, Path("/data/repo"), Path("/data/home"), uid, socket=Path("/data/s"))
    return sandbox.plan(["make"], Path("/data/repo/sub"), network)


def test_a_container_is_stale_if_its_worker_has_ended_also_if_its_process_id_is_used_again() -> (
    None
):
    own = container.new_name()
    prefix, pid, start, *random = own.split("-")
    end = "-".join(random)
    elsewhere = f"{random[0]}-{0:08x}"
    assert not container.is_stale(own)
    assert container.is_stale(f"{prefix}-{pid}-{int(start) - 1}-{end}")
    assert container.is_stale(f"{prefix}-{2**22 + 1}-{start}-{end}")
    assert not container.is_stale(f"{prefix}-{2**22 + 1}-{start}-{elsewhere}"), "of another host"
    assert not container.is_stale("draftsman-database")
    assert not container.is_stale(f"other-{own}")


def test_the_command_line_of_podman_is_exact() -> None:
    planned = plan("/usr/bin/podman")
    name = planned["name"]
    assert name.startswith(f"draftsman-{os.getpid()}-")
    code = planned["run"][-1]
    assert f"from {container_init.__name__} import main" in code
    assert "sys.path.insert(0, '/opt/draftsman')" in code
    package = PACKAGE_ROOT / "draftsman"
    adapters = plugins.package_path("draftsman_agents")
    files = planned["open_files"]
    assert planned["run"][:-1] == [
        "/usr/bin/podman", "run", "--rm", "--interactive", "--pull=never", "--read-only",
        f"--name={name}", "--user=200001:200001", "--hostname=draftsman",
        "--cap-drop=all", "--security-opt=no-new-privileges", "--security-opt=label=disable",
        "--log-driver=none", "--network=none", "--cgroups=disabled", "--read-only-tmpfs=false",
        "--ulimit=core=0:0", f"--ulimit=fsize={MEGABYTE}:{MEGABYTE}",
        f"--ulimit=nofile={files}:{files}", f"--ulimit=data={64 * MEGABYTE}:{64 * MEGABYTE}",
        "--ulimit=nproc=32:32",
        f"--tmpfs=/tmp:rw,nosuid,nodev,exec,mode=1777,size={MEGABYTE}", f"--shm-size={MEGABYTE}",
        f"--mount=type=bind,source={package},target=/opt/draftsman/draftsman,readonly",
        f"--mount=type=bind,source={adapters},target=/opt/draftsman/draftsman_agents,readonly",
        '--mount=type=bind,"source=/opt/a,b","target=/opt/a,b",readonly',
        "--mount=type=bind,source=/data/home,target=/home/agent",
        "--mount=type=bind,source=/data/repo,target=/workspace/repo",
        "--mount=type=bind,source=/data/s,target=/run/draftsman,readonly",
        f"--mount=type=bind,source={planned['control']},target=/run/draftsman-init,readonly",
        "--workdir=/workspace/repo/sub", "--entrypoint=python3", "registry.example/agent:1",
        "-I", "-S", "-c",
    ]  # fmt: skip
    assert planned["freeze"] == [], "its processes are descendants of the guard"


def test_docker_limits_by_cgroups_and_an_ordinary_user_keeps_his_id() -> None:
    docker = plan("/usr/bin/docker", network=True)
    own = f"{os.geteuid()}:{os.getegid()}"
    added = {"--memory=67108864", "--memory-swap=67108864", "--pids-limit=32"}
    added.add("--ulimit=data=67108864:67108864")
    assert added <= set(docker["run"])
    assert not {"--network=none", "--cgroups=disabled"} & set(docker["run"])
    assert not any(argument.startswith("--ulimit=nproc") for argument in docker["run"])
    assert docker["freeze"] == ["/usr/bin/docker", "pause", docker["name"]]
    assert docker["thaw"] == ["/usr/bin/docker", "unpause", docker["name"]]
    podman = plan("/usr/bin/podman", uid=None)["run"]
    assert {f"--user={own}", "--userns=keep-id"} <= set(podman)
    assert "--userns=keep-id" not in plan("/usr/bin/docker", uid=None)["run"]


def test_programs_of_a_container_are_those_of_its_image(monkeypatch: pytest.MonkeyPatch) -> None:
    mode = SandboxMode("container", SETTINGS, "/usr/bin/podman")
    monkeypatch.setenv("PATH", "/host/bin")
    codex = AgentSettings(kind="codex", command=("codex", "app-server"))
    command = agent_command(codex, mode)
    assert (command[:4], command[-3:]) == (
        ("python3", "-P", "-m", "draftsman_agents.codex"),
        ("--", "codex", "app-server"),
    )
    environment = agent_environment(codex, Path("/home"), sandbox=mode)
    assert "PATH" not in environment
    assert environment["PYTHONPATH"] == "/opt/draftsman"
    assert find_program("codex", environment, mode) == "codex"
    check = AgentSettings(command=(sys.executable, "-m", "ruff"))
    assert agent_command(check, mode) == ("python3", "-m", "ruff")
    given = Profile.of(ProfileSettings(), mode.python)
    assert given.validation_commands[0].command[0] == "python3"


def test_the_image_and_the_engine_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r'mode = "container" needs an image: set \[sandbox\]'):
        SandboxSettings(mode="container")
    with pytest.raises(ValueError, match="image"):
        SandboxSettings(mode="container", image="--privileged")
    for name in ("docker", "podman"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert container.find_engine(SETTINGS) == str(tmp_path / "podman")
    docker = SETTINGS.model_copy(update={"engine": "docker"})
    assert container.find_engine(docker) == str(tmp_path / "docker")
    (tmp_path / "docker").unlink()
    assert container.find_engine(docker) is None
    with pytest.raises(Failure, match=r'"container" does not work here .*; install the engine'):
        mode_detection.choose_mode(docker)


@pytest.mark.skipif(os.geteuid() != 0, reason="the mode user needs root")
def test_a_separate_user_is_confined_with_and_without_landlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = SandboxSettings(mode="user")
    assert mode_detection.choose_mode(settings).mode == "user"
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    assert mode_detection.find_escape(settings, "user", None) is None
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    problem = mode_detection.find_escape(settings, "user", None)
    assert problem == "the worker has to run as root"
