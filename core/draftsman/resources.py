"""Files that travel with the package: migrations, the documented configuration, samples.

In an installed wheel they are inside `draftsman`. In a checkout `migrations/` and `config/` are
top-level folders, which is what the fallback finds.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def folder(name: str) -> Traversable:
    """Return the package's folder `name` (`migrations`, `config`, `samples/…`).

    Raises FileNotFoundError where neither the package nor a checkout has it: a broken install.
    """
    packaged = files("draftsman").joinpath(name)
    if packaged.is_dir():
        return packaged
    checkout = Path(__file__).resolve().parents[2] / name
    if (checkout.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    raise FileNotFoundError(f"draftsman was installed without its {name}; install it again")


def migrations() -> list[tuple[str, str]]:
    """Return every migration as (name without `.sql`, text), in the order to apply them."""
    found = [file for file in folder("migrations").iterdir() if file.name.endswith(".sql")]
    return sorted((file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in found)


def config_example() -> str:
    """Return the text of `draftsman.toml` with every key and its default."""
    return folder("config").joinpath("draftsman.toml").read_text("utf-8")
