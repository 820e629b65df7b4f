"""The `metrics` command: metrics for Prometheus."""

from __future__ import annotations

import click

from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.processes.process_setup import set_up_log, warn_of_variables
from draftsman_tui.terminal import params


@command(
    "metrics",
    section="Processes",
    examples=(
        "draftsman metrics",
        "draftsman metrics --listen 0.0.0.0:9400",
        "draftsman metrics --once",
        "draftsman metrics --once | grep draftsman_jobs",
    ),
    long_running=True,
)
@click.option(
    "--listen",
    type=params.TEXT,
    metavar="HOST:PORT",
    default="127.0.0.1:9400",
    show_default=True,
    help="Address of the server.",
)
@click.option("--once", is_flag=True, help="Print the metrics, and exit.")
async def metrics(app: App, listen: str, once: bool) -> None:
    """Serve metrics of queues, questions, deliveries and workers.

    GET /metrics has what is read from the database, for Prometheus: scrape a single exporter, so
    that sums count each job once. All jobs are counted, whoever runs it; none is shown. /healthz
    and /readyz are those of workers. With --json, the URL is printed as JSON.
    """
    from draftsman.exporter_main import read_metrics, run_exporter

    if once:
        if app.json:
            raise UsageError("--once prints the text format of Prometheus; leave out --json")
        app.out.write(await read_metrics(app.settings))
        return
    set_up_log(app)
    warn_of_variables(app)
    await run_exporter(app.settings, listen, lambda url: app.out.result({"url": url}, url))
