// SPDX-License-Identifier: MIT OR Apache-2.0
// The ladder: what was stored, what was passed to write(), what the disk got; three bars on one linear scale.
"use strict";

const ladder = (() => {
  const { h, s } = dom;
  const [ROW, TALL] = [32, 22];

  /** The parts of the last bar: bytes written by colour. */
  const partsOf = (desk) => {
    const { store } = desk;
    const all = store.ask(choice.ALL);
    return [...store.by(all, "colour", all.bytes.map((bytes, c) => (store.cells.op[c] === store.ops.WRITE ? bytes : 0)))];
  };

  /** Nothing if the trace says only what was written. */
  const make = (desk) => {
    const { sheet, store } = desk;
    const { each, unit, stored, passed, written } = sheet.ladder;
    if (!written || (stored === null && passed === null)) return null;
    const by = each ?? 1;
    const per = each > 1 ? ` per ${unit}` : "";
    const steps = [["stored", "stored", stored], ["passed to write()", "to write()", passed], ["the disk gets", "the disk", written]].filter(([, , bytes]) => bytes !== null);
    const parts = partsOf(desk);
    const box = h("div", { class: "ladder" });
    const svg = (w) => {
      const narrow = w < 400;
      const left = Math.max(...steps.map(([long, short]) => chart.measure(narrow ? short : long, 13))) + 10;
      // Each ratio has its base beside it.
      const base = (at) => (steps[at - 1][1] === "stored" ? "stored" : "passed");
      const times = (at) => (at ? `${format.times(steps[at][2] / steps[at - 1][2])} ${w < 540 ? "" : "what was "}${base(at)}` : per.trim());
      const right = Math.max(...steps.map(([, , bytes], at) => chart.measure(format.bytes(bytes / by), 14, "bold") + chart.measure(times(at), 13, "bold"))) + 22;
      // What was passed may be more than what the disk got.
      const x = chart.linear([0, Math.max(...steps.map(([, , bytes]) => bytes))], [0, Math.max(20, w - left - right)]);
      const wide = (bytes) => Math.max(1.5, x(bytes));
      const rows = steps.map(([long, short, bytes], at) => {
        const y = 2 + at * ROW;
        const last = at === steps.length - 1;
        let from = left;
        const bar = last ? parts.map((value, k) => {
          if (value <= 0) return null;
          const size = (value / written) * wide(written);
          const part = chart.rect(from, y, Math.max(0.5, size - 1), TALL, { class: `fill-${k}` });
          const [name, share] = [store.words.colours[k], format.rounded(value, written)];
          const text = [`${name} ${share}`, share].find((one) => chart.measure(one, 12) + 10 < size);
          const label = text ? s("g", { class: `on-${k}` }, chart.text(from + 5, y + 15, text)) : null;
          from += size;
          return [part, label];
        }) : chart.rect(left, y, wide(bytes), TALL, { class: "ink" });
        const fan = last ? null : s("path", { class: "fan", d: `M${left} ${y + TALL}H${left + wide(bytes)}L${left + wide(steps[at + 1][2])} ${y + ROW}H${left}Z` });
        return [chart.text(left - 8, y + 16, narrow ? short : long, { "text-anchor": "end", class: "middle" }), bar, fan,
          s("text", { x: left + wide(bytes) + 8, y: y + 16 }, [s("tspan", { class: "number strong" }, format.bytes(bytes / by)), s("tspan", { class: "middle soft", dx: 8 }, times(at))])];
      });
      return chart.root(w, steps.length * ROW, `${steps.map(([long, , bytes]) => `${long} ${format.bytes(bytes / by)}`).join(", ")}${per}`, {}, rows);
    };
    const place = h("div");
    dom.onWidth(place, (width) => place.replaceChildren(svg(width)));
    const menu = save.menu("what was stored, passed and written", { chart: () => ({
      title: `${sheet.name}: stored, passed to write() and written${per}`, source: desk.source(), warnings: sheet.missing,
      legend: parts.flatMap((value, k) => (value > 0 ? [[`--k${k}`, store.words.colours[k]]] : [])), node: () => place.querySelector("svg"),
    }) });
    box.append(place, menu);
    /** The largest ratio, and what it is of. */
    const base = steps[0];
    return { element: box, times: written / base[2], base: base[1] === "stored" ? "what was stored" : "what was passed to write()" };
  };
  return { make };
})();
