// pg-boss: fetches a batch at each poll, twice a second at most; finished rows are kept for a time.
"use strict";
const PgBoss = require("pg-boss");

const QUEUE = "bench";

exports.about = {
  distribution: "pg-boss",
  default: { batchSize: 10, pollingIntervalSeconds: 0.5 },
  fast: { batchSize: 5000 },
  unfinished: `SELECT EXISTS (SELECT FROM pgboss.job WHERE name = '${QUEUE}'
    AND state < 'completed' AND start_after < now() + interval '1 day')`,
  finished: [["pgboss.job", { id: "gen_random_uuid()" }]],
  waiting: [["pgboss.job", { id: "gen_random_uuid()", start_after: "now() + interval '1 year'",
    keep_until: "now() + interval '2 years'" }]],
  share: [0.02, 1],
};

exports.make = (connectionString, settings) => {
  let boss;
  return {
    async prepare() {
      boss = new PgBoss(connectionString);
      await boss.start();
      await boss.createQueue(QUEUE);
    },
    async open() {
      boss = new PgBoss({ connectionString, max: 1, supervise: false, schedule: false });
      await boss.start();
    },
    submit: (number) => boss.send(QUEUE, { i: number }),
    submitMany: (first, jobs) => boss.insert(
      Array.from({ length: jobs }, (_, n) => ({ name: QUEUE, data: { i: first + n } })),
    ),
    async work(hit) {
      boss = new PgBoss({ connectionString, max: 12 });
      await boss.start();
      await boss.work(QUEUE, settings, async (jobs) => { for (const { data } of jobs) hit(data.i); });
    },
  };
};
