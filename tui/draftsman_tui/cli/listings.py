"""Commands of the listings that have no command of their own."""

from __future__ import annotations

from draftsman.entities.registry import listed_entities
from draftsman_tui.cli.app import SECTIONS, command
from draftsman_tui.cli.lists import list_rows

for _entity in listed_entities().values():
    _listing = _entity.listing
    if _listing.section:
        _section = next(section for section in SECTIONS if section == _listing.section)
        _example = f"draftsman {_listing.name}"
        _examples = (_example, f"{_example} --json")
        _print_rows = list_rows(_entity)
        _print_rows.__module__ = __name__  # the index names it, and it is imported by that
        command(_listing.name, section=_section, examples=_examples, lists=_entity)(_print_rows)
