// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes traces that are rare among samples, as blktrace's files: of 1,100 programs, of reads only, of discards only, of one request,
// of none; and a copy of a recording of which it is said that records were lost.
// usage: node report-traces.cjs FOLDER RECORDING.most.tar.zst      (tar with zstd)
"use strict";

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const [folder, recording] = process.argv.slice(2);
/** Actions of the kernel's include/uapi/linux/blktrace_api.h, with their categories. */
const [QUEUED, ISSUED, COMPLETED] = [1 | (1 << 20), 7 | (1 << 22), 8 | (1 << 23)];
const [READ, WRITE, DISCARD] = [1 << 16, 1 << 17, (1 << 17) | (1 << 29)];
const PROCESS = 1 << 26;

/** One record of version 7. */
const record = (action, { us = 0, sector = 0, bytes = 0, pid = 0, pdu = "" }) => {
  const name = pdu ? Buffer.from(pdu.padEnd(16, "\0")) : Buffer.alloc(0);
  const out = Buffer.alloc(48);
  out.writeUInt32LE(0x65617407, 0);
  out.writeBigUInt64LE(BigInt(1e9 + us * 1000), 8);
  out.writeBigUInt64LE(BigInt(sector), 16);
  [bytes, action >>> 0, pid, 0x700001, 0].forEach((value, at) => out.writeUInt32LE(value, 24 + at * 4));
  out.writeUInt16LE(name.length, 46);
  return Buffer.concat([out, name]);
};
/** A request of a program, from Q to C. */
const request = (kind, of) => [record(QUEUED | kind, of), record(ISSUED | kind, { ...of, us: of.us + 20 }), record(COMPLETED | kind, { ...of, us: of.us + 100 })];
const named = (pid, pdu, us = 0) => record(PROCESS, { pid, pdu, us });
const write = (name, records) => fs.writeFileSync(path.join(folder, `${name}.blktrace.0`), Buffer.concat(records));

const each = (many, make) => Array.from({ length: many }, (_, at) => make(at)).flat();
write("many", each(1100, (at) => [named(1000 + at, `program${at}`, at * 3000), ...request(WRITE, { us: at * 3000, sector: at * 800, bytes: 4096 * (1 + Math.floor(3000 / (at + 1))), pid: 1000 + at })]));
write("reads", [named(7, "grep"), ...each(400, (at) => request(READ, { us: at * 5000, sector: at * 64, bytes: 32768, pid: 7 }))]);
write("discards", [named(7, "fstrim"), ...each(90, (at) => request(DISCARD, { us: at * 9000, sector: at * 4096, bytes: 1 << 20, pid: 7 }))]);
write("one", [named(7, "dd"), ...request(WRITE, { us: 0, sector: 8, bytes: 4096, pid: 7 })]);
write("none", [named(7, "sleep")]);

const lossy = path.join(folder, "lossy.most");
fs.mkdirSync(lossy);
execFileSync("tar", ["--zstd", "-xf", recording, "-C", lossy]);
const manifest = JSON.parse(fs.readFileSync(path.join(lossy, "manifest.json"), "utf8"));
const [first] = Object.keys(manifest.losses);
manifest.losses[first] = 17;
fs.writeFileSync(path.join(lossy, "manifest.json"), JSON.stringify(manifest));
