"""Package data: migrations, the documented configuration, samples.

An installed wheel has them inside `draftsman`; a checkout has top-level folders `migrations/` and
`config/`.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


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
    """Return every migration as (name without `.sql`, text), in order of application."""
    sources = [file for file in folder("migrations").iterdir() if file.name.endswith(".sql")]
    return sorted((file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in sources)


def config_example() -> str:
    """Return the text of `draftsman.toml` with every key and its default."""
    return folder("config").joinpath("draftsman.toml").read_text("utf-8")
