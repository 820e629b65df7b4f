"""Diffs that would hide what they do, and what any front end has to show of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEADER: Final = """diff --git a/pay.py b/pay.py
index 1a2b..3c4d 100644
--- a/pay.py
+++ b/pay.py
"""
UNSEEN: Final = (
    *(0x08, 0x0B, 0x0C, 0x1B, 0x7F, 0x85, 0xA0, 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x180E),
    *(0x2003, 0x200B, 0x200D, 0x200F, 0x2028, 0x202E, 0x2060, 0x2065, 0x2066, 0x2800, 0x3000),
    *(0x3164, 0xE000, 0xFE0F, 0xFEFF, 0xFFA0, 0xE0041, 0xE0101, 0x1D173),
)
"""Characters that nobody sees, or that move the text around them."""


@dataclass(frozen=True, slots=True)
class HostileDiff:
    """A diff, and a regular expression of what has to be shown of it."""

    patch: str
    shown: str


def line(text: str, shown: str) -> HostileDiff:
    """Return a diff with an added line."""
    return HostileDiff(f"{HEADER}@@ -0,0 +1 @@\n+{text}\n", shown)


def header(*lines: str, shown: str, body: str = "") -> HostileDiff:
    """Return a diff with these lines before its hunks."""
    return HostileDiff("\n".join(["diff --git a/pay.py b/pay.py", *lines, body]), shown)


def hunk(content: str, source: str = "a/pay.py", target: str = "b/pay.py") -> str:
    """Return the names and an added line."""
    return f"--- {source}\n+++ {target}\n@@ -0,0 +1 @@\n+{content}\n"


FILES: Final = "".join(
    f"diff --git a/{nth}.py b/{nth}.py\n" + hunk("x = 1", f"a/{nth}.py", f"b/{nth}.py")
    for nth in range(60)
)
NEW: Final = "/dev/null"
DIFFS: Final[dict[str, HostileDiff]] = {
    **{f"U+{code:04X}": line(f"pay{chr(code)}()", rf"pay\\u\{{{code:x}\}}\(\)") for code in UNSEEN},
    "a lone surrogate": line("pay\udc80()", r"pay\\u\{dc80\}\(\)|pay\ufffd\(\)"),
    "a carriage return": line("steal()\rpay()", r"steal\(\)\\u\{d\}pay\(\)"),
    "many of a kind": line("pay" + "\u200b" * 1000 + "steal()", r"pay\\u\{200b\}\{1000\}steal\(\)"),
    "tags": line("pay\U000e0065\U000e0076", r"pay\\u\{e0065\}\\u\{e0076\}"),
    "marks in a pile": line("p" + "\u0334" * 40 + "ay()", r"\\u\{334\}"),
    "code behind blanks": line("pay()" + " " * 1100 + "steal()", r"\[1,100 blanks\]steal\(\)"),
    "code behind tabs": line("pay()" + "\t" * 90 + "steal()", r"\[90 blanks\]steal\(\)"),
    "only blanks before code": line(" " * 400 + "steal()", r"\[400 blanks\]steal\(\)"),
    "blanks of both kinds": line("pay()" + " \t" * 99 + "steal()", r"\[198 blanks\]steal\(\)"),
    "code behind text": line("# " + "text " * 900 + "steal()", r"more characters|steal\(\)"),
    "a new executable": header("new file mode 100755", body=hunk("x", NEW), shown="100755"),
    "a new link": header("new file mode 120000", body=hunk("/etc", NEW), shown="120000"),
    "a new submodule": header("new file mode 160000", body=hunk("x", NEW), shown="160000"),
    "an unknown mode": header("new file mode 104755", body=hunk("x", NEW), shown="104755"),
    "made executable": header("old mode 100644", "new mode 100755", shown="100755"),
    "no longer executable": header("old mode 100755", "new mode 100644", shown="100755"),
    "turned into a link": header("old mode 100644", "new mode 120000", shown="120000"),
    "a link deleted": header(
        "deleted file mode 120000", body=hunk("x", target=NEW), shown="120000"
    ),
    "another target": header("index 1a2b..3c4d 120000", body=hunk("/etc"), shown="120000"),
    "another submodule": header("index 1a2b..3c4d 160000", body=hunk("x"), shown="160000"),
    "renamed": header("rename from safe.py", "rename to pay.py", shown="safe.py"),
    "copied": header("copy from safe.py", "copy to pay.py", shown="safe.py"),
    "renamed without a word": header(body=hunk("x", source="a/safe.py"), shown="safe.py"),
    "binary": header("Binary files a/pay.py and b/pay.py differ", shown="[Bb]inary"),
    "binary content": header("GIT binary patch", "literal 4", "Lc${NkU|", shown="[Bb]inary|binary"),
    "text in a header": header("new file mode 100644 steal()", shown=r"steal\(\)"),
    "text before the diff": HostileDiff(f"steal()\n{HEADER}{hunk('x')}", r"steal\(\)"),
    "text behind a hunk": HostileDiff(f"{HEADER}@@ -0,0 +1 @@\n+x\nsteal()\n", r"steal\(\)"),
    "text in the line of a hunk": HostileDiff(
        f"{HEADER}@@ -0,0 +1 @@ steal()\n+x\n", r"@@ steal\(\)"
    ),
    "text in the note of a line": HostileDiff(
        f"{HEADER}@@ -0,0 +1,2 @@\n+x\n\\ steal()\n+y\n", r"\\ steal\(\)"
    ),
    "an invisible path": HostileDiff(
        "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -0,0 +1 @@\n+x\n".format("p\u200bay.py"),
        r"p\\u\{200b\}ay\.py",
    ),
    "many lines": HostileDiff(
        f"{HEADER}@@ -0,0 +1,5000 @@\n" + "+x\n" * 4999 + "+steal()\n", r"more lines|steal\(\)"
    ),
    "many files": HostileDiff(
        f"{FILES}diff --git a/run b/run\nnew file mode 100755\n{hunk('x', NEW, 'b/run')}", "100755"
    ),
}
