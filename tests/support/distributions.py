"""Small distributions with entry points, as pip installs them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from draftsman import plugins
from draftsman.channels import registry
from draftsman.settings import channel_tables

CHANNEL = """
from draftsman.channels.plugin import ChannelPlugin

CHANNEL = ChannelPlugin(name={name!r}, label={label!r}{more})
"""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A package with a module and the entry points of a group, `name = module:attribute`."""

    name: str
    version: str
    entries: Mapping[str, str]
    modules: Mapping[str, str] = field(default_factory=dict)
    group: str = plugins.CHANNELS

    def write(self, folder: Path) -> None:
        """Write its modules and its metadata."""
        for module, source in self.modules.items():
            file = folder / f"{module.replace('.', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(source, encoding="utf-8")
        info = folder / f"{self.name.replace('-', '_')}-{self.version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        entries = "".join(f"{name} = {target}\n" for name, target in self.entries.items())
        (info / "entry_points.txt").write_text(f"[{self.group}]\n{entries}", encoding="utf-8")


def channel_source(name: str, label: str = "", **fields: object) -> str:
    """Return a module with the channel `CHANNEL`."""
    more = "".join(f", {key}={value!r}" for key, value in fields.items())
    return CHANNEL.format(name=name, label=label or name.title(), more=more)


@contextmanager
def installed(folder: Path, *distributions: Distribution) -> Iterator[None]:
    """Put distributions on the path of this process."""
    folder.mkdir(parents=True, exist_ok=True)
    for distribution in distributions:
        distribution.write(folder)
    sys.path.insert(0, str(folder))
    forget()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for distribution in distributions:
            tops = {module.partition(".")[0] for module in distribution.modules}
            for module in [name for name in sys.modules if name.partition(".")[0] in tops]:
                del sys.modules[module]
        forget()


def forget() -> None:
    """Let the next use find what is installed."""
    plugins._installed.cache_clear()
    registry.channel.cache_clear()
    channel_tables.with_channels.cache_clear()
