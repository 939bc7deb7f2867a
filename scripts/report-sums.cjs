// SPDX-License-Identifier: MIT OR Apache-2.0
// Makes random selections on a page of `mostrace report` in Chromium, and compares its sums with those of `mostrace query`, whose
// SQL is made here and not by the page, and with those of the command that the page offers to copy.
// usage: NODE_PATH=… node report-sums.cjs MOSTRACE PAGE.html BUNDLE [SELECTIONS [SEED]]
"use strict";

const { execFileSync } = require("node:child_process");
const path = require("node:path");
const puppeteer = require("puppeteer-core");

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const [mostrace, page, bundle, many = "50", seed = "1"] = process.argv.slice(2);

/** Runs in the page: chooses a selection and returns it with the page's sums. */
const choose = (start) => {
  let state = start;
  const next = () => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return state / 2 ** 32; };
  for (let warm = 0; warm < 5; warm += 1) next();
  const it = window.mostrace.current();
  const { store } = it;
  const all = store.ask({ from: null, to: null, terms: [] });
  const terms = [];
  for (const [dim, chance] of [["proc", 0.45], ["file", 0.45], ["part", 0.45], ["op", 0.3]]) {
    if (next() > chance) continue;
    // What has bytes is chosen more often.
    const sums = store.by(all, dim, all.bytes);
    const labels = store.dims[dim].labels.map((label, at) => [label, sums[at]]).filter(([label, sum]) => label !== null && sum > 0).sort((a, b) => b[1] - a[1]);
    if (labels.length) terms.push({ dim, value: labels[Math.floor(next() ** 2 * labels.length)][0], not: false });
  }
  const from = Math.floor(next() * store.span * 0.8);
  const to = Math.min(store.span, from + 1 + Math.floor(next() ** 2 * store.span));
  const selection = { from, to, terms };
  it.set(selection);
  it.drawLight();
  const bytes = it.result.bytes.reduce((sum, value) => sum + value, 0);
  const [requests] = store.requestsBy(it.result, new Int32Array(store.cells.rows), 1);
  const part = terms.find((term) => term.dim === "part");
  const layers = part ? store.words.layers.filter((layer) => part.value === (layer.part === null ? layer.name : `${layer.name} › ${layer.part}`)) : null;
  return { selection, bytes, requests, layers, start: store.words.start_ns, command: it.command("op") };
};

const quote = (text) => `'${text.replaceAll("'", "''")}'`;
const is = (column, value) => (value === null ? `${column} IS NULL` : `${column} = ${quote(value)}`);

/** The same selection in SQL, over the tables of events and of their causes. */
const sql = ({ selection, layers, start }) => {
  const ns = (us) => BigInt(start) + BigInt(us) * 1000n;
  const where = [`e.time_ns >= ${ns(selection.from)}`, `e.time_ns < ${ns(selection.to)}`];
  for (const { dim, value } of selection.terms) {
    if (dim === "op") where.push(`e.op = ${quote(value)}`);
    if (dim === "part") where.push(`(${layers.map((layer) => (layer.op ? is("e.op", layer.op) : [is("e.kind", layer.kind), is("e.role", layer.role), is("e.home_kind", layer.home_kind)].join(" AND "))).map((one) => `(${one})`).join(" OR ")})`);
    if (dim === "proc" && value.endsWith(" (submitter)")) {
      // A kernel thread has no number there.
      const name = quote(value.replace(/ \(submitter\)$/, ""));
      where.push(`c.cause_tgid IS NULL AND (e.process = ${name} OR e.comm = ${name})`);
    }
    if (dim === "proc" && !value.endsWith(" (submitter)")) where.push(`c.cause_tgid = ${Number(value.split(":").pop())}`);
    const inode = /^\(inode (\d+), generation (\d+)\)$/.exec(value);
    const at = (table, cause) => (inode ? `${table}.${cause}inode = ${inode[1]} AND ${table}.${cause}path IS NULL` : `${table}.${cause}path = ${quote(value)}`);
    if (dim === "file") where.push(`((c.cause_tgid IS NOT NULL AND ${at("c", "cause_")}) OR (c.cause_tgid IS NULL AND ${at("e", "")}))`);
  }
  const on = "c.completion = e.completion AND c.sector = e.sector";
  return `SELECT sum(c.bytes) AS bytes, count(DISTINCT c.completion) AS requests FROM causes c JOIN events e ON ${on} WHERE ${where.join(" AND ")}`;
};

const run = (args) => JSON.parse(execFileSync(mostrace, args, { maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }).toString());

(async () => {
  const browser = await puppeteer.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"], headless: true });
  const tab = await browser.newPage();
  await tab.goto(`file://${path.resolve(page)}`);
  await tab.waitForFunction(() => document.documentElement.dataset.ready);
  let [wrong, some, commands] = [0, 0, 0];
  for (let nth = 0; nth < Number(many); nth += 1) {
    const chosen = await tab.evaluate(choose, Number(seed) * 1000 + nth);
    const [answer] = run(["query", bundle, sql(chosen), "--json"]);
    const [bytes, requests] = [answer?.bytes ?? 0, answer?.requests ?? 0];
    // Flushes have no sector, and so they have no line in SQL's join.
    const flushes = chosen.selection.terms.some((term) => term.dim === "part" || (term.dim === "op" && !/flush/.test(term.value)));
    if (bytes !== chosen.bytes || (flushes && requests !== chosen.requests)) {
      wrong += 1;
      console.error(`page ${chosen.bytes} bytes in ${chosen.requests} requests, query ${bytes} in ${requests}: ${JSON.stringify(chosen.selection)}\n  ${sql(chosen)}`);
    }
    some += bytes > 0;
    if (nth % 5 === 0) {
      const where = /--where '((?:[^']|'\\'')*)'/.exec(chosen.command)[1].replaceAll("'\\''", "'");
      const rows = run(["analyze", bundle, "--by", "op", "--where", where, "--format", "json"]);
      const sum = rows.reduce((all, row) => all + (row.write_bytes ?? 0) + (row.read_bytes ?? 0) + (row.discard_bytes ?? 0), 0);
      commands += 1;
      if (sum !== chosen.bytes) {
        wrong += 1;
        console.error(`page ${chosen.bytes}, ${chosen.command}: ${sum}`);
      }
    }
  }
  await browser.close();
  console.log(`${page}: ${many} selections (${some} with bytes) against query, ${commands} against the copied command: ${wrong} differ`);
  process.exitCode = wrong || !some ? 1 : 0;
})();
