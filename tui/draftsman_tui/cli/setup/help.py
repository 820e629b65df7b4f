"""The `help` command: the help of other commands, and the pages of the documentation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from draftsman_tui.cli import pages
from draftsman_tui.cli.app import App, command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMENT: Final = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_PICTURE: Final = re.compile(r"!\[([^]]*)\]\([^)]+\)")
_LINK: Final = re.compile(r"(\| )?\[([^]]+)\]\(([\w-]+)\.md(#[\w-]+)?\)(?(1)( \|))")
"""A link to another page; a whole cell of a table is only the name of the page."""


def _pages(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in pages.names() if name.startswith(incomplete)]


def _topics(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    root = ctx.find_root()
    return [] if ctx.params.get("topic") else root.command.shell_complete(root, incomplete)


@command(
    "help",
    section="Setup",
    examples=(
        "draftsman help submit",
        "draftsman help queues pause",
        "draftsman help --page",
        "draftsman help --page limits#rates",
    ),
)
@click.option(
    "--page",
    metavar="[PAGE]",
    is_flag=False,
    flag_value=pages.INDEX,
    shell_complete=_pages,
    help="Show a page of the documentation, or a section of it; default: the index by task.",
)
@click.argument("topic", nargs=-1, shell_complete=_topics)
@click.pass_context
def help_command(ctx: click.Context, app: App, page: str | None, topic: tuple[str, ...]) -> None:
    """Show the help of a command and name its page, or show a page.

    TOPIC is a command, else the name of a page. On a terminal a page is rendered and shown in the
    pager; elsewhere it is printed as Markdown.
    """
    root = ctx.find_root()
    if page is None and topic and not _is_command(root, topic[0]) and topic[0] in pages.names():
        page = topic[0]
    if page is not None:
        _show(app, page)
        return
    with click.core.augment_usage_errors(root):  # else one names the help of `help`
        root.command.main([*topic, "--help"], "draftsman", obj=app, standalone_mode=False)
    if topic and (name := pages.page_of(topic)):
        app.out.print(f"\nPage: draftsman help --page {name}")


def _is_command(root: click.Context, name: str) -> bool:
    group = root.command
    return isinstance(group, click.Group) and group.get_command(root, name) is not None


def _show(app: App, page: str) -> None:
    """Print a page: rendered on a terminal, else as it is."""
    text = pages.read(page)
    if app.json:
        app.out.document({"page": page, "text": text})
    elif not app.out.on_screen:
        app.out.write(text)
    else:
        from rich.markdown import Markdown

        text = _PICTURE.sub(r"(picture: \1)", _COMMENT.sub("", text))
        with app.out.paged():
            app.out.print(Markdown(_LINK.sub(_link, text), hyperlinks=False))


def _link(found: re.Match[str]) -> str:
    cell, words, name, section, end = found.groups(default="")
    page = f"{name}{section}"
    return f"{cell}{page}{end}" if cell else f"{words} ({page})"
