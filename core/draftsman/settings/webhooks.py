"""Receivers of webhooks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from draftsman.settings.addresses import WebAddress
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section


class WebhookSettings(Section):
    """Receivers of signed HTTP requests (Standard Webhooks; docs/delivery.md).

    `--notify webhook:NAME` sends the messages of a job, webhook_dispatch an event.
    """

    url: WebAddress = Field(examples=["https://ops.example.org/draftsman"])
    """URL of the receiver; an IP address or localhost is allowed. Redirects are not followed."""
    secret: SecretSettings = Field(examples=[{"env": "OPS_WEBHOOK_SECRET"}])
    """The secret, read for each message: whsec_... or base64 of 16 bytes or more (openssl rand
    -base64 32); two lines sign with both, for rotation."""
    on: tuple[Literal["completed", "failed", "dead_letter", "canceled", "expired"], ...] = Field(
        (), examples=[["failed", "dead_letter"]]
    )
    """Final states of any job to report: completed, failed, dead_letter, canceled, expired."""
