"""Entry point of `draftsman`: holds shutdown signals before slow imports."""

from __future__ import annotations

from draftsman import early_signals


def main() -> None:
    """Run the command line and exit."""
    early_signals.hold()
    from draftsman_tui.cli.main import main

    main()


if __name__ == "__main__":
    main()
