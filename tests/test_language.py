"""Texts hold to standard English: banned phrases per 1,000 words, in each folder of the project.

tests/language/limits.toml lists the folders that still exceed the final limits; its numbers are
only lowered.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.language.corpus import Text, is_message, read_python, read_texts
from tests.language.phrases import MOST, find_hits
from tests.language.report import Measure, is_within, limit_of, measure_folders, read_limits
from tests.support.cases import cases


@pytest.fixture(scope="module")
def texts() -> list[Text]:
    """Return every text of the project."""
    return list(read_texts())


def test_every_room_is_within_its_limits(texts: list[Text]) -> None:
    limits = read_limits()
    above = [
        f"{folder}, {kind}: {phrase} {measure.hits[phrase]} times, at most {limit},"
        f" {measure.rate(phrase):.1f} of at most {MOST[phrase]} per 1,000 words"
        for (folder, kind), measure in sorted(measure_folders(texts).items())
        for phrase in MOST
        if not is_within(measure, phrase, limit := limit_of(limits, folder, kind, phrase))
    ]
    assert not above, "\n".join([*above, "See: python -m tests.language --folder ROOM"])


@cases(
    ("text", "phrases"),
    [
        ("What is known of a job.", ["what/who"]),
        ("Return what a filter looks at.", ["what/who"]),
        ("Let who asked know, and who may approve.", ["what/who"]),
        ("Nothing is skipped: who keeps the cursor goes on.", ["what/who"]),
        ("Ones that were said by\nsomebody.", ["one", "said", "somebody"]),
        ("What is it? Who asks?", []),
        ("Shows what happens and what to do.\n\nThe user who answers.", []),
        ("Decide who may approve; tell the user what to do.", []),
        ("The people who were asked.", []),
    ],
)
def test_phrases_are_found(text: str, phrases: list[str]) -> None:
    assert [hit.phrase for hit in find_hits(text)] == phrases


def test_texts_of_a_module_are_read_without_its_code(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""What `one` does."""\n\n'
        "# A comment\n# of two lines\n"
        'told = "key"\nprint(f"no job {told!r} " "is there")  # noqa: T201\n'
        'LIMIT = 1\n"""Jobs."""\n'
    )
    texts = list(read_python(path, Path("core/draftsman/store/module.py"), messages=True))
    assert {text.folder for text in texts} == {"core/draftsman/store"}
    assert [(text.line, text.kind, text.content) for text in texts] == [
        (1, "prose", "What CODE does."),
        (8, "prose", "Jobs."),
        (3, "prose", "A comment\nof two lines"),
        (6, "messages", "no job CODE is there"),
    ]


@pytest.mark.parametrize(
    ("source", "docstrings"),
    [
        (
            '"""A."""\nX = 1\n"""B\n    c."""\n\ndef f() -> int:\n    """D."""\n',
            ["A.", "B\n    c.", "D."],
        ),
        ('"""A."""\nprint(\n    """no docstring""",\n    """nor this""",\n)\n', ["A."]),
        ('X = "a"\n"""B."""\n', ["B."]),
        ('r"""A \\d."""\n', ["A \\d."]),
        ('"""A."""\ndef f() -> int:\n    "B."\n', ["A.", "B."]),
        ("def f() -> int:  # a comment\n    '''B.'''\n", ["B."]),
    ],
)
def test_docstrings_are_found_as_by_the_parser(
    source: str, docstrings: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    for messages in (True, False):
        texts = read_python(path, Path("tests/module.py"), messages=messages)
        prose = [text.content for text in texts if text.kind == "prose"]
        assert [text for text in prose if text != "a comment"] == docstrings


def test_keys_are_no_messages() -> None:
    assert not is_message("job.status")
    assert not is_message("SELECT")
    assert is_message('no "job"')


@pytest.mark.parametrize("package", ["httpx", "psycopg"])
def test_well_written_packages_are_near_the_limits(package: str) -> None:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    measure = Measure()
    for path in Path(spec.origin).parent.rglob("*.py"):
        for text in read_python(path, Path(path.name), messages=True):
            measure.add(text)
    assert measure.words > 5000
    assert {phrase for phrase, most in MOST.items() if measure.rate(phrase) > most * 1.1} == set()


def test_the_pages_and_the_configuration_are_read(texts: list[Text]) -> None:
    by_path: dict[str, list[Text]] = {}
    for text in texts:
        by_path.setdefault(text.path.as_posix(), []).append(text)
    for path in ("README.md", "docs/handlers.md", "config/draftsman.toml"):
        assert sum(len(text.content) for text in by_path[path]) > 1000, path
