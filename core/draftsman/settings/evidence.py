"""Signed evidence of published work."""

from __future__ import annotations

from draftsman.settings.section import Section, UserPath


class EvidenceSettings(Section):
    """Signing and verification of evidence."""

    key: UserPath | None = None
    """File of the worker's private key; None: `keys/evidence.key` in the data directory."""
    trusted_keys: tuple[UserPath, ...] = ()
    """Public keys of other workers, as files, for `draftsman verify`."""
