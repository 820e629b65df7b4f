"""Programs of version managers: what a shim starts, and the folders that it needs.

A shim finds its program in folders of the worker's user, by files of its home. No run can see
these: the folders of the selected versions are on its PATH instead, and are readable. The version
is that of the user, not of a repository, whose files nobody has checked.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

INSTALLATION: Final = re.compile(
    r"(.+/(?:"
    r"versions/(?:node/)?[^/]+"  # pyenv, rbenv and their kin; nvm
    r"|installs/[^/]+/[^/]+"  # asdf, mise
    r"|tools/image/(?:packages/(?:@[^/]+/)?[^/]+|[^/]+/[^/]+)"  # volta
    r"|node-versions/[^/]+"  # fnm
    r"|candidates/[^/]+/[^/]+"  # SDKMAN
    r"|toolchains/[^/]+"  # rustup
    r"))/(?:.+/)?bin"
)
"""A folder of programs of one version, and the folder of all its files."""
VERSION_NAME: Final = re.compile(r"[\w@+-][\w.@+-]*(?:/envs/[\w@+-][\w.@+-]*)?")
SYSTEM: Final = ("/", "/usr", "/usr/local")
MAX_FILE: Final = 1 << 20


def real_path(path: str, variables: Mapping[str, str]) -> str:
    """Return a PATH with the folders of the selected versions in place of those of shims."""
    folders: dict[str, None] = {}
    for name in path.split(os.pathsep):
        if not name.startswith("/"):
            folders[name] = None
            continue
        folder = Path(name)
        selected = list(_selected(folder, variables))
        folders |= dict.fromkeys(map(str, selected))
        if not _is_shims(folder):
            real = os.path.realpath(folder)
            folders[real if INSTALLATION.fullmatch(real) else name] = None
    return os.pathsep.join(folders)


def real_program(program: str, variables: Mapping[str, str]) -> str:
    """Return what a program named by its path starts, if it is a shim."""
    path = Path(program)
    if not path.is_absolute():
        return program
    found = (folder / path.name for folder in _selected(path.parent, variables))
    return str(next((file for file in found if os.access(file, os.X_OK)), program))


def find_shim(program: str, path: str) -> str | None:
    """Return the shim that a program is, or that a PATH has of it, which `real_path` leaves out."""
    if "/" in program:
        return program if _is_shims(Path(program).parent) else None
    folders = (Path(name) for name in path.split(os.pathsep) if name.startswith("/"))
    shims = (folder / program for folder in folders if _is_shims(folder))
    return next((str(shim) for shim in shims if os.access(shim, os.X_OK)), None)


def installations(path: str, command: Sequence[str]) -> Iterator[str]:
    """Yield the folders that the programs on a PATH, and those of a command, need."""
    for name in path.split(os.pathsep):
        if name.startswith("/"):
            yield from _installation(Path(name))
    for word in command:
        if word.startswith("/"):
            for file in dict.fromkeys((word, os.path.realpath(word))):
                if os.path.isfile(file):  # noqa: PTH113 - no error for odd names
                    yield from _installation(Path(file).parent)


def _installation(folder: Path) -> Iterator[str]:
    """Yield the folder of all files of a folder of programs: of a version or an environment."""
    if match := INSTALLATION.fullmatch(str(folder)):
        yield match[1]
    config = _read(folder.parent / "pyvenv.cfg") if folder.name == "bin" else ""
    if config:
        yield str(folder.parent)
        base = re.search(r"^home\s*=\s*(/.+?)\s*$", config, re.MULTILINE)
        if base is not None and (prefix := os.path.dirname(base[1])) not in SYSTEM:  # noqa: PTH120
            yield os.path.realpath(prefix)


def _is_shims(folder: Path) -> bool:
    """Return whether a folder has nothing but shims."""
    if folder.name == "shims":
        return any((folder.parent / name).is_dir() for name in ("versions", "installs"))
    return folder.name == "bin" and (folder.parent / "tools" / "image").is_dir()


def _selected(folder: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders of the programs that the shims of a folder start."""
    found: Iterator[Path] = iter(())
    top = folder.parent
    if folder.name == "shims" and (top / "versions").is_dir():
        found = _of_version_file(top, variables)
    elif folder.name == "shims" and (top / "installs").is_dir():
        found = _of_tool_versions(top / "installs", variables)
    elif _is_shims(folder):
        found = _of_volta(top / "tools")
    elif folder.name == "bin" and (folder / "rustup").exists():
        found = _of_rustup(folder, variables)
    for programs in found:
        real = Path(os.path.realpath(programs))
        if real.is_dir():
            yield real


def _of_version_file(top: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield those of pyenv, rbenv, nodenv and their kin, by PYENV_VERSION or the file `version`."""
    variable = f"{top.name.lstrip('.').upper()}_VERSION"
    names = variables.get(variable, "").split(":") if variables.get(variable) else []
    for name in names or _read(top / "version").split():
        if VERSION_NAME.fullmatch(name):
            yield _latest(top / "versions", name) / "bin"


def _latest(versions: Path, name: str) -> Path:
    """Return the folder of a version, which `3.11` is the latest of for pyenv."""
    if (versions / name).exists():
        return versions / name
    numbers = {
        file: [int(part) for part in re.findall(r"\d+", file.name)]
        for file in versions.glob(f"{name}.*")
    }
    return max(numbers, key=lambda file: numbers[file], default=versions / name)


def _of_tool_versions(installs: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield those of asdf and mise, by `.tool-versions` or the configuration of mise."""
    home = Path(variables.get("HOME") or Path.home())
    config = variables.get("MISE_GLOBAL_CONFIG_FILE") or home / ".config" / "mise" / "config.toml"
    with suppress(tomllib.TOMLDecodeError):
        tools = tomllib.loads(_read(Path(config))).get("tools", {})
        for tool, value in tools.items() if isinstance(tools, dict) else ():
            for version in value if isinstance(value, list) else [value]:
                named = version.get("version") if isinstance(version, dict) else version
                yield from _programs(installs, re.sub(r"[:/@]+", "-", tool).strip("-"), named)
    for line in _read(home / ".tool-versions").splitlines():
        tool, *versions = line.partition("#")[0].split() or [""]
        for version in versions:
            yield from _programs(installs, tool, version)


def _programs(installs: Path, tool: str, version: Any) -> Iterator[Path]:
    if VERSION_NAME.fullmatch(tool) and VERSION_NAME.fullmatch(str(version)):
        folder = installs / tool / str(version)
        plain = folder / "bin"
        yield from [plain] if plain.is_dir() else sorted(folder.glob("*/bin"))


def _of_volta(tools: Path) -> Iterator[Path]:
    """Yield those of volta: the default platform of the user, and the installed packages."""
    platform = _read_json(tools / "user" / "platform.json")
    node = platform.get("node")
    versions = {
        "node": node.get("runtime") if isinstance(node, dict) else None,
        "npm": node.get("npm") if isinstance(node, dict) else None,
        "pnpm": platform.get("pnpm"),
        "yarn": platform.get("yarn"),
    }
    for file in sorted((tools / "user" / "bins").glob("*.json")):
        package = _read_json(file).get("package")
        if isinstance(package, str) and ".." not in package:
            yield tools / "image" / "packages" / package / "bin"
    for name, version in versions.items():
        if isinstance(version, str) and VERSION_NAME.fullmatch(version):
            yield tools / "image" / name / version / "bin"


def _of_rustup(folder: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield that of rustup: the default toolchain."""
    home = Path(variables.get("RUSTUP_HOME") or folder.parent.with_name(".rustup"))
    with suppress(tomllib.TOMLDecodeError):
        name = variables.get("RUSTUP_TOOLCHAIN")
        name = name or tomllib.loads(_read(home / "settings.toml")).get("default_toolchain")
        if isinstance(name, str) and VERSION_NAME.fullmatch(name):
            yield home / "toolchains" / name / "bin"


def _read(file: Path) -> str:
    """Return the text of a file; '' if it cannot be read."""
    with suppress(OSError), file.open("rb") as stream:
        return stream.read(MAX_FILE).decode(errors="replace")
    return ""


def _read_json(file: Path) -> dict[str, Any]:
    with suppress(ValueError):
        value = json.loads(_read(file) or "{}")
        return value if isinstance(value, dict) else {}
    return {}
