"""The man page, docs/draftsman.1, from the index of the commands.

`python -m tests.tui.cli.write_index` writes both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from draftsman import __version__
from draftsman_tui.cli import command_index, main
from draftsman_tui.cli.app import SECTIONS, shared_options
from tests.docs.pages import DOCS

PAGE: Final = DOCS / "draftsman.1"
EXIT_CODE: Final = re.compile(r"^\| ([\d, ]+) \| (.+) \|$", re.MULTILINE)
FILES: Final = (
    ("~/.config/draftsman/draftsman.toml", "Configuration of the user."),
    ("/etc/draftsman/draftsman.toml", "Configuration of the machine."),
)
VARIABLES: Final = (
    ("DRAFTSMAN_DATABASE_URL", "URL of the database; without it, an embedded PostgreSQL."),
    ("DRAFTSMAN_CONFIG", "Path of the configuration file."),
    ("DRAFTSMAN_PAGER, PAGER", "Pager for long output."),
    ("NO_COLOR", "Disables colored output."),
)


def man_page() -> str:
    """Return the page as roff."""
    return "\n".join([*_lines(), ""])


def _lines() -> Iterator[str]:
    yield f'.TH DRAFTSMAN 1 "" "draftsman {__version__}" "User commands"'
    summary = str(main.cli.help)
    yield from (".SH NAME", f"draftsman \\- {_text(summary[:1].lower() + summary[1:-1])}")
    yield from (
        ".SH SYNOPSIS",
        ".B draftsman",
        "[\\fIoptions\\fR] [\\fIcommand\\fR] [\\fIargs\\fR]",
    )
    yield ".SH DESCRIPTION"
    yield "Without a command, draftsman opens the dashboard. The details of a command are in"
    yield from ('.BR "draftsman help" " \\fIcommand\\fR",', "the pages of the documentation in")
    yield '.BR "draftsman help \\-\\-page" " \\fIpage\\fR."'
    yield ".SH OPTIONS"
    for option in (*shared_options(hidden=False), *main.cli.params[-1:]):
        yield from _entry(", ".join(option.opts), str(getattr(option, "help", "")))
    commands = command_index.read()
    for section in SECTIONS:
        yield f'.SH "{section.upper()}"'
        for name, command in commands.items():
            if command.section == section:
                yield from _entry(f"draftsman {name}", command.summary)
    for name, (_, added) in main.channel_commands().items():  # the last section has them
        yield from _entry(f"draftsman {name}", added.summary)
    yield '.SH "EXIT STATUS"'
    for codes, meaning in EXIT_CODE.findall((DOCS / "commands.md").read_text("utf-8")):
        yield from _entry(codes, f"{meaning[:1].upper()}{meaning[1:]}.")
    yield ".SH ENVIRONMENT"
    for name, meaning in VARIABLES:
        yield from _entry(name, meaning)
    yield ".SH FILES"
    for path, meaning in FILES:
        yield from _entry(path, meaning)
    yield from (".SH EXAMPLES", ".nf")
    yield from map(_text, str(main.cli.epilog).splitlines()[2:])
    yield ".fi"


def _entry(term: str, meaning: str) -> tuple[str, str, str]:
    return ".TP", f".B {_text(term)}", _text(meaning)


def _text(text: str) -> str:
    """Escape what roff would read as a request or as a typographic hyphen."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
