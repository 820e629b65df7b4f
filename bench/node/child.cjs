// A process of one queue of Node.js, with the roles and the lines of bench/peers/child.py:
// node child.cjs NAME ROLE [URL SETTINGS [TARGET]]
"use strict";
const readline = require("node:readline");

const BATCH = 1000;
const [name, role, url, settings, target] = process.argv.slice(2);
const now = () => Number(process.hrtime.bigint());
const tell = (fields) => process.stdout.write(JSON.stringify(fields) + "\n");
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const used = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };

function probe() {
  let count = 0;
  let before = 0;
  return {
    hit(number) {
      count += 1;
      if (target === "0") return tell({ event: "start", number, at: now() });
      if (count === 1) {
        before = used();
        tell({ event: "first", at: now() });
      }
      if (count === Number(target)) tell({ event: "counted" });
    },
    end: () => tell({ event: "end", cpu: used() - before }),
  };
}

async function produce(peer) {
  await peer.open();
  tell({ event: "ready" });
  for (let line = await lines.next(); !line.done; line = await lines.next()) {
    const { first, jobs, many } = JSON.parse(line.value);
    const times = [];
    const before = used();
    const began = now();
    for (let number = first; number < first + jobs; number += many ? BATCH : 1) {
      const call = now();
      if (many) await peer.submitMany(number, Math.min(BATCH, first + jobs - number));
      else await peer.submit(number);
      if (!many) times.push(now() - call);
    }
    tell({ event: "done", began, took: now() - began, cpu: used() - before, times });
  }
}

async function work(peer) {
  tell({ event: "ready" });
  await lines.next();
  const seen = probe();
  await peer.work(seen.hit);
  await lines.next();
  seen.end();
}

async function main() {
  const { about, make } = require(`./${name}.cjs`);
  if (role === "about") {
    const { version } = require(`${about.distribution}/package.json`);
    tell({ event: "about", version, finished: [], waiting: [], share: [1, 1], ...about });
    return;
  }
  const peer = make(url, JSON.parse(settings));
  if (role === "prepare") {
    await peer.prepare();
    tell({ event: "prepared" });
  } else if (role === "produce") await produce(peer);
  else await work(peer);
}

// What was told has left before the process does.
main().then(
  () => process.stdout.write("", () => process.exit(0)),
  (error) => { console.error(String(error)); process.exit(1); },
);
