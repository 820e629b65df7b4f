"""Signed evidence of published work."""

from __future__ import annotations

from pydantic import Field

from draftsman.settings.section import Section, UserPath


class EvidenceSettings(Section):
    """Evidence of published work (docs/evidence.md).

    It is a signed statement for each job with a profile.
    """

    key: UserPath | None = Field(None, examples=["/etc/draftsman/evidence.key"])
    """File of the worker's private Ed25519 key, in PEM form, which only its owner may read. Unset:
    made at its first use in the data directory, as keys/evidence.key."""
    trusted_keys: tuple[UserPath, ...] = ()
    """Public keys of other workers, as files, that `draftsman verify` trusts besides its own."""
