"""The entry point of `draftsman`: it holds the shutdown signals before anything slow is loaded."""

from __future__ import annotations

from draftsman import early_signals


def main() -> None:
    """Run the command line of this process, and exit."""
    early_signals.hold()
    from draftsman_tui.cli.main import main

    main()


if __name__ == "__main__":
    main()
