"""Questions of readers: the index leads to a section, whose beginning has the answer."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman_tui.cli import pages
from tests.docs.test_index import ROWS

WORDS: Final = 80
"""What a person reads in 20 s."""
QUESTIONS: Final = (
    # newcomers
    ("see a whole job without an account or a key", "no key and no network are needed"),
    ("install it, and know what it needs", "Python | 3.11"),
    ("know the words", "A second request with the same key is the same job"),
    ("come from Celery, RQ or Temporal", "# send later"),
    ("declare a job type", "`BlockingRunContext`"),
    ("test the guarantees on my machine", "A recorded step is not executed again"),
    ("decide what happens if nobody answers", "the job expires"),
    ("answer on my phone", "draftsman link --web"),
    # operators
    ("run it as a service, or on Kubernetes", "ExecStart="),
    ("know which ports it opens", "127.0.0.1:8421"),
    ("back it up, and restore it", "draftsman migrate --restored"),
    ("replace a token or a secret", "restart bots and workers"),
    ("upgrade without a stop", "Stop the old workers"),
    ("know how many jobs a worker can run", "6,000 a second"),
    ("use PgBouncer", "pool_mode = transaction"),
    ("know how many connections and which settings PostgreSQL needs", "`max_connections` (100)"),
    ("watch it with Prometheus", "/metrics"),
    ("keep the database small", "[retention]"),
    ("know why a job does not run", "draftsman why D-142"),
    ("retry what failed", "draftsman retry"),
    ("bound how many jobs run at once", "running = 4"),
    ("pause or drain a queue", "draftsman queues pause default"),
    # Slack and Trello
    ("use it in Slack", "*From a manifest*"),
    ("know which scopes the Slack app needs", "`chat:write`"),
    ("take requests in some channels only", "`channels`"),
    ("know why Slack does not react", "draftsman doctor"),
    ("link my chat account to me", "draftsman people link"),
    ("use it in Trello", "Create an account for the bot"),
    ("know what comments, labels and lists of Trello do", "/answer yes"),
    ("know why a Trello label has no effect", "draftsman boards test BOARD"),
    ("move cards by the status of their job", "--rule running=Doing"),
    ("require two approvers", "quorum"),
    # developers
    ("send the same request twice, and get one job", "`--key` makes a request idempotent"),
    ("submit in my own transaction", "connection=connection"),
    ("test it without a database", "draftsman_app"),
    ("submit a job in a program, and wait for its result", "client.submit"),
    ("use it with Django", "psycopg 3"),
    ("do something only once", "await ctx.step(key, effect)"),
    ("change code while jobs wait", "draftsman replay D-142"),
    ("know what is retried, and how often", "`max_attempts`"),
    ("send results to a webhook", "[webhooks.ops]"),
    # reviewers of security
    ("know what an agent cannot reach", "not visible"),
    ("let an agent reach a host", "[networks.mirrors]"),
    ("know who may start an agent", "role `invoker`"),
    ("separate what workers, bots and people may do", "group roles"),
    ("know what is kept, and for how long", "no command deletes them"),
    ("know what a hostile ticket or file can do", "untrusted"),
    ("know who decided what", "kind, actor and payload"),
    ("know where keys and secrets are", "cannot read its environment"),
    ("know what somebody with the database can forge", "draftsman doctor --invariants"),
    ("check the evidence of a job", "Ed25519"),
)
"""The task of a row, and what answers it."""


@pytest.mark.parametrize(("task", "answer"), QUESTIONS)
def test_a_reader_finds_the_answer_at_the_beginning_of_a_section(task: str, answer: str) -> None:
    (link,) = [link for other, _, link in ROWS if other == task]
    beginning = " ".join(pages.read(link).split()[:WORDS])
    assert answer in beginning, link
