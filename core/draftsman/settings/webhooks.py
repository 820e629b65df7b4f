"""Receivers of webhooks."""

from __future__ import annotations

from typing import Literal

from draftsman.settings.addresses import WebAddress
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section


class WebhookSettings(Section):
    """A receiver of signed webhooks, for notifications and `webhook_dispatch`."""

    url: WebAddress
    secret: SecretSettings
    """`whsec_…` or base64; one secret per line during a rotation."""
    on: tuple[Literal["completed", "failed", "dead_letter", "canceled", "expired"], ...] = ()
    """Outcomes of any job for which it is notified."""
