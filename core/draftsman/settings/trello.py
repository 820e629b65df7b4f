"""The Trello account."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from draftsman.settings.addresses import Listen, address_of, web_address
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section


class TrelloSettings(Section):
    """The bot's Trello account; without this table Trello is off."""

    key: SecretSettings
    """API key."""
    token: SecretSettings
    """Token of the bot's account, which must not be the account of a person."""
    secret: SecretSettings | None = None
    """Secret of the app, for the signatures of webhooks."""
    poll: float = Field(15.0, ge=1, le=3600)
    """Seconds between polls of a board; each takes two requests, of 100 per ten seconds."""
    label: str = Field("draftsman", min_length=1, max_length=256)
    """Name of the labels that create jobs, for added boards."""
    queued_label: str = Field("draftsman: queued", min_length=1, max_length=256)
    """Name of the label that replaces them when the job is created."""
    callback_url: str | None = None
    """Public URL for webhooks; default: boards are only polled."""
    listen: Listen | None = None
    """`host:port` of the HTTP server: webhooks and health checks."""
    health_listen: Listen | None = None
    """`host:port` of `/healthz`, `/readyz` and `/metrics`; `listen` then has only `/healthz`."""
    api_url: str = "https://api.trello.com"
    """Base URL of the API."""

    @field_validator("api_url")
    @classmethod
    def _check_api_url(cls, value: str) -> str:
        return web_address(value).rstrip("/")

    @field_validator("callback_url")
    @classmethod
    def _check_callback_url(cls, value: str | None) -> str | None:
        return None if value is None else web_address(value)

    @model_validator(mode="after")
    def _check_webhooks(self) -> Self:
        for name in ("secret", "listen") if self.callback_url is not None else ():
            if getattr(self, name) is None:
                raise ValueError(f"callback_url needs {name}; remove callback_url to poll boards")
        if self.label.casefold() == self.queued_label.casefold():
            raise ValueError("label and queued_label must differ, because the second replaces it")
        return self

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of the HTTP server, or None."""
        return address_of(self.listen)

    @property
    def health_address(self) -> tuple[str, int] | None:
        """Host and port of the health server, or None."""
        return address_of(self.health_listen)
