"""The addresses of the project in the metadata of the package, from a single setting."""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectUrls(MetadataHookInterface):
    """Sets the URLs from `address` of `[tool.hatch.metadata.hooks.custom]`, if it is not empty."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the URLs."""
        if address := str(self.config["address"]).rstrip("/"):
            metadata["urls"] = {
                "Homepage": address,
                "Documentation": f"{address}/blob/main/docs/README.md",
                "Changelog": f"{address}/blob/main/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
