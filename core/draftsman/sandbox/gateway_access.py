"""An agent's access to the gateway: a port inside its sandbox, or of this host."""

from __future__ import annotations

from typing import Final, Literal, Self

from draftsman.sandbox.sandbox_port import SandboxPort

Provider = Literal["anthropic", "openai", "google"]
PREFIX: Final = "/v1"

SANDBOX_PORT: Final = 8787
"""Port of the gateway in a sandbox with a network of its own; the same for every run and host."""


MCP_PATH: Final = "/mcp"
"""Path of the MCP server of a run."""
MCP_URL: Final = "DRAFTSMAN_MCP_URL"
MCP_TOKEN: Final = "DRAFTSMAN_MCP_TOKEN"  # noqa: S105 - the name of a variable


class GatewayAccess:
    """The gateway of a run: its port and its token. It is a context manager that closes the port.

    On a port of the host, only the token of the run protects it.
    """

    def __init__(self, provider: Provider, token: str, *, private_network: bool) -> None:
        self._provider = provider
        self._token = token
        self.port = SandboxPort("gateway", SANDBOX_PORT if private_network else None)

    def environment(self) -> dict[str, str]:
        """Return the variables of the MCP server, and those that the provider's clients read."""
        url = self.port.url
        mcp = {MCP_URL: f"{url}{MCP_PATH}", MCP_TOKEN: self._token}
        return mcp | self._model_environment(url)

    def _model_environment(self, url: str) -> dict[str, str]:
        if self._provider == "anthropic":
            return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": self._token}
        if self._provider == "google":
            return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": self._token}
        return {"OPENAI_BASE_URL": f"{url}{PREFIX}", "OPENAI_API_KEY": self._token}

    def replace(self, text: str) -> str:
        """Return the text with `{gateway_url}` and `{gateway_token}` replaced."""
        return text.replace("{gateway_url}", self.port.url).replace("{gateway_token}", self._token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.port.close()
