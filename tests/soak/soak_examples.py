"""The examples that other libraries call jobs from, with those libraries.

Needs a network for the first run: 170 MB.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shutil import copytree
from typing import Final

import pytest

from tests.docs.pages import DOCS
from tests.libraries import python_with_libraries

IN_A_TRANSACTION: Final = """
import django
import pytest
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict
from shop import refund


def test_a_job_belongs_to_a_transaction_of_django(draftsman_worker, draftsman_database_url):
    info = conninfo_to_dict(draftsman_database_url)
    database = {key.upper(): info.pop(key, "") for key in ("user", "host", "port")}
    database |= {"NAME": info.pop("dbname"), "OPTIONS": info}
    database["ENGINE"] = "django.db.backends.postgresql"
    settings.configure(DATABASES={"default": database})
    django.setup()
    from django.db import connection, transaction

    draftsman_worker.answers["refund"] = "no"
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        refund.with_options(connection=connection.connection).submit(order=7)
        1 / 0
    assert draftsman_worker.jobs == []
    with transaction.atomic():
        job = refund.with_options(connection=connection.connection).submit(order=8)
    assert job.result() == "refused"
    connection.close()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return copytree(DOCS / "examples" / "shop", tmp_path / "shop")


def run_tests(place: Path, *files: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(place), "JUPYTER_PLATFORM_DIRS": "1"}
    command = [str(python_with_libraries()), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *files], cwd=place, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_examples_pass_their_tests(shop: Path) -> None:
    run_tests(shop, "test_shop.py")


def test_django_submits_in_a_transaction_of_its_own(shop: Path) -> None:
    (shop / "test_transaction.py").write_text(IN_A_TRANSACTION, encoding="utf-8")
    run_tests(shop, "test_transaction.py")
