"""Detection of sandbox modes: where draftsman may be installed, and the advice of failures."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import site
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from draftsman.errors import Failure
from draftsman.resources import PACKAGE_ROOT
from draftsman.sandbox import bwrap, landlock, mode_detection
from draftsman.sandbox.failed_modes import PROBE_TOO_SLOW, FailedMode
from draftsman.settings import Settings
from draftsman.settings.sandbox import SandboxSettings
from draftsman_tui.cli.setup.doctor_checks import programs
from tests.support.slow import slow_except

DETECT = """
import sys
from draftsman.sandbox import bwrap, mode_detection
from draftsman.settings.sandbox import SandboxSettings
print(bwrap.PACKAGE_ROOT, mode_detection.choose_mode(SandboxSettings(mode=sys.argv[1])).mode)
"""


@pytest.fixture
def below_tmp() -> Iterator[Path]:
    """A folder below /tmp, which is private to each run."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("mode", slow_except(["bwrap"], ["bwrap", "landlock"]))
def test_a_checkout_and_an_interpreter_below_tmp_work(below_tmp: Path, mode: str) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    checkout = below_tmp / "checkout" / "core"
    shutil.copytree(PACKAGE_ROOT / "draftsman", checkout / "draftsman", ignore=ignored)
    venv.create(below_tmp / "venv", symlinks=True)
    python = below_tmp / "venv" / "bin" / "python"
    [packages] = (below_tmp / "venv" / "lib").glob("python*/site-packages")
    (packages / "packages.pth").write_text("\n".join([str(checkout), *site.getsitepackages()]))
    ran = subprocess.run([python, "-c", DETECT, mode], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == (f"{checkout} {mode}\n", "")
    assert sys.prefix != str(below_tmp / "venv")


def failing(*command: str, mode: str = "auto") -> str:
    """Return the error of the detection behind a command that takes rights away."""
    code = (
        "from draftsman.errors import Failure\ntry:\n    "
        + DETECT.strip().replace("\n", "\n    ")
        + "\nexcept Failure as error:\n    print(error)"
    )
    ran = subprocess.run(
        [*command, sys.executable, "-c", code, mode], capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


NO_NAMESPACES = (
    "unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh",
)  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_advice_names_what_this_worker_lacks() -> None:
    for mode in ("bwrap", "landlock"):
        text = failing(*NO_NAMESPACES, mode=mode)
        assert "cannot change to the user id" in text
        assert "give root CAP_SETUID, CAP_SETGID and a user namespace that has this id" in text
        assert "sysctl" not in text
        assert "kernel with Landlock" not in text
    no_admin = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    text = failing(*no_admin, mode="bwrap")
    assert "this worker cannot create a mount namespace (Operation not permitted)" in text
    assert text.endswith("run the worker as an ordinary user, or give root CAP_SYS_ADMIN")
    assert failing(*no_admin, mode="user").endswith("run the worker as root, with CAP_SYS_ADMIN")


def test_a_machine_without_bubblewrap_is_told_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bwrap, "programs", list)
    settings = SandboxSettings(mode="bwrap")
    with pytest.raises(Failure, match=r"\(bwrap: it is not installed\); install bubblewrap"):
        mode_detection.choose_mode(settings)
    chosen = mode_detection.choose_mode(SandboxSettings())
    assert chosen.mode == "landlock"
    assert [str(failed) for failed in chosen.weaker] == ["bwrap: it is not installed"]
    finding = next(programs(Settings()))
    assert (finding.status, finding.hint) == ("warn", chosen.weaker[0].remedy)


PROBLEMS: Final = {
    ("bwrap", "bwrap: setting up uid map: Permission denied"): "allow user namespaces",
    ("bwrap", "bwrap: No permissions to create new namespace, likely"): "allow user namespaces",
    ("bwrap", "bwrap: Creating new namespace failed: Operation"): "allow user namespaces",
    ("bwrap", "bwrap: Can't mount proc on /newroot/proc: Op"): "allow user namespaces",
    ("bwrap", "bwrap: loopback: Failed RTM_NEWADDR: Operation"): "allow user namespaces",
    ("bwrap", "bwrap: Unknown option --disable-userns"): "install bubblewrap 0.8",
    ("bwrap", "bwrap: execvp /opt/python: No such file"): "make this path readable",
    ("bwrap", "bwrap: Can't find source path /x: Permission denied"): "make this path readable",
    ("landlock", "[Errno 13] Permission denied: '/x/python'"): "make this path readable",
    ("landlock", "/x/python cannot be started: No such file"): "make this path readable",
    ("landlock", "this kernel has no Landlock"): "use a kernel with Landlock",
    ("landlock", "this kernel has Landlock ABI 3; 6 or later"): "use a kernel with Landlock",
    ("landlock", "Landlock is disabled in this kernel"): "add landlock to the parameter lsm=",
    ("landlock", "its system calls are blocked here"): "let the container allow",
    ("landlock", PROBE_TOO_SLOW): "try again when the load is lower",
    ("user", "the worker has to run as root"): "run the worker as root",
    ("container", "podman is not installed"): "install the engine",
    ("container", "no image is configured"): "set [sandbox] image",
    ("bwrap", "a file outside the sandbox can be read"): "see: draftsman help --page sandbox",
}


def test_each_problem_has_its_remedy() -> None:
    found = {item: FailedMode(*item).remedy for item in PROBLEMS}
    assert [item for item, text in PROBLEMS.items() if not found[item].startswith(text)] == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.ENOSYS, "this kernel has no Landlock"),
        (errno.EOPNOTSUPP, "Landlock is disabled in this kernel"),
        (errno.EPERM, "its system calls are blocked here"),
    ],
)
def test_landlock_is_missing_disabled_or_blocked(
    monkeypatch: pytest.MonkeyPatch, number: int, text: str
) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    ctypes.set_errno(number)
    assert landlock.problem() == text
