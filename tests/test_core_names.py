"""The core and the migrations name no channel, no kind of forge and no coding agent.

The names are those of the installed plugins: what belongs to one of them is in its package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from draftsman import plugins
from draftsman.channels.registry import channels

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("core/draftsman", "migrations")
KINDS: Final = (".py", ".sql", ".json", ".toml", ".md", ".html")
WORDS: Final = {
    "acp": "a protocol",
    "e-mail": "people have addresses",
    "forge": "a service with repositories, whose pull requests are of the core",
    "forges": "the same",
    "mail": "an address",
    "plain": "text without markup",
    "tidy": "the agent that each installation has, for the demo",
    "web": "pages and addresses",
}
"""Names that are words as well: of them only a literal counts, such as `'web'`."""
GENERAL: Final = {"forge", "forges", "tidy"}
"""Those whose literals are of the core as well: keys, tables and the agent by default."""
DATA: Final = {
    "core/draftsman/agents/acp.py": "differences between the programs of a protocol",
    "core/draftsman/settings/": "examples and explanations of the configuration",
    "core/draftsman/formats/secret_formats.py": "formats of tokens",
    "core/draftsman/agent_runs/policies/file_classes.py": "files of services and agents",
    "core/draftsman/agent_runs/policies/code_owners.py": "a format and its folder",
    "core/draftsman/agent_runs/clones/lfs_filter.py": "the address of a format",
    "core/draftsman/agent_runs/evidence/statement.py": "the address of a format",
    "core/draftsman/repos/repo_url.py": "examples of URLs",
    "core/draftsman/sandbox/gateway/allowed_requests.py": "versions of an API",
    "core/draftsman/sandbox/gateway/api_formats.py": "the name of an API",
    "core/draftsman/sandbox/gateway_access.py": "variables of an API",
    "core/draftsman/tracing/gen_ai.py": "the name of an API",
}
"""Files and folders in which names are data."""


def _names() -> set[str]:
    groups = (plugins.CHANNELS, plugins.FORGES, plugins.AGENTS)
    names = {plugin.name for group in groups for plugin in plugins.installed(group)}
    return (names | {channel.label.lower() for channel in channels()}) - GENERAL


def _files() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in KINDS:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def _found(names: set[str], text: str) -> set[str]:
    """Return the names in a text, in any case; of words, those that are a literal."""
    return {
        name
        for name in names
        if re.search(f"[\"']{name}[\"']" if name in WORDS else re.escape(name), text, re.IGNORECASE)
    }


def test_the_core_and_the_migrations_name_no_plugin() -> None:
    names = _names()
    named = {
        path: found
        for path, text in _files()
        if not path.startswith(tuple(DATA)) and (found := _found(names, text))
    }
    assert named == {}


def test_each_exception_is_needed() -> None:
    names = _names()
    texts = dict(_files())
    unneeded = [
        place
        for place in DATA
        if not any(_found(names, text) for path, text in texts.items() if path.startswith(place))
    ]
    assert unneeded == []
    assert set(WORDS) <= _names() | GENERAL
