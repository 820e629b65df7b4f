"""Package data is found in a checkout; `test_packaging` checks a wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from draftsman import resources

ROOT = Path(__file__).resolve().parents[2]


def test_migrations_come_in_the_order_of_their_numbers_without_a_gap() -> None:
    numbers = [int(name.split("_")[0]) for name, _ in resources.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_migrations_come_from_the_checkout() -> None:
    files = sorted((ROOT / "migrations").glob("*.sql"))
    expected = [(file.stem, file.read_text(encoding="utf-8")) for file in files]
    assert resources.migrations() == expected


def test_files_of_functions_come_from_the_checkout_those_of_the_database_first() -> None:
    files = sorted((ROOT / "migrations" / "functions").glob("*.sql"))
    expected = {f"functions/{file.stem}": file.read_text(encoding="utf-8") for file in files}
    names = [name for name, _ in resources.functions()]
    assert dict(resources.functions()) == expected
    assert names == ["functions/database", *sorted(expected.keys() - {"functions/database"})]


def test_every_file_records_itself() -> None:
    for name, text in resources.migrations():
        assert f"INTO draftsman.schema_migrations (name) VALUES ('{name}')" in text
    for name, text in resources.functions():
        stem = name.removeprefix("functions/")
        assert f"INTO draftsman.schema_functions (name) VALUES ('{stem}')" in text


def test_the_example_configuration_is_toml() -> None:
    assert "worker" in tomllib.loads(resources.config_example())


def test_a_folder_inside_the_package_is_found_first() -> None:
    assert resources.folder("jobs").joinpath("job.py").is_file()


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="lacks its nonsense; reinstall it"):
        resources.folder("nonsense")
