"""The version of the installed package."""

from __future__ import annotations


def installed() -> str:
    """Return the version; 0.0.0 for a checkout that was never installed."""
    # imported late: it imports the email parser
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("draftsman")
    except PackageNotFoundError:
        return "0.0.0"
