"""Words of plain commands, and patterns that match them. Pure.

A plain command runs a single program with literal arguments: its text is the same to a shell as to
a reader. A pattern has a word for each word of a command: the word itself, `DIR/*` for a file in
that folder, or `DIR/**` for a path below it. No word of a plain command contains an asterisk.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from draftsman.formats.secret_formats import secret_kinds

IN_FOLDER: Final = "/*"
"""End of a word that stands for a file in a folder."""
BELOW: Final = "/**"
"""End of a word that stands for a path below a folder."""
MAX_COMMAND: Final = 300
MAX_WORDS: Final = 30
_WORD: Final = re.compile(r"[A-Za-z0-9_./:=@,+-]+", re.ASCII)
"""Characters without a meaning to a shell; the function `is_plain_word` has the same."""
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", re.ASCII)
_PART: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_PATH: Final = re.compile(rf"{_PART}(?:/{_PART})*(?:::[A-Za-z0-9_]+)*", re.ASCII)
"""A path without `..` and hidden files, and maybe names of tests in it; as `is_inner_path`."""
_FOLDER: Final = re.compile(rf"{_PART}(?:/{_PART})*/", re.ASCII)
_NEVER_PROGRAMS: Final = frozenset(
    {
        "ash",
        "bash",
        "busybox",
        "cmd",
        "csh",
        "dash",
        "fish",
        "ksh",
        "powershell",
        "pwsh",
        "rbash",
        "sh",
        "tcsh",
        "xonsh",
        "zsh",
        "builtin",
        "command",
        "env",
        "eval",
        "exec",
        "chroot",
        "doas",
        "find",
        "fd",
        "flock",
        "ionice",
        "nice",
        "nohup",
        "nsenter",
        "parallel",
        "pkexec",
        "script",
        "setsid",
        "source",
        "stdbuf",
        "strace",
        "su",
        "sudo",
        "time",
        "timeout",
        "unshare",
        "watch",
        "xargs",
        "curl",
        "ftp",
        "nc",
        "ncat",
        "rsync",
        "scp",
        "sftp",
        "socat",
        "ssh",
        "telnet",
        "wget",
        "gh",
        "glab",
        "hub",
        "hg",
        "svn",
        "tea",
        "twine",
        "aws",
        "az",
        "doctl",
        "flyctl",
        "gcloud",
        "heroku",
        "vercel",
        "wrangler",
        "ansible",
        "ansible-playbook",
        "docker",
        "helm",
        "kubectl",
        "nerdctl",
        "podman",
        "pulumi",
        "terraform",
        "tofu",
        "awk",
        "ed",
        "ex",
        "gawk",
        "m4",
        "sed",
        "vi",
        "vim",
        "at",
        "batch",
        "chattr",
        "chgrp",
        "chmod",
        "chown",
        "crontab",
        "dd",
        "kill",
        "killall",
        "mkfs",
        "mount",
        "pkill",
        "reboot",
        "rm",
        "rmdir",
        "shred",
        "shutdown",
        "systemctl",
        "umount",
        "draftsman",
        "bwrap",
        "chrt",
        "entr",
        "expect",
        "fakeroot",
        "firejail",
        "gdb",
        "ltrace",
        "perf",
        "prlimit",
        "runuser",
        "screen",
        "setarch",
        "systemd-run",
        "taskset",
        "tmux",
        "toybox",
        "unbuffer",
        "valgrind",
        "dig",
        "host",
        "http",
        "https",
        "lftp",
        "nslookup",
        "ping",
        "rclone",
        "sendmail",
        "docker-compose",
        "podman-compose",
        "helmfile",
        "terragrunt",
        "gsutil",
        "tftp",
    }
)
"""Programs that run other programs or scripts in their arguments, reach other hosts, publish or
destroy."""
_NEVER_WORDS: Final = frozenset(
    {"deploy", "login", "merge", "publish", "pull", "push", "release", "upload", "yank"}
)
_INTERPRETERS: Final = re.compile(
    r"(?i:bun|deno|groovy|java|julia|lua|node|nodejs|perl|php|py|pypy|python|r|rscript|ruby|tsx"
    r"|ts-node|uv|npx|pnpx|bunx|pipx|uvx|poetry|hatch|pdm|pipenv|make|just|task|gmake|ninja|cmake"
    r"|yarn|rake|invoke|nox|tox|tclsh|wish|guile|elixir|erl|escript|ghci|runghc|octave|scala"
    r"|swift|dart|ipython|psql|mysql|sqlite|osascript)[0-9.]*(?:-dbg|-config|\.exe)?\Z"
)
"""Programs that run a file or a task of the repository, which has to be the same each time."""
_PYTHON: Final = re.compile(r"(?i:py|pypy|python)[0-9.]*\Z")
_RUNNING_MODULES: Final = frozenset({"cProfile", "pdb", "profile", "runpy", "trace"})
"""Modules of Python that run a script."""
_RUNS: Final = frozenset({"add", "create", "dlx", "exec", "get", "i", "install", "run", "x"})
"""Subcommands that run or install their arguments: `go run`, `npm install`."""
_TEST_RUNNERS: Final = frozenset({"jest", "vitest"})
"""Programs whose subcommand `run` has files of tests."""
_WRITERS: Final = frozenset(
    {
        "bzip2",
        "cp",
        "cpio",
        "csplit",
        "gunzip",
        "gzip",
        "install",
        "link",
        "ln",
        "mkdir",
        "mkfifo",
        "mv",
        "patch",
        "rename",
        "split",
        "tar",
        "tee",
        "touch",
        "truncate",
        "unlink",
        "unxz",
        "unzip",
        "xz",
        "zip",
        "zstd",
        "7z",
        "7za",
        "ditto",
        "objcopy",
        "strip",
    }
)
"""Programs that write the files in their arguments, which have to be the same each time."""
_OUTPUT: Final = re.compile(
    r"-o|-?-(?:out|output|dest|destination|target-dir|report|junit-?xml|basetemp|log-file)[\w-]*",
    re.ASCII,
)
"""Options that are followed by a file or a folder to write."""
_GIT_WRITES: Final = ("--ext-diff", "--output", "--show-signature", "--textconv")
"""Options of git that run a program of its configuration, or write a file; git takes their first
letters as well."""
_GIT_READS: Final = frozenset({"blame", "diff", "log", "ls-files", "rev-parse", "show", "status"})


def plain_words(command: str) -> tuple[str, ...] | None:
    """Return the words of a plain command; None for any other, which only people may allow.

    Not plain are commands with an operator, a substitution, a redirection, quotes, a glob, a
    variable or a secret, and those that run other programs, push, merge, publish or delete.
    """
    if len(command) > MAX_COMMAND:
        return None
    words = tuple(command.split(" "))
    if len(words) > MAX_WORDS or not all(_WORD.fullmatch(word) for word in words):
        return None
    program = words[0]
    if not _PROGRAM.fullmatch(program) or not _NEVER_PROGRAMS.isdisjoint(_names(program)):
        return None
    if any(word.lower().lstrip("-") in _NEVER_WORDS for word in words[1:]):
        return None
    if "git" in _names(program) and not _only_reads(words):
        return None
    if secret_kinds(command) or secret_kinds(command, certain=False):
        return None
    return words


def _only_reads(words: Sequence[str]) -> bool:
    """Return whether a command of git reads, and runs no program of its configuration."""
    if len(words) < 2 or words[1] not in _GIT_READS:
        return False
    options = [word.partition("=")[0] for word in words[2:] if word.startswith("--")]
    return not any(
        written.startswith(option)
        for option in options
        if option != "--"
        for written in _GIT_WRITES
    )


def matches(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether a pattern matches a plain command, as the database decides it."""
    return len(pattern) == len(words) and all(map(_matches_word, pattern, words))


def parse_pattern(text: str) -> tuple[str, ...] | None:
    """Return the words of a pattern; None if it is not valid."""
    pattern = tuple(text.strip().split(" "))
    folders = [word.rstrip("*") for word in pattern if _is_wild(word)]
    example = " ".join(f"{word.rstrip('*')}a" if _is_wild(word) else word for word in pattern)
    if _is_wild(pattern[0]) or not all(_FOLDER.fullmatch(folder) for folder in folders):
        return None
    if plain_words(example) is None or (folders and _has_fixed_files(pattern)):
        return None
    if any(_is_wild(word) and _OUTPUT.fullmatch(before) for before, word in pairwise(pattern)):
        return None
    return pattern


def pattern_text(pattern: Sequence[str]) -> str:
    """Return a pattern, or the words of a command, as text: `pytest tests/*`."""
    return " ".join(pattern)


def kind_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the pattern by which commands are counted as the same kind.

    Each path below a folder stands for any file in its folder, except the program and the script of
    an interpreter.
    """
    if _has_fixed_files(words):
        return tuple(words)
    return (
        words[0],
        *(
            word if _OUTPUT.fullmatch(before) else _with_any_file(word)
            for before, word in pairwise(words)
        ),
    )


def narrowest_pattern(commands: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the narrowest pattern that matches these commands, which are of the same kind."""
    columns = zip(kind_of(commands[0]), *commands, strict=True)
    return tuple(words[0] if len(set(words)) == 1 else kind for kind, *words in columns)


def _is_wild(word: str) -> bool:
    return word.endswith((IN_FOLDER, BELOW))


def _matches_word(expected: str, word: str) -> bool:
    if not _is_wild(expected):
        return word == expected
    folder = expected.rstrip("*")
    path = word[len(folder) :]
    if not word.startswith(folder) or _PATH.fullmatch(path) is None:
        return False
    return expected.endswith(BELOW) or "/" not in path


def _names(program: str) -> set[str]:
    """Return the names that a program may be known by: `nc.openbsd`, `git-push` and `BASH5` too."""
    name = program.lower()
    base = name.partition(".")[0]
    family = {"git"} if name.startswith("git-") else set()
    return {name, base, base.rstrip("0123456789-"), *family}


def _has_fixed_files(words: Sequence[str]) -> bool:
    """Return whether the files of a command have to be the same each time."""
    return not _WRITERS.isdisjoint(_names(words[0])) or _runs_scripts(words)


def _runs_scripts(words: Sequence[str]) -> bool:
    """Return whether the command runs or installs its arguments, not files of a module."""
    program, *arguments = words
    if arguments[:1] == ["-m"] and _PYTHON.match(program):
        return not _RUNNING_MODULES.isdisjoint(arguments[1:2]) or arguments[2:3] == ["run"]
    if _INTERPRETERS.match(program) is not None:
        return True
    return not _RUNS.isdisjoint(arguments) and program not in _TEST_RUNNERS


def _with_any_file(word: str) -> str:
    if "/" not in word or _PATH.fullmatch(word) is None:
        return word
    return f"{word.partition('::')[0].rpartition('/')[0]}{IN_FOLDER}"
