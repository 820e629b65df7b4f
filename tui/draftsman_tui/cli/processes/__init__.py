"""Commands that run or control processes: up, worker, bots, dashboard and the supervisor."""
