// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws bytes over time, stacked by colour.
"use strict";

const timeline = (() => {
  const { h, button, swatch, variable } = dom;

  /** Combines bins, so that each is wide enough to be seen. */
  const coarser = (values, by) => {
    const out = new Array(Math.ceil(values.length / by)).fill(0);
    values.forEach((value, at) => { out[Math.floor(at / by)] += value; });
    return out;
  };

  const draw = (sheet) => {
    const data = sheet.timeline;
    const has = (values) => values.some((value) => value > 0);
    const parts = data.written.map((values, colour) => ({ name: sheet.colours[colour], colour, values })).filter((part) => has(part.values));
    const readout = h("div", { class: "readout short", "aria-live": "polite" });
    const box = h("div");
    let plot = null;
    let shape = null;

    const tell = (at) => {
      if (at === null || at === undefined || !shape) {
        readout.replaceChildren(h("span", { class: "soft" }, "Point at a moment. Drag looks closer, a double click shows all."));
        return;
      }
      const bin = shape.bin_ns;
      const items = parts.map((part, nth) => [part, shape.parts[nth][at]]).filter(([, bytes]) => bytes > 0);
      const sum = items.reduce((all, [, bytes]) => all + bytes, 0);
      readout.replaceChildren(
        h("b", {}, `${format.ns(Math.round(at * bin))} to ${format.ns(Math.round((at + 1) * bin))}: ${format.bytes(sum)} written, ${format.count(shape.flushes[at])} cache flushes`),
        ...items.flatMap(([part, bytes]) => [" · ", swatch(part.colour), ` ${part.name} ${format.bytes(bytes)}`]),
        shape.read[at] ? ` · ${format.bytes(shape.read[at])} read` : "");
    };

    const make = (width) => {
      const by = Math.max(1, Math.ceil((data.flushes.length * 3) / width));
      const bin_ns = data.bin_ns * by;
      shape = { bin_ns, parts: parts.map((part) => coarser(part.values, by)), read: coarser(data.read, by), flushes: coarser(data.flushes, by) };
      const seconds = bin_ns / 1e9;
      const xs = shape.flushes.map((_, at) => at * seconds);
      // Each part is drawn from the ground up to the sum of the parts below it, the highest first.
      const sums = [];
      shape.parts.forEach((values, nth) => sums.push(values.map((value, at) => value / seconds + (nth ? sums[nth - 1][at] : 0))));
      const stepped = uPlot.paths.stepped({ align: 1 });
      const series = sums.map((_, nth) => ({ label: parts[nth].name, fill: variable(`--k${parts[nth].colour}`), width: 0, paths: stepped, points: { show: false } })).reverse();
      const flushes = { label: "cache flushes", scale: "flushes", stroke: variable("--flush"), width: 1.25, paths: stepped, points: { show: false } };
      const axis = { stroke: variable("--soft"), grid: { stroke: variable("--line"), width: 1 }, ticks: { stroke: variable("--line") }, font: `11px ${variable("--sans")}` };
      plot?.destroy();
      plot = new uPlot({
        width, height: 250, legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, (high || 1) * 1.05] }, flushes: { range: (_, low, high) => [0, (high || 1) * 1.3] } },
        axes: [
          { ...axis, values: (_, at) => at.map((x) => format.ns(Math.round(x * 1e9))) },
          { ...axis, size: 82, values: (_, at) => at.map((y) => (y ? `${format.bytes(y)}/s` : "0")) },
          { ...axis, side: 1, scale: "flushes", size: 56, grid: { show: false }, values: (_, at) => at.map((y) => (y ? `${format.count(y)}/s` : "0")) },
        ],
        series: [{ label: "time" }, ...series, flushes],
        hooks: { setCursor: [(self) => tell(self.cursor.idx)] },
      }, [xs, ...[...sums].reverse(), shape.flushes.map((count) => count / seconds)], box);
    };
    let width = 0;
    dom.onWidth(box, (now) => { width = now; make(now); });
    dom.onTheme(() => width && make(width));
    tell(null);
    const zoom = (factor) => {
      const { min, max } = plot.scales.x;
      const [middle, half] = [(min + max) / 2, ((max - min) / 2) * factor];
      const end = plot.data[0][plot.data[0].length - 1];
      plot.setScale("x", { min: Math.max(0, middle - half), max: Math.min(end, middle + half) });
    };
    const shift = (by) => {
      const { min, max } = plot.scales.x;
      const end = plot.data[0][plot.data[0].length - 1];
      const step = Math.min(Math.max((max - min) * by, -min), end - max);
      plot.setScale("x", { min: min + step, max: max + step });
    };
    const tools = h("div", { class: "row", role: "group", "aria-label": "Part of the time" },
      button("+", () => zoom(0.5), { "aria-label": "Look closer" }), button("−", () => zoom(2), { "aria-label": "See more" }),
      button("←", () => shift(-0.5), { "aria-label": "Earlier" }), button("→", () => shift(0.5), { "aria-label": "Later" }),
      button("Show all", () => make(width)));
    const legend = h("ul", { class: "legend" }, parts.map((part) => h("li", {}, swatch(part.colour), part.name)), h("li", {}, h("span", { class: "dash", "aria-hidden": "true" }), "cache flushes (right)"));
    return h("div", {}, tools, box, legend, readout);
  };
  return { draw };
})();
