// SPDX-License-Identifier: MIT OR Apache-2.0
// How long requests took, from the moment a bio was queued to the completion: a distribution, and percentiles by kind.
"use strict";

const latency = (() => {
  const { h, s } = dom;
  const STEPS = 4;

  const percentiles = (desk) => {
    const { store } = desk;
    const { kinds, words, colours } = store;
    const groups = new Map([["all", []]]);
    const many = new Map();
    const ignored = store.eachWait(desk.selection, (us, cell, time, count) => {
      const name = `${words.ops[kinds.op[cell]]}: ${words.colours[colours[kinds.layer[cell]]]}`;
      for (const key of ["all", kinds.op[cell] > 1 ? words.layers[kinds.layer[cell]].name : name]) {
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(us);
        if (count !== 1) {
          if (!many.has(key)) many.set(key, []);
          many.get(key).push(count);
        }
      }
    });
    const rows = [...groups].map(([name, times]) => {
      if (store.summed) {
        // Counts by a step's largest latency: a percentile is at most that.
        const sorted = times.map((us, at) => [us, many.get(name)?.[at] ?? 1]).sort((a, b) => a[0] - b[0]);
        const whole = sorted.reduce((all, [, count]) => all + count, 0);
        const at = (part) => {
          let left = whole * part;
          return sorted.find(([, count]) => (left -= count) <= 0)?.[0] ?? null;
        };
        return [name === "all" ? "all requests" : name, whole, at(0.5), at(0.9), at(0.99), sorted[sorted.length - 1]?.[0] ?? null];
      }
      const sorted = Float64Array.from(times).sort();
      const at = (part) => waits.quantile(sorted, part);
      return [name === "all" ? "all requests" : name, sorted.length, at(0.5), at(0.9), at(0.99), sorted[sorted.length - 1]];
    }).filter((row) => row[1] > 0).sort((a, b) => b[1] - a[1]);
    const bound = store.summed ? ", at most" : "";
    return {
      title: "Latency of requests", rows, times: groups.get("all"), ignored,
      columns: [{ name: "requests of", unit: "text" }, { name: "requests", unit: "count", bar: true }, ...["50 %", "90 %", "99 %", "longest"].map((name) => ({ name: name + bound, unit: "us" }))],
    };
  };

  /** Requests by how long they took, in steps that double four times. */
  const histogram = (desk, w, height = 190) => {
    const counts = new Map();
    desk.store.eachWait(desk.selection, (us, cell, time, many) => {
      const step = Math.floor(Math.log2(Math.max(1, us)) * STEPS);
      counts.set(step, (counts.get(step) ?? 0) + many);
    });
    if (!counts.size) return s("svg");
    const [first, last] = [Math.min(...counts.keys()), Math.max(...counts.keys()) + 1];
    const most = Math.max(...counts.values());
    const left = Math.max(30, chart.measure(format.count(most), 11) + 14);
    const x = chart.linear([first, last], [left, w - 8]);
    const y = chart.linear([0, most], [height - 20, 8]);
    const wide = x(1) - x(0);
    const marks = chart.ticks(0, most, 4);
    const bars = [...counts].map(([step, many]) => {
      const tip = [h("b", {}, format.some(many, "request")), h("div", {}, `${format.us(Math.round(2 ** (step / STEPS)))} to ${format.us(Math.round(2 ** ((step + 1) / STEPS)))}`)];
      return chart.rect(x(step), Math.min(y(many), height - 21), Math.max(1, wide - 1), Math.max(1, y(0) - y(many)), { class: "fill-bar", onpointermove: (event) => desk.tip(tip, event), onpointerleave: () => desk.tip(null) });
    });
    const powers = Array.from({ length: 11 }, (_, power) => power).filter((power) => { const at = Math.log2(10 ** power) * STEPS; return at >= first && at <= last; });
    return chart.root(w, height, "Requests by latency; the table has their percentiles", {}, chart.left(y, marks, [left, w - 8], format.count), bars,
      chart.bottom((power) => x(Math.log2(10 ** power) * STEPS), { all: powers }, height - 20, (power) => format.us(10 ** power), [left - 10, w]));
  };
  const pictureOf = (desk, node) => ({ title: `${desk.sheet.name}: how long requests take`, note: `from Q to C, in steps of a logarithm; ${desk.words()}`, source: desk.source(), warnings: desk.sheet.missing, node });

  const make = (desk) => {
    const box = h("div", { class: "chart" });
    const place = h("div");
    const note = h("p", { class: "note" });
    const heat = tracks.latency(desk);
    let width = 0;
    const chartIt = () => width && box.replaceChildren(histogram(desk, width));
    dom.onWidth(box, (now) => { width = now; if (desk.result) chartIt(); });
    const draw = () => {
      const made = percentiles(desk);
      note.textContent = `From Q, when the request’s first bio was queued, to C, its completion${desk.store.summed ? "; the rows are summed up, so that a percentile is the upper bound of its step, a request counts as what its first block is, and programs and files cannot be told apart" : ", to the µs; a request counts once in each kind that it has blocks of"}.`;
      place.replaceChildren(made.rows.length ? grid.draw(made, { heading: null }) : h("p", { class: "note" }, "No request of this selection has a known latency."));
      chartIt();
      heat.light();
    };
    return { name: "Latency", title: "Latency of requests", element: h("div", {}, note, box, heat.element, place), draw, chart: () => pictureOf(desk, () => box.querySelector("svg")), by: "op,class" };
  };
  return { make, percentiles, histogram, pictureOf };
})();
