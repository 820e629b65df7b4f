"""Runs git, so that nothing but its arguments decides what it does.

No global or system configuration, no hooks, no fsmonitor, no prompt, no environment but a few
variables, an identity of our own, and a deadline. Every error is a Failure with origin `git`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from draftsman.errors import Failure

TIMEOUT: Final = 600.0
"""Seconds for one git command."""
MAX_OUTPUT: Final = 25 * 1024 * 1024
"""Bytes of a patch or a bundle: what one artifact may have."""
MAX_ERRORS: Final = 64 * 1024
INHERITED: Final = re.compile(
    r"(PATH|TMPDIR|SSH_AUTH_SOCK|SSL_CERT_FILE|SSL_CERT_DIR)\Z", re.IGNORECASE
)
COMMITTER: Final = {"NAME": "draftsman", "EMAIL": "draftsman@localhost"}
CONFIG: Final = {
    "advice.addEmbeddedRepo": "false",
    "core.alternateRefsCommand": ":",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.untrackedCache": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "receive.autogc": "false",
    "receive.denyCurrentBranch": "refuse",
    "receive.updateServerInfo": "false",
    "safe.directory": "*",
    "submodule.recurse": "false",
}
FLAGS: Final = tuple(flag for pair in CONFIG.items() for flag in ("-c", "=".join(pair)))
USER_INFO: Final = re.compile(r"(?<=//)[^/@\s]+@")

KNOWN_ERRORS: Final = (
    ("cannot enter it", "permission", "open the folders above it, or run as that user"),
    ("does not appear to be a git repository", "not_a_repository", "give the top of one"),
    ("not a git repository", "not_a_repository", "give the top of one"),
    ("couldn't find remote ref", "no_such_ref", "name a branch, a tag or a commit of it"),
    ("not our ref", "no_such_ref", "name a branch, a tag or a commit of it"),
    ("is currently checked out", "branch_checked_out", "check out another branch there"),
    ("stale info", "branch_moved", "somebody else wrote to the branch: look at it, then retry"),
    ("cannot lock ref", "branch_moved", "another branch is in its way, or it moved: look there"),
    ("Could not resolve host", "unreachable", "check the address and the network"),
    ("unable to connect", "unreachable", "check the address and the network"),
    ("Failed to connect", "unreachable", "check the address and the network"),
    ("requested URL returned error: 30", "redirected", "give the address that it leads to"),
    ("update url base from redirection", "redirected", "give the address that it leads to"),
    ("could not read Username", "authentication", "give access to it"),
    ("Authentication failed", "authentication", "give access to it"),
    ("Permission denied (publickey", "authentication", "give access to it"),
    ("No space left on device", "no_space", "free some disk space"),
)
"""What git says (it has no error codes), our code for it, and what to do."""


async def git(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
) -> bytes:
    """Return what git writes to its standard output, at most MAX_OUTPUT bytes.

    Raises Failure, with a code where the reason is known.
    """
    process = await _start((*FLAGS, *arguments), cwd, git_environment() | dict(env or {}))
    try:
        async with asyncio.timeout(timeout):
            output, errors = await _talk(process, stdin)
            code = await process.wait()
    except TimeoutError:
        raise git_failure(f"{arguments[0]} took more than {timeout:g} s", "timeout") from None
    finally:
        await _end(process)
    if code:
        raise explain_error(arguments[0], errors.decode(errors="replace"))
    return output


async def git_version() -> tuple[int, int]:
    """Return git's version, asked for once."""
    if not _version:
        said = (await git("version", cwd=Path("/"))).decode(errors="replace")
        found = re.search(r"(\d+)\.(\d+)", said)
        _version.append((int(found[1]), int(found[2])) if found else (0, 0))
    return _version[0]


_version: Final[list[tuple[int, int]]] = []


def git_environment() -> dict[str, str]:
    """Return the environment of every git command."""
    kept = {name: value for name, value in os.environ.items() if INHERITED.match(name)}
    who = {
        f"GIT_{role}_{key}": COMMITTER[key] for role in ("AUTHOR", "COMMITTER") for key in COMMITTER
    }
    return {
        **kept,
        **who,
        "LC_ALL": "C",
        "HOME": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
    }


def git_failure(message: str, code: str | None) -> Failure:
    """Return a Failure of git in one line, without anybody's password."""
    return Failure("git: " + USER_INFO.sub("", " ".join(message.split())), origin="git", code=code)


def explain_error(command: str, errors: str) -> Failure:
    """Return the Failure that git's standard error stands for."""
    said = [line.strip() for line in errors.splitlines() if line.strip()]
    for text, code, what_to_do in KNOWN_ERRORS:
        if line := next((line for line in said if text in line), None):
            return git_failure(f"{command}: {_bare(line)}; {what_to_do}", code)
    marked = (line for line in said if line.startswith(("fatal:", "error:", "!")))
    line = next(marked, said[-1] if said else "no reason given")
    return git_failure(f"{command}: {_bare(line)}", None)


def _bare(line: str) -> str:
    return re.sub(r"^(remote: |fatal: |error: )+", "", line)[:300].rstrip(". ")


async def _start(arguments: tuple[str, ...], cwd: Path, env: dict[str, str]) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except FileNotFoundError:
        if shutil.which("git") is None:
            raise git_failure("no git here; install git 2.32 or later", "git_missing") from None
        raise git_failure(f"{cwd} is gone", "folder_gone") from None


async def _talk(process: Process, stdin: bytes) -> tuple[bytes, bytes]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("git has three pipes")
    output, errors, _ = await asyncio.gather(
        _read(process.stdout, MAX_OUTPUT),
        _read(process.stderr, MAX_ERRORS),
        _write(process.stdin, stdin),
    )
    if len(output) > MAX_OUTPUT:
        raise git_failure(f"more than {MAX_OUTPUT:,} bytes of changes; make it less", "too_large")
    return output, errors


async def _read(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Read to the end and keep a little more than `limit` at most."""
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        if len(kept) <= limit:
            kept += chunk
    return bytes(kept)


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        stream.write(data)
        await stream.drain()
    stream.close()


async def _end(process: Process) -> None:
    """Kill git and what it started, if it still runs."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()
