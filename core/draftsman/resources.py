"""Package data, and commands that start a module of the package as a child process.

An installed wheel has the data inside `draftsman`; a checkout has top-level folders `migrations/`
and `config/`.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

PACKAGE_ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder that `draftsman` is imported from."""
_RUN_MODULE: Final = (
    "import sys; sys.path.insert(0, {root!r});"
    " from {module} import main; sys.exit(main(sys.argv[1:]))"
)


def module_command(module: str) -> tuple[str, ...]:
    """Return the command that runs `main` of a module with the arguments that follow.

    The interpreter has no packages but draftsman and the standard library, and starts in
    milliseconds.
    """
    return (sys.executable, "-I", "-S", "-c", run_module_code(module, str(PACKAGE_ROOT)))


def run_module_code(module: str, root: str) -> str:
    """Return the code that runs `main` of a module of the packages in the folder `root`."""
    return _RUN_MODULE.format(root=root, module=module)


def folder(name: str) -> Traversable:
    """Return the package's folder `name` (`migrations`, `config`, `samples/…`).

    Raises FileNotFoundError if the installation is incomplete.
    """
    packaged = files("draftsman").joinpath(name)
    if packaged.is_dir():
        return packaged
    checkout = Path(__file__).resolve().parents[2] / name
    if (checkout.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    raise FileNotFoundError(f"the installation of draftsman lacks its {name}; reinstall it")


def migrations() -> list[tuple[str, str]]:
    """Return every numbered file as (name without `.sql`, text), in order of application."""
    return _numbered(folder("migrations"))


def functions() -> list[tuple[str, str]]:
    """Return every file of functions as (`functions/NAME`, text), in order of application.

    `database` is first: SQL that PostgreSQL parses when it is created calls its functions.
    """
    return _functions(folder("migrations"))


def package_migrations(name: str) -> list[tuple[str, str]]:
    """Return the same files of a package, by its name in dots: the numbered ones first.

    Raises ImportError, OSError or UnicodeError.
    """
    source = files(name)
    return [*_numbered(source), *_functions(source)]


def _numbered(source: Traversable) -> list[tuple[str, str]]:
    return sorted(_sql_files(source).items())


def _functions(source: Traversable) -> list[tuple[str, str]]:
    texts = _sql_files(source.joinpath("functions"))
    return [
        (f"functions/{name}", texts[name])
        for name in sorted(texts, key=lambda name: (name != "database", name))
    ]


def _sql_files(source: Traversable) -> dict[str, str]:
    """Return the text of each SQL file in a folder, by its name without `.sql`."""
    if not source.is_dir():
        return {}
    return {
        file.name.removesuffix(".sql"): file.read_text("utf-8")
        for file in source.iterdir()
        if file.name.endswith(".sql")
    }


def config_example() -> str:
    """Return the text of `draftsman.toml` with every key and its default."""
    return folder("config").joinpath("draftsman.toml").read_text("utf-8")
