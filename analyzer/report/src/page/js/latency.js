// SPDX-License-Identifier: MIT OR Apache-2.0
// How long requests took, from the moment a bio was queued to the completion: a distribution, and percentiles by kind.
"use strict";

const latency = (() => {
  const { h } = dom;
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
      const at = (part) => transactions.quantile(sorted, part);
      return [name === "all" ? "all requests" : name, sorted.length, at(0.5), at(0.9), at(0.99), sorted[sorted.length - 1]];
    }).filter((row) => row[1] > 0).sort((a, b) => b[1] - a[1]);
    const bound = store.summed ? ", at most" : "";
    return {
      title: "Latency of requests", rows, times: groups.get("all"), ignored,
      columns: [{ name: "requests of", unit: "text" }, { name: "requests", unit: "count", bar: true }, ...["50 %", "90 %", "99 %", "longest"].map((name) => ({ name: name + bound, unit: "us" }))],
    };
  };

  const make = (desk) => {
    const box = h("div", { class: "chart" });
    const place = h("div");
    const note = h("p", { class: "note" });
    let plot = null;
    let width = 0;
    let made = null;
    const chart = () => {
      plot?.destroy();
      plot = null;
      if (!width || !made?.rows.length) return;
      const { soft, line, accent, sans } = paint.colours();
      const counts = new Map();
      desk.store.eachWait(desk.selection, (us, cell, time, many) => {
        const step = Math.floor(Math.log2(Math.max(1, us)) * STEPS);
        counts.set(step, (counts.get(step) ?? 0) + many);
      });
      const [first, last] = [Math.min(...counts.keys()), Math.max(...counts.keys())];
      const steps = Array.from({ length: last - first + 2 }, (_, at) => first + at);
      const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: `11px ${sans}` };
      plot = new uPlot({
        width, height: 190, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, (high || 1) * 1.05] } },
        axes: [
          { ...axis, splits: () => Array.from({ length: 9 }, (_, power) => Math.log2(10 ** power) * STEPS).filter((at) => at >= first && at <= last + 1), values: (_, at) => at.map((step) => format.us(Math.round(2 ** (step / STEPS)))) },
          { ...axis, size: 70, values: (_, at) => at.map(format.count) },
        ],
        series: [{}, { fill: accent, width: 0, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }],
        hooks: { setCursor: [(self) => {
          const at = self.cursor.idx;
          if (at === null || at === undefined || self.cursor.left < 0) return desk.tip(null);
          const bounds = self.root.getBoundingClientRect();
          return desk.tip([h("b", {}, format.some(counts.get(steps[at]) ?? 0, "request")), h("div", {}, `${format.us(Math.round(2 ** (steps[at] / STEPS)))} to ${format.us(Math.round(2 ** ((steps[at] + 1) / STEPS)))}`)], { clientX: bounds.left + 70 + self.cursor.left, clientY: bounds.top + self.cursor.top });
        }] },
      }, [steps, steps.map((step) => counts.get(step) ?? 0)], box);
    };
    dom.onWidth(box, (now) => { width = now; if (made) chart(); });
    const draw = () => {
      made = percentiles(desk);
      note.textContent = `From Q, when the request's first bio was queued, to C, its completion${desk.store.summed ? "; the rows are summed up, so that a percentile is the upper bound of its step, a request counts as what its first block is, and programs and files cannot be told apart" : ", to the µs; a request counts once in each kind that it has blocks of"}.`;
      place.replaceChildren(made.rows.length ? grid.draw(made, { heading: null }) : h("p", { class: "note" }, "No request of this selection has a known latency."));
      chart();
    };
    return { name: "Latency", title: "Latency of requests", element: h("div", {}, note, box, place), draw, table: () => percentiles(desk), by: "op,class" };
  };
  return { make };
})();
