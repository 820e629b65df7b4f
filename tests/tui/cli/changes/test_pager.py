"""Long output on a terminal is shown in a pager."""

from __future__ import annotations

from collections.abc import Callable

from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli, Terminal, process

LINES = "".join(f"+line {n}\n" for n in range(60))
HEAD = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,60 @@\n"
LONG = HEAD + LINES
SHORT = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
MARKS = {"DRAFTSMAN_PAGER": "sed 's/^/page:/'", "PAGER": "false"}


async def test_output_longer_than_the_screen_is_shown_in_the_pager(
    rt: Runtime, make: Factory, cli: Cli, terminal: Callable[..., Terminal]
) -> None:
    work = await make.running()
    short = await make.running()
    await rt.changes.store(work.lease, LONG.encode())
    await rt.changes.store(short.lease, SHORT.encode())
    await rt.checkpoints.log(work.lease, 1, "printed\n" * 60)
    shown = terminal("diff", work.name, **MARKS)
    assert shown.end() == 0
    assert "page:+line 0\n" in shown.plain
    assert "page:+line 59\n" in shown.plain
    logs = terminal("logs", work.name, **MARKS)
    assert logs.end() == 0
    assert logs.plain.count("page:printed\n") == 60
    for arguments, env in (
        (("diff", short.name), MARKS),
        (("diff", work.name, "--no-pager"), MARKS),
        (("--no-pager", "diff", work.name), MARKS),
        (("diff", work.name), MARKS | {"DRAFTSMAN_PAGER": "cat"}),
    ):
        shown = terminal(*arguments, **env)
        assert shown.end() == 0
        assert "page:" not in shown.plain, arguments
        assert "\n+" in shown.plain
    ended = terminal("diff", work.name, DRAFTSMAN_PAGER="head -n 1")
    assert ended.end() == 0, "the reader ended the pager"
    piped = process("--config", cli.config, "diff", work.name, DRAFTSMAN_PAGER="false")
    assert piped.stdout == LONG
