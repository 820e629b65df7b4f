"""An image of this machine's Python, shell and git, for podman and for a daemon of docker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

IMAGE: Final = "localhost/draftsman-test"
ENGINES: Final = ("podman", "docker")
PROGRAMS: Final = (
    "sh", "bash", "cat", "chmod", "cp", "cut", "env", "git", "head", "id", "ln", "ls", "mkdir",
    "rm", "seq", "sleep", "su", "touch", "true",
)  # fmt: skip
FOLDERS: Final = ("etc", "tmp", "proc", "sys", "dev", "run", "mnt", "workspace/repo", "home/agent")
LIBRARY: Final = re.compile(r"(/\S+) \(0x")
WRAPPER: Final = """#!/bin/sh
export CONTAINERS_STORAGE_CONF={storage}
if [ -d /sys/fs/cgroup/unified ] && [ "$(id -u)" = 0 ]; then
    # crun refuses a machine with both versions of cgroups
    exec unshare --mount sh -c 'umount -l /sys/fs/cgroup/unified; exec "$@"' sh {podman} "$@"
fi
exec {podman} "$@"
"""


def missing(engine: str) -> str | None:
    """Return what an engine needs to run here, or None."""
    if shutil.which(engine) is None:
        return f"no {engine} here: apt-get install {engine}"
    daemon = ["docker", "version"]
    if engine == "docker" and subprocess.run(daemon, check=False, capture_output=True).returncode:
        return "no daemon of docker here: dockerd"
    return None


@contextmanager
def engine_image(engine: str, folder: Path) -> Iterator[Path]:
    """Yield a folder with the command of an engine that has the image; the image is removed."""
    program = shutil.which(engine)
    assert program is not None
    _build_root(folder / "root")
    archive = folder / "root.tar"
    subprocess.run(["tar", "-C", folder / "root", "-cf", archive, "."], check=True)
    commands = (
        _podman(program, archive, folder) if engine == "podman" else _docker(program, archive)
    )
    with commands as found:
        yield found


@contextmanager
def _docker(docker: str, archive: Path) -> Iterator[Path]:
    subprocess.run([docker, "import", archive, IMAGE], check=True, capture_output=True)
    try:
        yield Path(docker).parent
    finally:
        subprocess.run([docker, "rmi", "--force", IMAGE], check=False, capture_output=True)


@contextmanager
def _podman(podman: str, archive: Path, folder: Path) -> Iterator[Path]:
    """Use a storage of its own, which is removed at the end."""
    storage = folder / "storage.conf"
    commands = folder / "bin"
    graph = folder / "graph"
    run = folder / "run"
    storage.write_text(f'[storage]\ndriver = "overlay"\nrunroot = "{run}"\ngraphroot = "{graph}"\n')
    commands.mkdir()
    wrapper = commands / "podman"
    wrapper.write_text(WRAPPER.format(storage=storage, podman=podman))
    wrapper.chmod(0o755)
    subprocess.run([wrapper, "import", "--quiet", archive, IMAGE], check=True, capture_output=True)
    try:
        yield commands
    finally:
        subprocess.run([wrapper, "rm", "--all", "--force"], check=False, capture_output=True)
        subprocess.run(["umount", "-l", graph / "overlay"], check=False, capture_output=True)


def _build_root(root: Path) -> None:
    """Copy the programs with their libraries; their folders are those of Debian."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\n")
    base = Path(sys.base_prefix)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    copied = root / "opt" / "python"
    shutil.copytree(
        base / "lib" / version, copied / "lib" / version, symlinks=True,
        ignore=shutil.ignore_patterns("site-packages", "test", "__pycache__", "*.a", "idlelib"),
    )  # fmt: skip
    (copied / "bin").mkdir()
    shutil.copy(base / "bin" / version, copied / "bin" / version)
    (root / "usr" / "bin" / "python3").symlink_to(f"/opt/python/bin/{version}")
    programs = [path for name in PROGRAMS if (path := shutil.which(name, path="/usr/bin:/bin"))]
    for path in programs:
        shutil.copy(path, root / "usr" / "bin" / Path(path).name)
    extensions = list((base / "lib" / version / "lib-dynload").glob("*.so"))
    for library in _libraries([base / "bin" / version, *programs, *extensions]):
        system = library.is_relative_to("/lib64") or library.is_relative_to("/usr/lib64")
        target = root / "usr" / ("lib64" if system else "lib") / library.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(library), target)


def _libraries(programs: Sequence[Path | str]) -> set[Path]:
    output = subprocess.run(["ldd", *programs], check=False, capture_output=True, text=True).stdout
    return {Path(match) for match in LIBRARY.findall(output)}
