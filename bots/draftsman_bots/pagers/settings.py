"""The tables `[pagers.NAME]`, and the accounts of people in pagers."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from draftsman.field_errors import matching
from draftsman.settings.addresses import Listen, WebAddress, address_of
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import NamedSection, Section

PAGER_URL: Final = "https://events.pagerduty.com/v2/enqueue"
"""URL of PagerDuty's Events API v2, the default of a pager with this format."""
_PagerUser = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]+:[^\s:]{1,254}",
        "must be the name of a pager and a user id or an e-mail address, such as ops:PLH1HKV",
    ),
    AfterValidator(str.lower),
]
_PagerUsers = Annotated[
    tuple[_PagerUser, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value or ()),
    AfterValidator(lambda value: tuple(dict.fromkeys(value))),
]


class PagerSettings(NamedSection):
    """Pagers for critical questions, for steps with `pager:NAME`."""

    table = "pagers"
    example = "ops"

    format: Literal["pagerduty", "grafana_oncall"] = Field(examples=["pagerduty"])
    """pagerduty: Events API v2. grafana_oncall: formatted webhook."""
    secret: SecretSettings = Field(examples=[{"env": "PAGERDUTY_ROUTING_KEY"}])
    """Routing key of PagerDuty, or the URL of the integration of Grafana OnCall."""
    url: WebAddress = PAGER_URL
    """URL of PagerDuty's events, in another region or of a proxy."""
    listen: Listen | None = Field(None, examples=["127.0.0.1:3002"])
    """host:port of the HTTP server of its webhook (draftsman bots): POST /pagers/NAME. Unset:
    acknowledgments there do not count."""
    health_listen: Listen | None = Field(None, examples=["127.0.0.1:9402"])
    """host:port of its own for /healthz, /readyz and /metrics; listen has only /healthz. Unset:
    none."""
    webhook_secret: SecretSettings | None = Field(
        None, examples=[{"env": "PAGERDUTY_WEBHOOK_SECRET"}]
    )
    """Signing secret of PagerDuty's webhook, or the authorization header of Grafana OnCall's.
    Unset: acknowledgments there do not count."""

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of the HTTP server of its webhook, or None."""
        return address_of(self.listen)

    @property
    def health_address(self) -> tuple[str, int] | None:
        """Host and port of the health endpoints, or None."""
        return address_of(self.health_listen)

    @model_validator(mode="after")
    def _check_webhook(self) -> Self:
        if self.health_listen is not None and self.listen is None:
            raise ValueError("health_listen needs listen, the server of the webhook")
        if (self.listen is None) != (self.webhook_secret is None):
            raise ValueError("the webhook needs both listen and webhook_secret")
        return self


def webhook_pagers(settings: object) -> dict[str, PagerSettings]:
    """Return the pagers whose webhooks are received."""
    pagers = PagerSettings.of(settings).items()
    return {name: pager for name, pager in pagers if pager.listen is not None}


class PagerAccount(Section):
    """The accounts of a person."""

    pager: _PagerUsers = Field((), examples=[["ops:PLH1HKV"]])
    """Tables of pagers, each with a user id or e-mail address there; without one, acknowledgments
    there do not count."""
