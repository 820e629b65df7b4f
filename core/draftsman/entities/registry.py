"""The entities that have a listing."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from draftsman import entities
from draftsman.entities.entity import ListedEntity


@cache
def listed_entities() -> dict[str, ListedEntity[Any]]:
    """Return the entities that have a listing, by its name."""
    modules = pkgutil.iter_modules(entities.__path__, f"{entities.__name__}.")
    declared = {
        value.listing.name: value
        for module in modules
        for value in vars(import_module(module.name)).values()
        if isinstance(value, ListedEntity)
    }
    return dict(sorted(declared.items()))
