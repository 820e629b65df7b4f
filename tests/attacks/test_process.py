"""Attacks of an agent's process on its worker, other runs and the machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import pytest_asyncio

from tests.attacks.catalog import CATALOG, attack
from tests.attacks.probe_report import Report, attack_report, run_program
from tests.core.worker.agent_jobs import running_with

MODES = ("bwrap", "landlock")
pytestmark = pytest.mark.asyncio(loop_scope="module")
EFFECTS = {
    **dict.fromkeys(("tcp_port", "abstract_socket", "unix_socket", "udp"), True),
    **dict.fromkeys(("multipath", "interfaces"), True),
    **dict.fromkeys(("root", "is_root", "set_uid", "fork_bomb", "file_size"), False),
    **dict.fromkeys(("memory", "limits", "descriptors", "secrets"), False),
}
"""Whether an attack works with `mode = "off"`; others depend on the worker's user."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MODES)
async def report(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Report:
    """Return the report of a hostile agent in a mode, which tries all attacks in one run."""
    return await attack_report(request.param, tmp_path_factory.mktemp(f"attack-{request.param}"))


def assert_failed(report: Report, name: str) -> None:
    assert report[name].startswith("failed"), (report["mode"], name)


@attack(
    "An agent reads a private key outside of its clone",
    surface="process",
    with_sandbox="it is not visible",
    without_sandbox="permission denied by Landlock",
    attempts=("ssh_key",),
)
async def test_the_ssh_key_is_not_readable(report: Report) -> None:
    assert_failed(report, "ssh_key")


@attack(
    "An agent reads the clone of another run",
    surface="process",
    with_sandbox="it is not visible",
    without_sandbox="permission denied by Landlock",
    attempts=("other_clone",),
)
async def test_another_clone_is_not_readable(report: Report) -> None:
    assert_failed(report, "other_clone")


@attack(
    "An agent reads its worker's environment from /proc",
    surface="process",
    with_sandbox="the process is not visible",
    without_sandbox="permission denied: the process is outside of the Landlock domain",
    attempts=("worker_environ",),
)
async def test_the_environment_of_the_worker_is_not_readable(report: Report) -> None:
    assert_failed(report, "worker_environ")


@attack(
    "An agent reads its worker's memory from /proc",
    surface="process",
    with_sandbox="the process is not visible",
    without_sandbox="permission denied: the process is outside of the Landlock domain",
    attempts=("worker_memory",),
)
async def test_the_memory_of_the_worker_is_not_readable(report: Report) -> None:
    assert_failed(report, "worker_memory")


@attack(
    "An agent enters its worker's current folder through /proc",
    surface="process",
    with_sandbox="the process is not visible",
    without_sandbox="permission denied by Landlock",
    attempts=("worker_cwd",),
)
async def test_the_folder_of_the_worker_is_not_accessible(report: Report) -> None:
    assert_failed(report, "worker_cwd")


@attack(
    "An agent attaches to its worker as a debugger",
    surface="process",
    with_sandbox="the process is not visible",
    without_sandbox="operation not permitted",
    attempts=("trace",),
)
async def test_the_worker_cannot_be_traced(report: Report) -> None:
    assert_failed(report, "trace")


@attack(
    "An agent signals its worker",
    surface="process",
    with_sandbox="the process is not visible",
    without_sandbox="operation not permitted",
    attempts=("signal",),
)
async def test_the_worker_cannot_be_signaled(report: Report) -> None:
    assert_failed(report, "signal")


@attack(
    "An agent connects to an abstract unix socket of the host",
    surface="process",
    with_sandbox="connection refused: it has its own network",
    without_sandbox="operation not permitted",
    effect=True,
    attempts=("abstract_socket",),
)
async def test_an_abstract_socket_is_not_reachable(report: Report) -> None:
    assert_failed(report, "abstract_socket")


@attack(
    "An agent connects to a port of the host's loopback",
    surface="process",
    with_sandbox="connection refused: it has its own network",
    without_sandbox="permission denied",
    effect=True,
    attempts=("tcp_port",),
)
async def test_a_local_port_is_not_reachable(report: Report) -> None:
    assert_failed(report, "tcp_port")


@attack(
    "An agent connects to the internet",
    surface="process",
    with_sandbox="network is unreachable",
    without_sandbox="permission denied by Landlock",
    attempts=("internet",),
)
async def test_the_internet_is_not_reachable(report: Report) -> None:
    assert_failed(report, "internet")


@attack(
    "An agent sends secrets in queries to a name server",
    surface="network",
    with_sandbox="its own network has no name server, and no route to one",
    without_sandbox="Landlock: the seccomp filter refuses sockets of UDP",
    effect=True,
    attempts=("udp", "resolve"),
)
async def test_no_name_server_is_reachable(report: Report) -> None:
    assert_failed(report, "udp")
    assert_failed(report, "resolve")


@attack(
    "An agent connects by multipath TCP, which Landlock does not limit",
    surface="network",
    with_sandbox="connection refused: it has its own network",
    without_sandbox="Landlock: the seccomp filter refuses its sockets",
    effect=True,
    attempts=("multipath",),
)
async def test_multipath_tcp_is_no_way_out(report: Report) -> None:
    assert_failed(report, "multipath")


@attack(
    "An agent uses rare parts of the kernel: io_uring, keyrings, namespaces, AF_ALG, AF_VSOCK",
    surface="process",
    with_sandbox="refused by the seccomp filter",
    without_sandbox="Landlock: refused by the seccomp filter",
    effect=True,
    attempts=("interfaces",),
)
async def test_interfaces_of_the_kernel_are_refused(report: Report) -> None:
    assert_failed(report, "interfaces")


@attack(
    "An agent reads credentials of the cloud from its metadata service",
    surface="network",
    with_sandbox="network is unreachable",
    without_sandbox="permission denied by Landlock; open without it",
    attempts=("metadata",),
)
async def test_the_metadata_service_is_not_reachable(report: Report) -> None:
    assert_failed(report, "metadata")


@attack(
    "An agent writes a file outside of its clone",
    surface="process",
    with_sandbox="it is not visible",
    without_sandbox="permission denied by Landlock",
    attempts=("write_outside",),
)
async def test_files_outside_the_clone_are_not_writable(report: Report) -> None:
    assert_failed(report, "write_outside")


@attack(
    "An agent writes a file to the worker's site-packages",
    surface="process",
    with_sandbox="the file system is read-only",
    without_sandbox="permission denied by Landlock",
    attempts=("write_program",),
)
async def test_site_packages_are_not_writable(report: Report) -> None:
    assert_failed(report, "write_program")


@attack(
    "An agent writes to /usr",
    surface="process",
    with_sandbox="the file system is read-only",
    without_sandbox="permission denied by Landlock",
    attempts=("write_system",),
)
async def test_system_folders_are_not_writable(report: Report) -> None:
    assert_failed(report, "write_system")


@attack(
    "An agent creates a hard link to an outside file in its clone",
    surface="process",
    with_sandbox="it is not visible",
    without_sandbox="permission denied by Landlock",
    attempts=("hard_link",),
)
async def test_an_outside_file_cannot_be_linked(report: Report) -> None:
    assert_failed(report, "hard_link")


@attack(
    "An agent changes to user 0",
    surface="process",
    with_sandbox="operation not permitted",
    effect=False,
    attempts=("root",),
)
async def test_an_agent_cannot_become_root(report: Report) -> None:
    assert_failed(report, "root")


@attack(
    "An agent of a worker that is root runs as user 0",
    surface="process",
    with_sandbox="it has its own user",
    effect=False,
    attempts=("is_root",),
)
async def test_an_agent_does_not_run_as_root(report: Report) -> None:
    assert_failed(report, "is_root")


@attack(
    "An agent runs a set-uid program",
    surface="process",
    with_sandbox="no new privileges",
    effect=False,
    attempts=("set_uid",),
)
async def test_a_set_uid_program_gets_no_privileges(report: Report) -> None:
    assert_failed(report, "set_uid")


@attack(
    "An agent mounts a folder over another",
    surface="process",
    with_sandbox="operation not permitted",
    attempts=("mount",),
)
async def test_nothing_can_be_mounted(report: Report) -> None:
    assert_failed(report, "mount")


@attack(
    "An agent starts an unlimited number of processes",
    surface="process",
    with_sandbox="limited by processes",
    effect=False,
    attempts=("fork_bomb",),
)
async def test_a_fork_bomb_is_limited(report: Report) -> None:
    assert_failed(report, "fork_bomb")


@attack(
    "An agent writes a file of unlimited size",
    surface="process",
    with_sandbox="limited by file_size_mb",
    effect=False,
    attempts=("file_size",),
)
async def test_the_size_of_a_file_is_limited(report: Report) -> None:
    assert_failed(report, "file_size")


@attack(
    "An agent allocates unlimited memory",
    surface="process",
    with_sandbox="limited by memory_mb",
    effect=False,
    attempts=("memory", "limits"),
)
async def test_the_memory_of_an_agent_is_limited(report: Report) -> None:
    assert_failed(report, "memory")
    assert_failed(report, "limits")  # no limit can be raised again


@attack(
    "An agent uses descriptors that its worker left open",
    surface="process",
    with_sandbox="there are none",
    effect=False,
    attempts=("descriptors",),
)
async def test_descriptors_of_the_worker_are_not_inherited(report: Report) -> None:
    assert_failed(report, "descriptors")


@attack(
    "An agent finds its worker's tokens in its environment",
    surface="process",
    with_sandbox="the environment is an allowlist",
    effect=False,
    attempts=("secrets",),
)
async def test_an_agent_gets_no_secret(report: Report) -> None:
    assert_failed(report, "secrets")


@attack(
    "An agent becomes root in a user namespace of its own, and mounts there",
    surface="process",
    with_sandbox="nested user namespaces are disabled",
    without_sandbox="Landlock: the seccomp filter refuses it",
    attempts=("user_namespace",),
)
async def test_a_user_namespace_cannot_be_created(report: Report) -> None:
    assert_failed(report, "mount")
    assert_failed(report, "user_namespace")


@attack(
    "An agent connects to a unix socket by its path",
    surface="process",
    with_sandbox="it is not visible",
    without_sandbox="it connects: the embedded server asks for a password",
    effect=True,
    attempts=("unix_socket",),
)
async def test_a_unix_socket_is_not_reachable(report: Report) -> None:
    if report["mode"] == "bwrap":
        assert_failed(report, "unix_socket")


@attack(
    "An agent leaves a daemon behind that outlives its run",
    surface="process",
    with_sandbox="the namespace ends with the run",
    without_sandbox="the keeper adopts and kills it",
)
@pytest.mark.parametrize("mode", MODES)
async def test_a_daemon_ends_with_its_run(mode: str, tmp_path: Path) -> None:
    mark = f"daemon of {tmp_path}"
    code = (
        "import os, signal, sys\n"
        "reader, writer = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "        print('up', flush=True); os.close(1); os.write(writer, b'.'); signal.pause()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "os.read(reader, 1)\n"
    )
    command = (sys.executable, "-I", "-S", "-c", code, mark)
    assert await run_program(mode, tmp_path, *command) == b"up\n"
    assert running_with(mark) == []


async def test_the_same_attacks_without_a_sandbox(tmp_path: Path) -> None:
    """The column `mode = off` of docs/attacks.md."""
    report = await attack_report("off", tmp_path)
    for name, effect in EFFECTS.items():
        assert (report[name] == "worked") == effect, (name, report[name])
    rows = [item for item in CATALOG if f"/{Path(__file__).name}::" in item.test]
    assert sum(item.effect is True for item in rows) == sum(EFFECTS.values())
    assert sum(item.effect is False for item in rows) <= len(EFFECTS) - sum(EFFECTS.values())
