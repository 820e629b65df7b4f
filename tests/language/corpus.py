"""All texts of the project for readers: docstrings and comments, messages, and pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).resolve().parents[2]
Kind = Literal["prose", "messages", "docs"]
KINDS: Final[dict[Kind, str]] = {
    "prose": "docstrings and comments",
    "messages": "errors, help, logs and chat",
    "docs": "README, docs/, CHANGELOG, changes/, CONTRIBUTING and the comments of config/",
}
PRODUCT: Final = ("core", "bots", "tui", "soak")
CODE: Final = (*PRODUCT, "bench", "tests", "migrations")
"""Folders of code. Messages are counted only in the product, since tests quote them."""
_PLACEHOLDER: Final = "CODE"
_NOT_PROSE: Final = re.compile(r"#\s*(?:noqa|type:|pragma|fmt:|!)")
_COMMENT_OR_STRING: Final = re.compile(
    r"""(?P<comment>\#[^\n]*)
    | \"{3} (?:[^\\]|\\.)*? \"{3} | '{3} (?:[^\\]|\\.)*? '{3}
    | \" (?:[^\\\n"]|\\.)* \" | ' (?:[^\\\n']|\\.)* '""",
    re.X | re.S,
)
"""The tokenize module takes ten times as long."""
_SPAN: Final = r"``.+?``|`[^`\n]+(?:\n(?!\s*\n)[^`\n]+)?`"
_MARKDOWN_CODE: Final = re.compile(
    r"^[ \t]*(?P<fence>```|~~~).*?^[ \t]*(?P=fence)[^\n]*$|<!--.*?-->|\]\([^)]*\)|https?://\S+|"
    + _SPAN,
    re.S | re.M,
)
_TRIPLE: Final = ('"""', "'''")
_PREFIX: Final = re.compile(r"[ ]*[A-Za-z]{0,2}")
_ENDS_STATEMENT: Final = re.compile(r"^$|[\w)\]}:]$")
"""The end of the code before a docstring; after any other, a string can be an argument."""
_BLOCKS: Final = ("body", "orelse", "handlers", "finalbody", "cases")
_PROSE_CODE: Final = re.compile(_SPAN, re.S)


@dataclass(frozen=True, slots=True)
class Text:
    path: Path
    line: int
    kind: Kind
    folder: str
    content: str


def read_texts(root: Path = ROOT) -> Iterator[Text]:
    """Yield every text of the project."""
    for folder in CODE:
        for path in sorted((root / folder).rglob("*.py")):
            messages = folder in PRODUCT
            yield from read_python(path, path.relative_to(root), messages=messages)
        for path in sorted((root / folder).rglob("*.sql")):
            yield from _comments(path, path.relative_to(root), "--")
    pages = [
        path
        for name in ("*.md", "changes/*.md", "docs/**/*.md")
        for path in sorted(root.glob(name))
    ]
    for path in pages:
        content = _blank(_MARKDOWN_CODE, path.read_text(encoding="utf-8"))
        for line, paragraph in _paragraphs(content):
            yield Text(path.relative_to(root), line, "docs", "docs", paragraph)
    for pattern in ("*.toml", "*.yaml"):
        for path in sorted((root / "config").glob(pattern)):
            yield from _comments(path, path.relative_to(root), "#", "docs")


def folder_of(path: Path) -> str:
    """Return the folder with a limit: the folder of a package, or a folder of tests/."""
    depth = 3 if path.parts[0] in PRODUCT else 2
    return "/".join(path.parts[:-1][:depth]) or path.parts[0]


def read_python(path: Path, name: Path, *, messages: bool) -> Iterator[Text]:
    """Yield the docstrings, comments and, on request, the messages of a module."""
    source = path.read_text(encoding="utf-8")
    folder = folder_of(name)
    tokens = list(_COMMENT_OR_STRING.finditer(source))
    docstrings = None if messages else _found_docstrings(source, tokens)
    literals: Iterable[tuple[int, str]] = ()
    if docstrings is None:
        tree = ast.parse(source)
        nodes = {id(node): node for node in _docstrings(tree)}
        docstrings = [(node.lineno, str(node.value)) for node in nodes.values()]
        literals = _literals(tree, nodes) if messages else ()
    for line, docstring in docstrings:
        yield Text(name, line, "prose", folder, _blank(_PROSE_CODE, docstring))
    for line, comment in _python_comments(source, tokens):
        yield Text(name, line, "prose", folder, _blank(_PROSE_CODE, comment))
    for line, literal in literals:
        if is_message(literal):
            yield Text(name, line, "messages", folder, _blank(_PROSE_CODE, literal))


def is_message(literal: str) -> bool:
    """Return whether a literal contains words with a space between them, unlike keys."""
    return bool(re.search(r"[A-Za-z,:…]\s+\"?[A-Za-z]", literal))


def _found_docstrings(source: str, tokens: Iterable[re.Match[str]]) -> list[tuple[int, str]] | None:
    """Return docstrings with their lines without parsing, or None if that is ambiguous."""
    found, line, at = [], 1, 0
    for token in tokens:
        line += source.count("\n", at, token.start())
        at = token.start()
        start = source.rfind("\n", 0, at) + 1
        if token["comment"] or not _PREFIX.fullmatch(source, start, at):
            continue
        before = source[:start].rstrip().rpartition("\n")[2]
        is_docstring = token[0].startswith(_TRIPLE) and not source[start:at].strip()
        if _ENDS_STATEMENT.search(before) and "#" not in before:
            if not is_docstring or "\\" in token[0]:
                return None
            found.append((line, token[0][3:-3]))
        elif is_docstring:
            return None
    return found


def _docstrings(parent: ast.AST) -> Iterator[ast.Constant]:
    """Yield docstrings and the strings below assignments."""
    for name in _BLOCKS:
        for statement in getattr(parent, name, ()):
            if not isinstance(statement, ast.Expr):
                yield from _docstrings(statement)
            elif isinstance(statement.value, ast.Constant) and isinstance(
                statement.value.value, str
            ):
                yield statement.value


def _literals(tree: ast.Module, docstrings: dict[int, ast.Constant]) -> Iterator[tuple[int, str]]:
    """Yield each literal with its line; values in an f-string become a placeholder."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(value) for value in node.values}
            values = [
                str(value.value) if isinstance(value, ast.Constant) else _PLACEHOLDER
                for value in node.values
            ]
            yield node.lineno, "".join(values)
        elif isinstance(node, ast.FormattedValue) and node.format_spec:
            parts.add(id(node.format_spec))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and id(node) not in parts
        ):
            yield node.lineno, node.value


def _python_comments(source: str, tokens: Iterable[re.Match[str]]) -> Iterator[tuple[int, str]]:
    """Yield blocks of comment lines as texts."""
    lines, at, number = [], 0, 1
    for match in tokens:
        if (comment := match["comment"]) and not _NOT_PROSE.match(comment):
            number += source.count("\n", at, match.start())
            at = match.start()
            lines.append((number, comment.lstrip("#").strip()))
    yield from _blocks(lines)


def _comments(path: Path, name: Path, mark: str, kind: Kind = "prose") -> Iterator[Text]:
    """Yield the comments of a file in which each comment line starts with a mark."""
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        before, separator, comment = line.partition(mark)
        if separator and before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
            lines.append((number, comment.lstrip(mark).strip()))
    folder = "docs" if kind == "docs" else folder_of(name)
    for number, block in _blocks(lines):
        yield Text(name, number, kind, folder, _blank(_PROSE_CODE, block))


def _blocks(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    start, block = 0, list[str]()
    for number, comment in lines:
        if block and number != start + len(block):
            yield start, "\n".join(block)
            block = []
        if not block:
            start = number
        block.append(comment)
    if block:
        yield start, "\n".join(block)


def _paragraphs(content: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph, list item or table row with its first line."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(content.splitlines(), 1):
        starts = line.lstrip().startswith(("|", "-", "*", "#"))
        if lines and (starts or not line.strip()):
            yield lines[0][0], "\n".join(text for _, text in lines)
            lines = []
        if line.strip():
            lines.append((number, line))
    if lines:
        yield lines[0][0], "\n".join(text for _, text in lines)


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Replace code by a placeholder without changing the line numbers."""
    return pattern.sub(lambda match: _PLACEHOLDER + "\n" * match.group().count("\n"), text)
