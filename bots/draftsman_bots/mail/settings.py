"""The table `[mail]`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from draftsman.field_errors import matching
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import ChannelSection, Section, Several
from draftsman_bots.mail.plugin import ADDRESS, ADDRESS_FORM

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
TLS_PORTS: Final = (465, 993)
MAX_LOCAL: Final = 21
"""Characters before the @ of the own address: a reply address has up to 43 more, of 64."""
EXAMPLE: Final[dict[str, Any]] = {
    "host": "mail.example.org",
    "user": "draftsman@example.org",
    "password": {"env": "DRAFTSMAN_MAIL_PASSWORD"},
}
Address = Annotated[str, AfterValidator(str.lower), matching(ADDRESS.pattern, ADDRESS_FORM)]


class MailServer(Section):
    """An account on a mail server.

    On the ports 465 and 993 the connection begins with TLS, on others STARTTLS is required, except
    on this machine. The certificate is checked.
    """

    host: str = Field(min_length=1, examples=[EXAMPLE["host"]])
    """Host name, as in its certificate."""
    port: int = Field(ge=1, le=65_535, examples=[993])
    """Port: 465 or 587 sends, 993 or 143 reads."""
    user: str | None = Field(None, examples=[EXAMPLE["user"]])
    """Name of the account. Unset: no sign-in."""
    password: SecretSettings | None = Field(None, examples=[EXAMPLE["password"]])
    """Password of the account. Unset: no sign-in."""

    @property
    def has_tls(self) -> bool:
        """Whether a connection begins with TLS."""
        return self.port in TLS_PORTS

    @property
    def has_starttls(self) -> bool:
        """Whether a connection must change to TLS."""
        return not self.has_tls and self.host not in LOOPBACK


class MailSettings(ChannelSection):
    """E-mail (docs/mail.md). Without this table it is disabled; only bots need the secrets."""

    table = "mail"

    address: Address = Field(examples=["draftsman@example.org"])
    """Address of draftsman; its server delivers draftsman+ANYTHING@example.org there, too."""
    smtp: MailServer = Field(examples=[EXAMPLE | {"port": 465}])
    """The server that sends."""
    imap: MailServer | None = Field(None, examples=[EXAMPLE | {"port": 993}])
    """The server with the mailbox, which nothing else reads. Unset: replies are not read."""
    poll: float = Field(20.0, ge=1, le=3600)
    """Seconds between two looks at the mailbox."""
    reply_key: SecretSettings = Field(examples=[{"env": "DRAFTSMAN_MAIL_KEY"}])
    """Secret of at least 32 characters that signs reply addresses; a new one makes them invalid."""
    reply_days: int = Field(30, ge=1, le=366)
    """Days for which a reply address counts."""
    authserv_id: str = Field("", examples=["mx.example.org"])
    """Name of the receiving server in its header fields Authentication-Results. It must remove
    fields with this name from mail that arrives. Empty: replies have no effect."""
    authserv_fields: int = Field(1, ge=1, le=5)
    """Fields Authentication-Results that this server adds to each mail."""
    templates: dict[Address, str] = Field({}, examples=[{"draftsman+bug@example.org": "bug"}])
    """Template of each address whose mail starts a job, which gets the parameters subject, text
    and sender, if it has them."""

    @model_validator(mode="after")
    def _check_address(self) -> Self:
        local = self.address.partition("@")[0]
        if len(local) > MAX_LOCAL or "+" in local:
            raise ValueError(f"address: at most {MAX_LOCAL} characters before the @, without a +")
        return self


class MailAccount(Section):
    """The accounts of a person."""

    mail: Several[Address] = Field((), examples=[["anna@example.org", "anna@work.example"]])
    """E-mail addresses, of which the first gets the messages. Empty: not by mail."""
