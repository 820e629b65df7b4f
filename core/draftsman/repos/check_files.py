"""Check files: changed files that may decide whether work passes. Pure.

An agent may change what judges its work in more ways than a list can name: configuration, hooks,
plugins, links, scripts, programs. So the list is of the opposite: files that are read by nothing
but the compiler or interpreter of the code under test are *ordinary*; every other is a check file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

from draftsman.repos.repo_profile import FILES, EvidenceProfile, RepoProfile, is_among
from draftsman.settings.profiles import CommandSettings, SetupSettings

REGULAR: Final = "100644"
EXECUTABLE: Final = "100755"
"""Modes of files; others are links and repositories."""
ABSENT: Final = "000000"
"""Mode of a file that a commit does not have."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that the work adds, changes or removes, with its modes as git names them."""

    path: str
    old_mode: str
    mode: str

    @property
    def status(self) -> str:
        """`A`, `D`, or `M` for a changed file."""
        if self.old_mode == ABSENT:
            return "A"
        return "D" if self.mode == ABSENT else "M"

    @property
    def is_file(self) -> bool:
        """Whether it is a file before and after the work, and no link or repository."""
        return {self.old_mode, self.mode} <= {REGULAR, EXECUTABLE, ABSENT}


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


CODE: Final = frozenset(
    words_of(
        """
        .bash .bats .c .cc .clj .cljs .coffee .cpp .cs .cxx .dart .elm .erl .ex .exs .f90 .fs .go .h
        .hh .hpp .hrl .hs .java .jl .js .jsx .kt .lua .m .mjs .cjs .ml .mli .mm .mts .cts .nim .php
        .pl .pm .proto .py .pyi .pyx .r .rb .rs .scala .sh .sol .sql .svelte .swift .t .tcl .ts .tsx
        .v .vb .vue .zig
        """
    )
)
"""Suffixes of source code."""
ASSETS: Final = frozenset(
    words_of(
        """
        .adoc .avif .bmp .css .csv .eot .erb .gif .graphql .haml .hbs .htm .html .ico .ipynb .j2
        .jinja .jinja2 .jpeg .jpg .less .liquid .markdown .md .mdx .mo .mp3 .mp4 .mustache .ogg .otf
        .pdf .png .po .pot .pug .rst .sass .scss .snap .svg .tif .tiff .tmpl .tsv .ttf .twig .txt
        .wav .webm .webp .woff .woff2
        """
    )
)
"""Suffixes of documents, templates, tables and media, which configure no tool."""
DATA: Final = frozenset(
    words_of(
        """
        .bin .cfg .conf .dat .env .gz .ini .json .json5 .jsonl .ndjson .parquet .pb .pem .properties
        .sqlite .toml .xml .yaml .yml .zip
        """
    )
)
"""Suffixes of data, which are ordinary in the folders of data."""
DATA_FOLDERS: Final = frozenset(
    ("__fixtures__", "__snapshots__", "cassettes", "fixtures", "golden", "snapshots", "testdata")
)
"""Names of folders with data of tests."""
TOOL_FOLDERS: Final = frozenset(
    words_of(
        """
        META-INF __pypackages__ bower_components build-logic buildSrc env gradle jspm_packages
        magefiles node_modules rakelib site-packages vendor venv
        """
    )
)
"""Names of folders with dependencies, or with code of the build."""
HOOKS: Final = (
    "*.conf.?s",
    "*.config.*",
    "*.setup.*",
    "*.workspace.?s",
    "*_helper.exs",
    "*_helper.rb",
    "*rc.?js",
    "*rc.js",
    "*requirements*.txt",
    "CMakeLists.txt",
    "Gruntfile.*",
    "Jakefile.*",
    "Package.swift",
    "Package@swift-*.swift",
    "Setup.hs",
    "bootstrap.php",
    "build.clj",
    "build.rs",
    "build.zig",
    "conftest.py",
    "constraints*.txt",
    "dodo.py",
    "ecs.php",
    "ember-cli-build.js",
    "env.rb",
    "fabfile.py",
    "flutter_test_config.dart",
    "gulpfile.*",
    "hatch_build.py",
    "magefile.go",
    "mix.exs",
    "noxfile.py",
    "pavement.py",
    "pdm_build.py",
    "pnpmfile.*",
    "project.clj",
    "rector.php",
    "setup.py",
    "setupTests.*",
    "setup_suite.bash",
    "sitecustomize.py",
    "tasks.py",
    "testem.js",
    "toxfile.py",
    "usercustomize.py",
    "wallaby.js",
)
"""Names of files that tools execute or read by themselves though they look like source code."""
SETTINGS: Final = (
    "*.csproj",
    "*.gradle",
    "*.lock",
    "*-lock.*",
    "*rc.json",
    "*rc.y*ml",
    "*.config.*",
    "Cargo.toml",
    "biome.json*",
    "build.xml",
    "bunfig.toml",
    "composer.json",
    "deno.json*",
    "mypy.ini",
    "nx.json",
    "package.json",
    "phpunit.xml*",
    "pom.xml",
    "project.json",
    "pyproject.toml",
    "pyrightconfig.json",
    "pytest.*",
    "ruff.toml",
    "setup.cfg",
    "testng.xml",
    "tox.*",
    "tsconfig*.json",
)
"""Names of data files that configure tools for their folder, also in a folder of data."""


def is_ordinary(file: ChangedFile) -> bool:
    """Return whether a changed file decides by its place, name and modes nothing but itself.

    An executable with the name of code is run by what names it, so it is found by that.
    """
    *folders, name = PurePosixPath(file.path).parts
    if not file.is_file or any(map(_is_of_tools, (*folders, name))) or _is_hook(name):
        return False
    suffix = PurePosixPath(name).suffix
    if suffix in CODE or suffix in ASSETS:
        return True
    is_data = suffix in DATA and not DATA_FOLDERS.isdisjoint(folders)
    is_executable = EXECUTABLE in {file.old_mode, file.mode}
    is_settings = any(fnmatchcase(name, pattern) for pattern in SETTINGS)
    return is_data and not is_executable and not is_settings


def _is_hook(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in HOOKS)


def _is_of_tools(name: str) -> bool:
    return (
        name.startswith(".") or name in TOOL_FOLDERS or name.endswith((".egg-info", ".dist-info"))
    )


def check_files(
    changes: Iterable[ChangedFile],
    profile: RepoProfile,
    *,
    ignored: Iterable[str] = (),
    scripts: Iterable[str] = (),
    hiding: Iterable[str] = (),
) -> list[str]:
    """Return the check files among the changes, sorted.

    `ignored` are files that the base commit ignores, `scripts` those that its commands run, and
    `hiding` those that hide a module of the commands. The profile has patterns of its own.
    """
    hidden = {*ignored, *hiding}
    run = frozenset(scripts)

    def decides(file: ChangedFile) -> bool:
        if file.path in hidden or is_among(file.path, profile.check_files):
            return True
        if is_among(file.path, profile.ordinary_files):
            return not file.is_file
        return file.path in run or not is_ordinary(file)

    return sorted(file.path for file in changes if decides(file))


def judging_code(changes: Iterable[ChangedFile], files: Iterable[str]) -> list[str]:
    """Return the check files that are changed code.

    Without their changes, what they break is not seen; with them, they may hide it.
    """
    decisive = frozenset(files)
    return [
        file.path
        for file in changes
        if file.status == "M"
        and file.path in decisive
        and PurePosixPath(file.path).suffix in CODE
        and not _is_hook(PurePosixPath(file.path).name)
    ]


# Scripts that the commands run, also through a Makefile or the scripts of a package.


INTERPRETERS: Final = ("*sh", "bun", "deno", "node", "perl", "php", "python*", "{python}", "ruby")
"""Programs whose first argument is a script."""
PYTHON: Final = ("python*", "{python}")
PACKAGE_MANAGERS: Final = ("bun", "npm", "pnpm", "yarn")
RUNNERS: Final = {
    "composer": ("composer.json",),
    "deno": ("deno.json", "deno.jsonc"),
    "just": ("justfile", "Justfile", ".justfile"),
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "nox": ("noxfile.py",),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
    "task": ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml"),
    "tox": ("tox.ini", "tox.toml", "setup.cfg", "pyproject.toml"),
    **dict.fromkeys(PACKAGE_MANAGERS, ("package.json",)),
    **dict.fromkeys(("hatch", "pdm", "poe", "poetry", "rye", "uv"), ("pyproject.toml",)),
}
"""Programs that run the commands of a file of the repository, and the names of that file."""
SHELL: Final = frozenset((".bash", ".sh", ""))
"""Suffixes of scripts that run others."""
_SEPARATOR: Final = re.compile(r"[;&|\n]+|\t@?")
_RULE: Final = re.compile(r"([\w./ -]+?)[ \t]*::?(?!=)(.*)")
_SCRIPT: Final = re.compile(r"[\w./@+-]+\.(?:bash|cjs|js|mjs|mts|php|pl|py|rb|sh|ts)\b")


def commands_of(profile: RepoProfile) -> list[tuple[str, ...]]:
    """Return the commands that judge the work."""
    items: tuple[SetupSettings | CommandSettings, ...] = (
        *profile.setup_commands,
        *profile.validation_commands,
    )
    commands = [item.command for item in items]
    if profile.evidence is not None:
        commands.append(profile.evidence.test)
        if profile.evidence.coverage is not None:
            commands.append(profile.evidence.coverage.command)
    return commands


def started_files(profile: RepoProfile) -> Iterator[str]:
    """Yield the programs and scripts that the commands start, as paths from the top folder."""
    for command in commands_of(profile):
        script = _script(command)
        if script is not None and not script.startswith("/"):
            yield str(PurePosixPath(profile.path, script))
        if (module := module_of(command)) is not None:
            path = PurePosixPath(profile.path, *module.split("."))
            yield from (f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py")


def runner_files(folder: str) -> list[str]:
    """Return the files of a folder whose commands programs run, whether they exist or not."""
    names = dict.fromkeys(name for names in RUNNERS.values() for name in names)
    return [str(PurePosixPath(folder, name)) for name in names]


def run_texts(
    command: Sequence[str], texts: Mapping[str, str], folder: str, seen: set[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the commands that a command runs, each with the file that has it.

    `texts` are the runner files; a target, or a script of a package, runs others.
    """
    seen = set() if seen is None else seen
    program = PurePosixPath(command[0]).name
    if module_of(command) is not None:
        program = str(module_of(command))
    for name in RUNNERS.get(program, ()):
        path = str(PurePosixPath(folder, name))
        if path not in texts:
            continue
        for part in _parts(program, path, texts[path], command):
            if part in seen:
                continue
            seen.add(part)
            yield path, part
            for line in _SEPARATOR.split(part):
                if words := line.split():
                    yield from run_texts(words, texts, folder, seen)


def _parts(program: str, path: str, text: str, command: Sequence[str]) -> Iterator[str]:
    """Yield the commands of a runner file that a command runs: all, unless its format is known."""
    if path.endswith((".json", ".jsonc")):
        try:
            package = json.loads(text)
        except (ValueError, RecursionError):
            package = None
        tables = package if isinstance(package, dict) else {}
        scripts = {
            name: str(script)
            for key in ("scripts", "tasks")
            if isinstance(tables.get(key), dict)
            for name, script in tables[key].items()
        }
        wanted = {f"{prefix}{word}" for word in command[1:] for prefix in ("", "pre", "post")}
        yield from (script for name, script in scripts.items() if name in wanted)
    elif program in {"make", "gmake"}:
        yield from _recipes(text, command[1:])
    else:
        yield text


def _recipes(text: str, targets: Sequence[str]) -> Iterator[str]:
    """Yield the recipes of targets of a Makefile and of what they need; without any, of all."""
    rules: dict[str, tuple[list[str], list[str]]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith("\t"):
            current.append(line)
        elif match := _RULE.match(line):
            needs, _, inline = match[2].partition(";")
            current = [inline]
            for name in match[1].split():
                known_needs, recipe = rules.setdefault(name, ([], current))
                known_needs += needs.split()
                current = recipe
    wanted = [name for name in targets if name in rules] or list(rules)
    for name in wanted:
        needs, recipe = rules[name]
        wanted += [need for need in needs if need in rules and need not in wanted]
        yield "\n".join(recipe)


def named_scripts(path: str, text: str, top: str) -> Iterator[str]:
    """Yield the scripts that the commands of a file name, as paths from the top folder.

    They are relative to the folder of the file, to `top`, the folder of the commands, or to the top
    of the repository.
    """
    folders = (PurePosixPath(path).parent, PurePosixPath(top), PurePosixPath())
    for word in _SCRIPT.findall(text):
        yield from dict.fromkeys(_normal(folder / word) for folder in folders)


def is_judged(path: str, profile: RepoProfile) -> bool:
    """Return whether a file is a test: a Makefile names tests, too, and evidence judges them."""
    evidence = profile.evidence
    if evidence is None:
        evidence = EvidenceProfile(test=(FILES,))
    return evidence.is_test(path)


def module_of(command: Sequence[str]) -> str | None:
    """Return the module of `python -m`; None for other commands."""
    if not _is_interpreter(command, PYTHON):
        return None
    words = iter(command[1:])
    for word in words:
        if word == "-m":
            return next(words, None)
        if word in {"-W", "-X"}:
            next(words, None)
        elif word == "-c" or not word.startswith("-"):
            return None
    return None


def interpreters(profile: RepoProfile) -> list[str]:
    """Return the interpreters of Python that the commands use."""
    programs = [command[0] for command in commands_of(profile) if _is_interpreter(command, PYTHON)]
    return list(dict.fromkeys(programs))


def _script(command: Sequence[str]) -> str | None:
    """Return the program of a command, or the script that its interpreter runs."""
    if not _is_interpreter(command, INTERPRETERS):
        return command[0] if "/" in command[0] else None
    if module_of(command) is not None:
        return None
    return next((word for word in command[1:] if not word.startswith("-")), None)


def _is_interpreter(command: Sequence[str], patterns: Iterable[str]) -> bool:
    program = PurePosixPath(command[0]).name
    return any(fnmatchcase(program, pattern) for pattern in patterns)


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != "..":
            parts.append(part)
    return "/".join(parts)


# Files that hide a module which the commands of the base commit find elsewhere.


def new_modules(changes: Iterable[ChangedFile], packages: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the added files of Python that a program may import by a plain name, by that name.

    `packages` are the folders of the work that have an `__init__.py`: what is in them has a longer
    name.
    """
    inner = frozenset(packages)
    modules: dict[str, list[str]] = {}
    for file in changes:
        path = PurePosixPath(file.path)
        if file.status != "A" or path.suffix not in {".py", ".so", ".pyc"}:
            continue
        module = path.parent if path.stem == "__init__" else path.with_suffix("")
        if module.name and str(module.parent) not in inner:
            modules.setdefault(module.name.partition(".")[0], []).append(file.path)
    return modules


RUBY_LIBRARIES: Final = frozenset(("bundler", "minitest", "rake", "rspec", "rubygems", "test-unit"))
"""Libraries of Ruby's test runners, which look for their parts in `lib` and `spec` first."""


def hidden_libraries(changes: Iterable[ChangedFile], profile: RepoProfile) -> list[str]:
    """Return the added files of Ruby that are found in place of a library of the commands."""
    words = {PurePosixPath(word).name for command in commands_of(profile) for word in command}
    libraries = RUBY_LIBRARIES | words
    return [
        file.path
        for file in changes
        if file.status == "A"
        and file.path.endswith(".rb")
        and not libraries.isdisjoint(PurePosixPath(file.path).with_suffix("").parts)
    ]
