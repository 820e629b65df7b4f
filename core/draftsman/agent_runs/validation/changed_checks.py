"""The check files that work changes: all that may decide whether it passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from draftsman.agent_runs.clones.workspace import CommitTree
from draftsman.agent_runs.validation.fresh_clone import CommittedWork, FreshClone
from draftsman.repos.check_files import (
    SHELL,
    ChangedFile,
    check_files,
    commands_of,
    hidden_libraries,
    interpreters,
    is_judged,
    judging_code,
    named_scripts,
    new_modules,
    run_texts,
    runner_files,
    started_files,
)
from draftsman.repos.repo_profile import RepoProfile
from draftsman.settings.profiles import CommandSettings

MAX_MODULES: Final = 2000
"""New modules that are compared with those of the interpreter; more count as hiding some."""
FIND_MODULES: Final = """\
import sys
from importlib.util import find_spec
from os.path import realpath
tree = realpath(sys.argv[1]) + "/"
for name in sys.argv[2:]:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin in ("built-in", "frozen"):
        continue
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    if places and not realpath(places[0]).startswith(tree):
        print(name)
"""
"""Prints those of the names that the interpreter finds outside of a tree."""


@dataclass(frozen=True, slots=True)
class ChangedChecks:
    """Check files that work changes."""

    files: tuple[str, ...]
    code: tuple[str, ...]
    """Those that are code, so that neither run proves them."""
    hiding: tuple[str, ...]
    """Those that hide a module of the commands."""


async def find_changed_checks(work: CommittedWork, clone: FreshClone) -> ChangedChecks:
    """Return the check files; `clone` is one of the work, in which the interpreters run."""
    workspace = work.workspace
    profile = work.saved.profile
    changes = await workspace.changed_files(work.snapshot.commit)
    base = await workspace.tree(work.snapshot.base_sha)
    added = [file.path for file in changes if file.status == "A"]
    hiding = await _hiding_files(work, clone, changes)
    files = check_files(
        changes,
        profile,
        ignored=await workspace.ignored(base, added),
        scripts=await _scripts(base, profile),
        hiding=hiding,
    )
    code = sorted(judging_code(changes, files))
    return ChangedChecks(tuple(files), tuple(code), tuple(sorted(hiding)))


async def _scripts(base: CommitTree, profile: RepoProfile) -> set[str]:
    """Return the scripts of the base commit that its commands run, each by another as well."""
    folder = profile.path
    files = await base.read(runner_files(folder))
    runners = {path: data.decode("utf-8", "replace") for path, data in files.items()}
    texts = [
        (path, text)
        for command in commands_of(profile)
        for path, text in (
            (f"{folder}/command", " ".join(command)),
            *run_texts(command, runners, folder),
        )
    ]
    found = set(started_files(profile))
    read = set[str]()
    while texts:
        named = {
            script
            for path, text in texts
            for script in named_scripts(path, text, folder)
            if script in base.entries and not is_judged(script, profile)
        }
        found |= named
        unread = {path for path in found if PurePosixPath(path).suffix in SHELL} - read
        read |= unread
        contents = await base.read(sorted(unread))
        texts = [(path, data.decode("utf-8", "replace")) for path, data in contents.items()]
    return found


async def _hiding_files(
    work: CommittedWork, clone: FreshClone, changes: Sequence[ChangedFile]
) -> list[str]:
    """Return the added files that a command finds in place of a module of its own.

    All new modules count if an interpreter of the commands cannot say which it has.
    """
    profile = work.saved.profile
    hiding = hidden_libraries(changes, profile)
    added = new_modules(changes, ())
    if not added or clone.broken is not None:
        return hiding
    tree = await work.workspace.tree(work.snapshot.commit)
    modules = new_modules(changes, packages=tree.folders_with("__init__.py"))
    hidden = set(modules) if len(modules) > MAX_MODULES else set[str]()
    used = interpreters(profile)
    programs = (used or ["python3"]) if modules and not hidden else []
    for program in programs:
        root = clone.workspace.sandbox_path
        find = (program, "-I", "-c", FIND_MODULES, root, *sorted(modules))
        result = await clone.run(CommandSettings(name="modules", command=find))
        if result.passed and "bytes omitted" not in result.output:
            hidden.update(result.output.split())
        elif program in used:
            hidden.update(modules)
    return hiding + [path for name in sorted(hidden & modules.keys()) for path in modules[name]]
