"""Isolated git commands.

They have no global or system configuration, hooks, fsmonitor or prompts, few environment variables,
a fixed identity, and a timeout. Every error is a Failure with origin `git`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from draftsman.errors import CommandHint, Failure

TIMEOUT: Final = 600.0
"""Default timeout of a git command, in seconds."""
MAX_OUTPUT: Final = 25 * 1024 * 1024
"""Maximum bytes of a patch or a bundle, as for an artifact."""
MAX_LISTING: Final = 1024 * 1024 * 1024
"""Maximum bytes of a list of all files of a commit, or of the contents of some."""
SHA256_DIGITS: Final = 64
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

NO_ENTRY: Final = "draftsman-no-entry"
"""Begins a line of data of `source.RUN_AS_OWNER`: the user id and the folder follow."""
_NO_ENTRY_LINE: Final = re.compile(rf"^{NO_ENTRY} (\d+) (.+)$", re.MULTILINE)
LOGIN: Final = "the server requires a valid login; check the token of its table in [forges]"
KNOWN_ERRORS: Final = (
    (
        "does not appear to be a git repository",
        "not_a_repository",
        "use the top folder of a repository",
    ),
    ("not a git repository", "not_a_repository", "use the top folder of a repository"),
    ("couldn't find remote ref", "no_such_ref", "use an existing branch, tag or commit"),
    ("not our ref", "no_such_ref", "use an existing branch, tag or commit"),
    (
        "is currently checked out",
        "branch_checked_out",
        "check out another branch in that repository",
    ),
    ("stale info", "branch_moved", "the branch has other commits; check it, then retry the job"),
    (
        "cannot lock ref",
        "branch_moved",
        "the branch has changed, or another branch conflicts with its name; check the repository",
    ),
    ("Could not resolve host", "unreachable", "check the URL and the network"),
    ("unable to connect", "unreachable", "check the URL and the network"),
    ("Failed to connect", "unreachable", "check the URL and the network"),
    ("requested URL returned error: 30", "redirected", "use the URL that it redirects to"),
    ("update url base from redirection", "redirected", "use the URL that it redirects to"),
    ("could not read Username", "authentication", LOGIN),
    (
        "requested URL returned error: 403",
        "authentication",
        "give its token the right to write the contents of the repository",
    ),
    ("' not found", "not_found", "check the URL, and the access of the worker to it"),
    ("refusing to allow", "push_refused", "give the token that right"),
    (
        "mismatched algorithms",
        "object_format",
        "the repository has another object format than before; remove its mirror in data_dir",
    ),
    ("hook declined", "push_refused", "let the rules of the repository allow draftsman/*"),
    ("Authentication failed", "authentication", LOGIN),
    ("Permission denied (publickey", "authentication", "give the worker access to the repository"),
    ("No space left on device", "no_space", "free some disk space"),
)
"""Messages of git, which has no error codes, with our error code and hint."""


async def git(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
    limit: int | None = None,
) -> bytes:
    """Return the standard output of git, at most `limit` bytes, MAX_OUTPUT without one.

    Raises Failure, with a code if the error is in KNOWN_ERRORS.
    """
    _, output = await git_status(
        *arguments, cwd=cwd, env=env, stdin=stdin, timeout=timeout, limit=limit
    )
    return output


async def git_status(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
    most: int = 0,
    limit: int | None = None,
) -> tuple[int, bytes]:
    """Return the exit code of git, up to `most`, and its standard output.

    Raises Failure for a higher code, and as `git`.
    """
    code, output, errors = await git_result(
        *arguments, cwd=cwd, env=env, stdin=stdin, timeout=timeout, limit=limit
    )
    if not 0 <= code <= most:
        raise explain_error(arguments[0], errors.decode(errors="replace"))
    return code, output


async def git_result(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
    limit: int | None = None,
) -> tuple[int, bytes, bytes]:
    """Return any exit code of git, its standard output and its standard error."""
    return await program_result(
        ("git", *FLAGS, *arguments),
        arguments[0],
        cwd=cwd,
        env=git_environment() | dict(env or {}),
        stdin=stdin,
        timeout=timeout,
        limit=limit or MAX_OUTPUT,
    )


async def program_result(
    command: Sequence[str],
    name: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
    limit: int = MAX_OUTPUT,
) -> tuple[int, bytes, bytes]:
    """Return the exit code, the output and the errors of a program with nothing but this `env`.

    `name` is that of the command in a Failure.
    """
    process = await _start(command, cwd, env)
    try:
        async with asyncio.timeout(timeout):
            output, errors = await _communicate(process, stdin, limit)
            return await process.wait(), output, errors
    except TimeoutError:
        raise git_failure(f"{name} took more than {timeout:g} s", "timeout") from None
    finally:
        await _kill(process)


async def read_records(
    *arguments: str, cwd: Path, take: Callable[[bytes], None], timeout: float = TIMEOUT
) -> None:
    """Call `take` with each record of git's output, which ends with NUL; git ends if it raises.

    Raises Failure, of class PERMANENT if git is killed by what it reads.
    """
    process = await _start(("git", *FLAGS, *arguments), cwd, git_environment())
    if process.stdout is None or process.stderr is None:
        raise ValueError("git needs pipes for stdout and stderr")
    errors = asyncio.create_task(_read(process.stderr, MAX_ERRORS))
    try:
        async with asyncio.timeout(timeout):
            rest = b""
            while chunk := await process.stdout.read(1 << 16):
                *records, rest = (rest + chunk).split(b"\0")
                for record in records:
                    take(record)
            code = await process.wait()
            if code != 0:
                failure = explain_error(arguments[0], (await errors).decode(errors="replace"))
                failure.declared = "PERMANENT" if code < 0 else None
                raise failure
    except TimeoutError:
        raise git_failure(f"{arguments[0]} took more than {timeout:g} s", "timeout") from None
    finally:
        errors.cancel()
        await asyncio.wait([errors])
        await _kill(process)


async def init(folder: Path, *options: str, object_format: str = "sha1") -> None:
    """Create a repository; the default of git for the object format may be another one."""
    form = f"--object-format={object_format}"
    await git("init", "--quiet", "--template=", form, *options, str(folder), cwd=folder.parent)


def object_format(commit: str) -> str:
    """Return the object format in which a commit has this id."""
    return "sha256" if len(commit) == SHA256_DIGITS else "sha1"


async def git_version() -> tuple[int, int]:
    """Return git's version, cached."""
    if not _version:
        output = (await git("version", cwd=Path("/"))).decode(errors="replace")
        match = re.search(r"(\d+)\.(\d+)", output)
        _version.append((int(match[1]), int(match[2])) if match else (0, 0))
    return _version[0]


_version: Final[list[tuple[int, int]]] = []


def git_environment() -> dict[str, str]:
    """Return the environment of every git command."""
    inherited = {name: os.environ[name] for name in os.environ if INHERITED.match(name)}
    identity = {
        f"GIT_{role}_{key}": COMMITTER[key] for role in ("AUTHOR", "COMMITTER") for key in COMMITTER
    }
    return {
        **inherited,
        **identity,
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


def config_variables(config: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give git configuration, which is then in no argument."""
    env = {"GIT_CONFIG_COUNT": str(len(config))}
    for number, (key, value) in enumerate(config.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def git_failure(message: str, code: str | None, hint: CommandHint | None = None) -> Failure:
    """Return a single-line Failure of git without credentials of URLs."""
    text = USER_INFO.sub("", " ".join(message.split()))
    return Failure(f"git: {text}", origin="git", code=code, hint=hint)


def explain_error(command: str, errors: str) -> Failure:
    """Return the Failure for git's standard error."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if no_entry := _NO_ENTRY_LINE.search(errors):
        uid, folder = no_entry.groups()
        text = f"{command}: uid {uid} owns {folder} and cannot enter it; give that user access to"
        return git_failure(f"{text} the parent folders, or run as that user", "permission")
    for text, code, hint in KNOWN_ERRORS:
        if line := next((line for line in lines if text in line), None):
            return git_failure(f"{command}: {_without_prefix(line)}; {hint}", code)
    error_lines = (line for line in lines if line.startswith(("fatal:", "error:", "!")))
    line = next(error_lines, lines[-1] if lines else "no reason given")
    return git_failure(f"{command}: {_without_prefix(line)}", None)


def _without_prefix(line: str) -> str:
    return re.sub(r"^(remote: |fatal: |error: )+", "", line)[:300].rstrip(". ")


async def _start(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except FileNotFoundError:
        if shutil.which(command[0]) is None:
            version = " 2.32 or later" if command[0] == "git" else ""
            text = f"{command[0]} not found; install {command[0]}{version}"
            raise git_failure(text, "git_missing") from None
        raise git_failure(f"folder {cwd} no longer exists", "folder_gone") from None


async def _communicate(process: Process, stdin: bytes, limit: int) -> tuple[bytes, bytes]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("git needs pipes for stdin, stdout and stderr")
    output, errors, _ = await asyncio.gather(
        _read(process.stdout, limit),
        _read(process.stderr, MAX_ERRORS),
        _write(process.stdin, stdin),
    )
    if len(output) > limit:
        raise git_failure(
            f"more than {limit:,} bytes of changes; split the work into smaller jobs",
            "too_large",
        )
    return output, errors


async def _read(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Read to the end; return little more than `limit` bytes at most."""
    content = bytearray()
    while chunk := await stream.read(1 << 16):
        if len(content) <= limit:
            content += chunk
    return bytes(content)


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        stream.write(data)
        await stream.drain()
    stream.close()


async def _kill(process: Process) -> None:
    """Kill git and its child processes, if it still runs."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()
