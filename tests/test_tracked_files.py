"""Files of the repository: none names a package registry, and each locked package has hashes."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import distributions
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
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


def test_nothing_tracked_names_a_package_registry() -> None:
    named = []
    for path in _ours():
        content = path.read_bytes()
        if not any(hint in content for hint in REGISTRY_HINTS):
            continue
        text = content.decode("utf-8", "replace")
        named += [f"{path.relative_to(ROOT)}: {match[0]}" for match in REGISTRY.finditer(text)]
    assert named == []


def test_lock_file_matches_make_lock() -> None:
    assert not (ROOT / "uv.lock").exists()
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    pins = re.findall(
        r"^[a-z0-9-]+==\S+(?: ; .+)? \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE
    )
    assert len(pins) == len(re.findall(r"^\S+==", text, re.MULTILINE)) > 0


def test_every_locked_package_runs_on_the_first_python_3_11() -> None:
    """That of a distribution stays at an early release, and `make` prefers it."""
    needed = {
        library.name: library.metadata["Requires-Python"]
        for library in distributions()
        if "Requires-Python" in library.metadata
    }
    assert {
        name: pythons for name, pythons in needed.items() if "3.11.0" not in SpecifierSet(pythons)
    } == {}
