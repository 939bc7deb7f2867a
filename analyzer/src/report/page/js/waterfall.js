// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws SQLite's transactions: system calls above, requests below.
"use strict";

const waterfall = (() => {
  const { h, s, button } = dom;
  const BAR = 13;
  const NAME = 168;
  const LANES = [
    ["calls on the journal", (bar) => bar.call && ["rollback_journal", "wal", "shm", "super_journal"].includes(bar.r)],
    ["calls on the database", (bar) => bar.call && bar.r === "db"],
    ["other calls", (bar) => bar.call],
    ["device: SQLite's journal", (bar) => bar.k === 1],
    ["device: database", (bar) => bar.k === 0],
    ["device: other files", (bar) => bar.k === 2],
    ["device: metadata", (bar) => bar.k === 3],
    ["device: filesystem journal", (bar) => bar.k === 4],
    ["device: unknown", (bar) => bar.k === 5],
    ["device: flushes", (bar) => bar.k === 6],
  ];
  const COLOUR_OF_ROLE = { db: 0, rollback_journal: 1, wal: 1, shm: 1, super_journal: 1 };

  /** Combines the parts of one request into one bar. */
  const together = (blocks) => {
    const bars = new Map();
    for (const block of blocks) {
      const key = [block.k, block.d, block.e].join();
      const bar = bars.get(key) ?? { ...block, b: 0, what: new Map() };
      bar.b += block.b;
      bar.s = Math.min(bar.s, block.s);
      bar.what.set(block.w, (bar.what.get(block.w) ?? 0) + 1);
      bars.set(key, bar);
    }
    const words = ([what, times]) => `${times > 1 ? `${times} × ` : ""}${what.replaceAll("_", " ")}`;
    return [...bars.values()].map((bar) => ({ ...bar, w: [...bar.what].map(words).join(", ") }));
  };

  /** Puts overlapping bars below one another. */
  const stack = (bars) => {
    const ends = [];
    for (const bar of bars) {
      let row = ends.findIndex((end) => end <= bar.s);
      if (row < 0) row = ends.length;
      ends[row] = bar.e;
      bar.row = row;
    }
    return Math.max(1, ends.length);
  };

  const one = (transaction) => {
    const bars = [...transaction.calls.map((call) => ({ ...call, call: true, k: COLOUR_OF_ROLE[call.r] ?? 2 })), ...together(transaction.blocks)];
    bars.sort((a, b) => a.s - b.s || a.e - b.e);
    const lanes = LANES.map(([name]) => ({ name, bars: [] }));
    for (const bar of bars) lanes[LANES.findIndex(([, is]) => is(bar))]?.bars.push(bar);
    const used = lanes.filter((lane) => lane.bars.length);
    const from = Math.min(0, ...bars.map((bar) => bar.s));
    const to = Math.max(transaction.ns, ...bars.map((bar) => bar.e));
    const readout = h("div", { class: "readout short", "aria-live": "polite" });
    const tell = (bar) => {
      const what = bar.call ? `${bar.w}()` : bar.w;
      const where = bar.f ? ` of ${bar.f}` : "";
      const bytes = bar.b > 0 && (bar.w === "write" || !bar.call) ? `, ${format.bytes(bar.b)}` : "";
      const waited = !bar.call && bar.d > bar.s ? `, of them ${format.ns(bar.d - bar.s)} before the device had it` : "";
      readout.replaceChildren(h("b", {}, `${what}${where}`), `${bytes} – at ${format.ns(bar.s)}, for ${format.ns(bar.e - bar.s)}${waited}.`);
    };
    const box = h("div");
    const draw = (width) => {
      const name = width < 560 ? 0 : NAME;
      const x = (ns) => name + ((ns - from) * (width - name - 10)) / (to - from || 1);
      let top = 4;
      const drawn = [];
      const groups = [];
      for (const lane of used) {
        const rows = stack(lane.bars);
        if (!name) top += 14;
        drawn.push(s("text", { class: "lane-name", x: 0, y: name ? top + 11 : top - 3 }, lane.name));
        for (const bar of lane.bars) {
          const y = top + bar.row * (BAR + 2);
          const rect = (start, end, more) => s("rect", { class: `fill-${bar.k}${more}`, x: x(start), y, width: Math.max(1.5, x(end) - x(start)), height: BAR, rx: 1.5 });
          const group = s("g", {
            class: "node", tabindex: groups.length ? -1 : 0, role: "listitem", "aria-label": `${lane.name}: ${bar.w}, ${format.ns(bar.e - bar.s)}`,
            onmouseenter: () => tell(bar), onfocus: () => tell(bar),
          }, bar.call ? rect(bar.s, bar.e, "") : [rect(bar.s, bar.d, " waiting"), rect(bar.d, bar.e, "")]);
          groups.push(group);
          drawn.push(group);
        }
        top += rows * (BAR + 2) + 7;
        drawn.push(s("line", { class: "lane", x1: 0, x2: width, y1: top - 4, y2: top - 4 }));
      }
      for (const at of heatmap.ticks(from, to, (width - name) / 100)) {
        drawn.push(s("text", { class: "lane-name", x: x(at), y: top + 12, "text-anchor": x(at) > width - 40 ? "end" : "middle" }, format.ns(at)));
      }
      const onkeydown = (event) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const next = groups[groups.indexOf(document.activeElement) + by];
        if (!next) return;
        event.preventDefault();
        groups.forEach((group) => group.setAttribute("tabindex", group === next ? 0 : -1));
        next.focus();
      };
      box.replaceChildren(s("svg", { role: "list", "aria-label": "Calls and requests", viewBox: `0 0 ${width} ${top + 20}`, height: top + 20, onkeydown }, drawn));
    };
    dom.onWidth(box, draw);
    const cut = [[transaction.calls.length, transaction.calls_all, "calls"], [transaction.blocks.length, transaction.blocks_all, "requests"]]
      .filter(([shown, all]) => all > shown).map(([shown, all, what]) => `Only the first ${shown} of ${format.count(all)} ${what} are drawn. `);
    readout.replaceChildren(h("span", { class: "soft" }, "Point at a bar, or move with the arrow keys. Of a request, the pale part is before the device had it."));
    // The first call of a transaction begins before its first write.
    const since = transaction.at_ns;
    const when = since < 0 ? `${format.ns(-since)} before the first completion` : `${format.ns(since)} after the first completion`;
    return h("div", {},
      h("p", { class: "note" }, `${transaction.database ?? "A database"}, ${when}: ${format.ns(transaction.ns)} from its first call to the last for durability. What the device did is shown whoever it was for. ${cut.join("")}`),
      box, readout);
  };

  const draw = (sheet) => {
    const { times, shown } = sheet.waterfall;
    const place = h("div");
    const show = (at) => place.replaceChildren(one(shown[at]));
    show(0);
    const words = `${format.count(times.count)} transactions: half took at most ${format.ns(times.p50)}, 90 % ${format.ns(times.p90)}, 99 % ${format.ns(times.p99)}, the slowest ${format.ns(times.max)}. ${shown.length} are drawn.`;
    const options = shown.map((transaction) => `${transaction.which} (${format.ns(transaction.ns)})`);
    return h("div", {}, h("p", { class: "note" }, words), dom.choice("Which transaction", options, 0, show), place);
  };
  return { draw };
})();
