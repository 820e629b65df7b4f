"""The Trello account."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, field_validator, model_validator

from draftsman.settings.addresses import Listen, address_of, web_address
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import ChannelSection, Section


class BoardMembers(StrEnum):
    """Who may start jobs with labels."""

    PEOPLE = "people"
    """People of the directory who may submit."""
    MAY_SUBMIT = "may_submit"
    """Every member of a watched board."""


class TrelloSettings(ChannelSection):
    """The Trello account of draftsman (docs/trello.md). Without this table Trello is disabled."""

    table = "trello"

    key: SecretSettings = Field(examples=[{"env": "TRELLO_KEY"}])
    """The API key."""
    token: SecretSettings = Field(examples=[{"env": "TRELLO_TOKEN"}])
    """The token of the bot's own account, which must not belong to a person who answers
    questions."""
    secret: SecretSettings | None = Field(None, examples=[{"env": "TRELLO_SECRET"}])
    """The app's secret, with which Trello signs webhooks. Unset: boards are only polled."""
    poll: float = Field(15.0, ge=1, le=3600)
    """Seconds between polls of a board; a poll takes two of 100 requests in ten seconds."""
    label: str = Field("draftsman", min_length=1, max_length=256)
    """Name of the labels that submit jobs; `draftsman boards add` finds them, and stores their
    ids."""
    queued_label: str = Field("draftsman: queued", min_length=1, max_length=256)
    """Name of the label that replaces them when the job exists."""
    members: BoardMembers = BoardMembers.PEOPLE
    """Who may start a job with a label, and cancel it with the card: people, who may submit jobs,
    or may_submit: every member of a watched board. Only webhooks say who added a label."""
    callback_url: str | None = Field(None, examples=["https://draftsman.example.org/trello"])
    """URL of webhooks, exactly as Trello calls it. Unset: boards are only polled."""
    listen: Listen | None = Field(None, examples=["127.0.0.1:3001"])
    """host:port for webhooks, /healthz, /readyz and /metrics. Unset: none."""
    health_listen: Listen | None = Field(None, examples=["127.0.0.1:9401"])
    """Separate host:port for /readyz and /metrics; listen then serves only /healthz. Unset: listen
    serves all."""
    api_url: str = "https://api.trello.com"
    """URL of Trello's API."""

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
    def is_open(self) -> bool:
        """Whether every member of a watched board may start jobs."""
        return self.members is BoardMembers.MAY_SUBMIT

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of the HTTP server, or None."""
        return address_of(self.listen)

    @property
    def health_address(self) -> tuple[str, int] | None:
        """Host and port of the health server, or None."""
        return address_of(self.health_listen)


class TrelloAccount(Section):
    """The account of a person."""

    trello: str | None = Field(None, examples=["5f1e0c9a8b7d6e5f4a3b2c1d"])
    """Trello member id. Unset: not in Trello."""
