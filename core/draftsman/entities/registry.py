"""The entities that have a listing."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from draftsman import entities
from draftsman.entities.entity import Entity, Listing


@cache
def listings() -> dict[str, tuple[Listing[Any], Entity[Any]]]:
    """Return the listings by name, with their entities."""
    modules = pkgutil.iter_modules(entities.__path__, f"{entities.__name__}.")
    declared = {
        value.listing.name: (value.listing, value)
        for module in modules
        for value in vars(import_module(module.name)).values()
        if isinstance(value, Entity) and value.listing is not None
    }
    return dict(sorted(declared.items()))
