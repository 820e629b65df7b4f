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
    sources = [file for file in folder("migrations").iterdir() if file.name.endswith(".sql")]
    return sorted((file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in sources)


def functions() -> list[tuple[str, str]]:
    """Return every file of functions as (`functions/NAME`, text), in order of application.

    `database` is first: SQL that PostgreSQL parses when it is created calls its functions.
    """
    sources = folder("migrations").joinpath("functions").iterdir()
    texts = {
        file.name.removesuffix(".sql"): file.read_text("utf-8")
        for file in sources
        if file.name.endswith(".sql")
    }
    return [
        (f"functions/{name}", texts[name])
        for name in sorted(texts, key=lambda name: (name != "database", name))
    ]


def config_example() -> str:
    """Return the text of `draftsman.toml` with every key and its default."""
    return folder("config").joinpath("draftsman.toml").read_text("utf-8")
