// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls for durability: who waited for which file, how often and how long; and the flushes that the device executed.
"use strict";

const durability = (() => {
  const { h } = dom;

  /** Whether a call belongs to the selection's programs, processes and files. */
  const passes = (desk, row) => {
    const { store } = desk;
    const { calls } = store.tables;
    const byDim = new Map();
    for (const term of desk.selection.terms) {
      const label = {
        app: () => store.apps.names[store.apps.of[calls.who[row]]], proc: () => store.words.whos[calls.who[row]].name, file: () => store.words.files[calls.file[row]],
        match: () => store.words.files[calls.file[row]],
      }[term.dim];
      if (!label) continue;
      const test = store.dims[term.dim].test ?? ((a, b) => a === b);
      const is = test(label(), term.value);
      if (term.not && is) return false;
      if (!term.not) byDim.set(term.dim, byDim.get(term.dim) || is);
    }
    return [...byDim.values()].every(Boolean);
  };

  const table = (desk) => {
    const { store } = desk;
    const { calls } = store.tables;
    const { words } = store;
    const durable = new Set(words.about.durable);
    const [from, to] = desk.window();
    const groups = new Map();
    for (let row = store.after(calls.start, from), end = store.after(calls.start, to); row < end; row += 1) {
      if (!durable.has(calls.call[row]) || !passes(desk, row)) continue;
      const key = `${calls.who[row]} ${calls.call[row]} ${words.files[calls.file[row]]}`;
      if (!groups.has(key)) groups.set(key, { row, rows: [], times: [] });
      groups.get(key).rows.push(row);
      groups.get(key).times.push(calls.took[row]);
    }
    const rows = [...groups.values()].map(({ row, rows: its, times }) => {
      const sorted = Float64Array.from(times).sort();
      const at = (part) => waits.quantile(sorted, part);
      return [words.whos[calls.who[row]].name, words.about.calls[calls.call[row]], words.files[calls.file[row]], sorted.length, sorted.reduce((all, value) => all + value, 0), at(0.5), at(0.9), at(0.99), sorted[sorted.length - 1], ...waits.partsOfAll(calls, its)];
    }).sort((a, b) => b[4] - a[4]);
    const numbers = [["calls", "count"], ["together", "us"], ["50 %", "us"], ["90 %", "us"], ["99 %", "us"], ["longest", "us"], ...waits.PARTS.map((name) => [name, "us"])];
    return {
      title: "Calls for durability", rows,
      columns: [...["process", "call", "file"].map((name) => ({ name, unit: "text" })), ...numbers.map(([name, unit]) => ({ name, unit, bar: name === "together", sum: name === "calls" || name === "together" || waits.PARTS.includes(name) }))],
    };
  };

  const make = (desk) => {
    const place = h("div");
    const note = h("p", { class: "note" });
    const { store } = desk;
    const over = tracks.syncs(desk);
    const draw = () => {
      over?.light();
      const totals = store.totals(desk.result);
      const { FLAG, rows, cells } = store;
      let fua = 0;
      if (rows.flags) for (let row = desk.result.from; row < desk.result.to; row += 1) if (rows.flags[row] & FLAG.fua && rows.flags[row] & FLAG.first && desk.result.ok[rows.cell[row]] && cells.op[rows.cell[row]] === store.ops.WRITE) fua += 1;
      const known = rows.flags ? ` ${format.some(fua, "write")} with FUA.` : "";
      note.textContent = `In this selection ${format.some(totals.flush.requests, "flush", "flushes")} ${totals.flush.requests === 1 ? "was" : "were"} asked for, and the device executed ${format.count(totals.device_flush.requests)}: several may share one.${known} The last columns divide the time together among what the calls waited for.`;
      if (!store.tables.calls) place.replaceChildren(h("p", { class: "note" }, "This trace has no system calls."));
      else {
        const made = table(desk);
        const left = store.words.about.left_out[0];
        place.replaceChildren(made.rows.length ? grid.draw(made, { heading: null, pick: (row, event) => desk.pick("proc", row[0], event) }) : h("p", { class: "note" }, "No call for durability in this selection."), left ? h("p", { class: "note" }, `${format.some(left, "later call")} for durability are not in the page.`) : "");
      }
    };
    return { name: "Durability", title: "Durability", element: h("div", {}, over?.element, note, place), draw, isTable: true, by: "op" };
  };
  return { make, passes };
})();
