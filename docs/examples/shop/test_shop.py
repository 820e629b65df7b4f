"""Tests of the examples: pytest test_shop.py."""

import os
import sqlite3
import subprocess
import sys
from getpass import getuser
from pathlib import Path

import nbclient
import nbformat
import pytest

from draftsman import Draftsman
from draftsman.testing import MemoryApp, WorkerApp

HERE = Path(__file__).parent


@pytest.fixture
def configured(draftsman_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Let programs use the database of the test."""
    config = tmp_path / "draftsman.toml"
    people = f'[people.me]\nlogin = "{getuser()}"\nroles = ["invoker", "responder"]\n'
    config.write_text(f'database_url = "{draftsman_database_url}"\n{people}')
    monkeypatch.setenv("DRAFTSMAN_CONFIG", str(config))


@pytest.fixture
def worker(configured: None):
    """Run a worker beside the test."""
    command = [sys.executable, "-m", "draftsman_tui", "worker", "--app", "shop"]
    with subprocess.Popen(command, cwd=HERE) as process:
        yield
        process.terminate()


def answer(count: int) -> None:
    """Answer so many questions, as soon as they are asked."""
    with Draftsman() as client:
        answered: set[str] = set()
        for event in client.events():
            if event.kind == "needs_input":
                (question,) = client.questions(event.job)
                client.answer(question, "yes")
                answered.add(question.name)
                if len(answered) == count:
                    return


def test_a_request_of_fastapi(configured: None, draftsman_worker: WorkerApp) -> None:
    from fastapi.testclient import TestClient
    from fastapi_shop import app

    with TestClient(app) as http:
        assert http.post("/orders/7/refund?euros=5").json() == {"job": "D-1"}
        assert http.post("/orders/7/refund?euros=5").json() == {"job": "D-1"}
        assert http.get("/jobs/D-1").json()["status"] == "queued"
        draftsman_worker.answers["refund"] = "yes"
        draftsman_worker.drain()
        done = {"status": "completed", "result": {"value": "paid 5 for order 7"}, "error": None}
        assert http.get("/jobs/D-1").json() == done
        assert http.get("/jobs/D-2").status_code == 404
        assert http.post("/orders/seven/refund").status_code == 422


def test_a_transaction_of_django(
    draftsman_app: MemoryApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    import django_shop
    from django.core.management import call_command
    from django.db import connection, transaction
    from django.test import Client

    call_command("migrate", run_syncdb=True, verbosity=0)
    http = Client()
    with pytest.raises(sqlite3.Error), transaction.atomic():
        assert http.post("/orders/6/refund").status_code == 202
        raise sqlite3.Error("rolled back")
    assert draftsman_app.submitted(django_shop.refund) == []
    assert http.post("/orders/7/refund").json() == {"order": 7, "created": True}
    assert http.post("/orders/7/refund").json() == {"order": 7, "created": False}
    assert draftsman_app.submitted("shop:refund") == [{"order": 7}]
    connection.close()


def test_the_script(worker: None, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("order,euros\n7,5\n8,6\n")
    command = [sys.executable, HERE / "refunds.py", tmp_path / "orders.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        answer(2)
        output, _ = script.communicate(timeout=120)
    assert output == "D-1 paid 5 for order 7\nD-2 paid 6 for order 8\n"


def test_the_notebook(worker: None) -> None:
    notebook = nbformat.read(HERE / "refunds.ipynb", as_version=4)
    answers = [sys.executable, "-c", "from test_shop import answer; answer(1)"]
    with subprocess.Popen(answers, cwd=HERE, env=os.environ):
        nbclient.NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": str(HERE)}}
        ).execute()
    outputs = [cell.outputs[0].data["text/plain"] for cell in notebook.cells if cell.get("outputs")]
    assert outputs == ["'D-1'", "'paid 12 for order 9'"]
