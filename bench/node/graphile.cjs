// graphile-worker: takes many jobs into a local queue, deletes what has ended in batches.
"use strict";
const { Logger, makeWorkerUtils, run } = require("graphile-worker");

const SEEDED = 1_000_000_000;
const logger = new Logger(() => () => {});

exports.about = {
  distribution: "graphile-worker",
  default: { concurrentJobs: 10 },
  fast: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
  unfinished: `SELECT EXISTS (SELECT FROM graphile_worker._private_jobs WHERE id < ${SEEDED})`,
  waiting: [["graphile_worker._private_jobs",
    { id: `${SEEDED} + g`, key: "NULL", run_at: "now() + interval '1 year'" }]],
};

exports.make = (connectionString, settings) => {
  let utils;
  const job = (number) => ({ identifier: "noop", payload: { i: number } });
  return {
    async prepare() {
      const made = await makeWorkerUtils({ connectionString, logger });
      await made.migrate();
      await made.release();
    },
    async open() {
      utils = await makeWorkerUtils({ connectionString, logger, maxPoolSize: 1 });
    },
    submit: (number) => utils.addJob("noop", { i: number }),
    submitMany: (first, jobs) => utils.addJobs(Array.from({ length: jobs }, (_, n) => job(first + n))),
    work: (hit) => run({
      logger,
      noHandleSignals: true,
      preset: { worker: { connectionString, maxPoolSize: 12, ...settings } },
      taskList: { noop: async ({ i }) => { hit(i); } },
    }),
  };
};
