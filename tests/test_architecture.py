"""Rules for every file: imports and places of SQL."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("core", "tui", "bots", "soak")
HEAVY = {"textual", "slack_bolt", "slack_sdk", "trello", "psycopg", "psycopg_pool"}
"""Packages that `--help` and similar commands must not import."""
SQL = re.compile(
    r"""^\s*(?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|CREATE|ALTER|DROP|TRUNCATE|GRANT|REVOKE|LISTEN
        |UNLISTEN|NOTIFY|SET|RESET|SHOW|COPY|CALL|LOCK|VACUUM|ANALYZE|EXPLAIN|BEGIN|COMMIT|ROLLBACK)
        (?:\s+["\w*(]|\s*;|$)
    | (?i:\bselect\s.+\sfrom\s+[\w"]+\.[\w"]+ | \bselect\s+[\w.]+\( | \binsert\s+into\s+\w
        | \bdelete\s+from\s+\w+\.\w | \bupdate\s+[\w.]+\s+set\s+\w+\s*=)""",
    re.VERBOSE | re.DOTALL,
)
MAYBE_SQL = re.compile(
    r"""["'}\s] (?:\\n|\s)* (?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|CREATE|ALTER|DROP|TRUNCATE
        |GRANT|REVOKE|LISTEN|UNLISTEN|NOTIFY|SET|RESET|SHOW|COPY|CALL|LOCK|VACUUM|ANALYZE|EXPLAIN|BEGIN
        |COMMIT|ROLLBACK)\b
    | (?i:\b(?:select|insert|delete|update)\b)""",
    re.VERBOSE,
)
"""Every module with a text that is SQL, and some others; parsing all takes a second."""
USUAL_START = re.compile(r'"""(?:[^"\\]|"(?!""))*"""\s*\nfrom __future__ import annotations\n')
REGISTRY = re.compile(
    r"""registry\s*[=:]\s*["']?https?://|"resolved":\s*"https?://|https?://\S*/simple(?:[/\s"']|$)
    | (?<![\w-])--(?:extra-)?index-u[r]l|(?<![\w-])--find-l[i]nks
    | py[p]i\.org|pythonh[o]sted|npm[j]s\.|deb[i]an\.org""",
    re.VERBOSE,
)
REGISTRY_HINTS = (
    b"registry",
    b"resolved",
    b"/simple",
    b"index-u",
    b"find-l",
    b"hosted",
    b"npm",
    b".org",
)
"""A file that names a registry contains one of these."""


@cache
def _ours() -> tuple[Path, ...]:
    """Return tracked and new files: those that git neither ignores nor lacks."""
    # the checkout may belong to another user than the tests
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    options = ["--cached", "--others", "--exclude-standard"]
    done = subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = (ROOT / name for name in done.stdout.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def _modules(*folders: str) -> list[Path]:
    """Return our Python modules in these top-level folders."""
    ours = (path for path in _ours() if path.suffix == ".py")
    return [path for path in ours if path.relative_to(ROOT).parts[0] in folders]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _python(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string literal, also parts of f-strings, except docstrings."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in documentation:
                yield node.lineno, text


def _in_order(source: str) -> bool:
    """Whether a docstring is first, followed by the future import if there is code."""
    if USUAL_START.match(source):
        return True
    tree = ast.parse(source)
    if not ast.get_docstring(tree):
        return False
    match tree.body[1:]:
        case []:
            return True
        case [ast.ImportFrom(module="__future__", names=[ast.alias(name="annotations")]), *_]:
            return True
        case _:
            return False


def test_every_layer_keeps_its_import_contract() -> None:
    done = _python(
        "import sys, importlinter.cli as c; sys.exit(c.lint_imports(no_cache=True, no_logo=True))"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_help_loads_no_front_end_and_no_database_driver() -> None:
    script = (
        "import sys\n"
        "from draftsman_tui.cli.main import main\n"
        "sys.argv = ['draftsman', '--help']\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "print('LOADED', *sys.modules)\n"
    )
    done = _python(script)
    assert done.returncode == 0, done.stderr
    shown, loaded = done.stdout.split("LOADED ")
    assert "Usage" in shown
    assert HEAVY & set(loaded.split()) == set()


def test_sql_is_only_in_sql_files() -> None:
    statements = [
        f"{_name(path)}:{line}: {text.strip()[:60]!r}"
        for path in _modules(*SOURCES)
        if MAYBE_SQL.search(source := _source(path))
        for line, text in _texts(ast.parse(source))
        if SQL.search(text)
    ]
    assert statements == []


@cases(
    ("text", "is_sql"),
    [
        ("SELECT 1", True),
        ("select id, type from draftsman.jobs", True),
        ("\n  WITH picked AS (SELECT 1)", True),
        ("LISTEN draftsman", True),
        ("insert into jobs values (1)", True),
        ("update draftsman.jobs set status = %s", True),
        ("BEGIN", True),
        ("select set_config('a', 'b', false)", True),
        ("Select one of them", False),
        ("choose from the list, or select all from the menu", False),
        ("update the repository and set it aside", False),
        ("with a deadline", False),
        ("SETTINGS", False),
    ],
)
def test_sql_is_distinguished_from_english(text: str, is_sql: bool) -> None:
    assert bool(SQL.search(text)) is is_sql


def test_every_module_has_a_docstring_and_defers_annotations() -> None:
    modules = _modules(*SOURCES, "testing", "tests", "bench")
    assert [_name(path) for path in modules if not _in_order(_source(path))] == []


def test_nothing_tracked_names_a_package_registry() -> None:
    named = []
    for path in _ours():
        content = path.read_bytes()
        if not any(hint in content for hint in REGISTRY_HINTS):
            continue
        text = content.decode("utf-8", "replace")
        named += [f"{_name(path)}: {match[0]}" for match in REGISTRY.finditer(text)]
    assert named == []


def test_lock_file_matches_make_lock() -> None:
    assert not (ROOT / "uv.lock").exists()
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    pins = re.findall(
        r"^[a-z0-9-]+==\S+(?: ; .+)? \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE
    )
    assert len(pins) == len(re.findall(r"^\S+==", text, re.MULTILINE)) > 0
