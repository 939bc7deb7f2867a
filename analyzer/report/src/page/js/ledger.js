// SPDX-License-Identifier: MIT OR Apache-2.0
// The page of a ledger: what was written over time, stacked by groups, beside what the kernel counted; and the tables.
"use strict";

(() => {
  const { h } = dom;
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const { chart } = data;
  const count = chart.columns.length;
  const HEIGHT = 320;
  const when = (at) => new Date((chart.begin + at * chart.seconds) * 1000).toISOString().slice(0, 16).replace("T", " ");

  /** A day at its beginning, and the hour otherwise. */
  const label = (seconds) => {
    const text = new Date(seconds * 1000).toISOString();
    return text.slice(11, 16) === "00:00" ? text.slice(5, 10) : text.slice(11, 16);
  };

  /** What is to be said of a column of time beside its bytes. */
  const remarks = (column) => [
    column.watched ? null : "nobody watched",
    column.kernel === null ? null : `the kernel counted ${format.bytes(column.kernel)}`,
    column.uncounted > 0 ? "not all of it can be compared with the kernel's counters" : null,
    column.lost > 0 ? `${format.some(column.lost, "record")} lost` : null,
    column.gaps > 0 ? `nobody watched for ${format.us(column.gap_ms * 1000)} before${column.gap_write_bytes === null ? "" : `: the kernel counted ${format.bytes(column.gap_write_bytes)} meanwhile`}` : null,
    column.restarts > 0 ? "the counters began anew: what was written before that is not known" : null,
  ].filter(Boolean);

  const tip = h("div", { class: "tip", role: "status", hidden: true });
  document.body.append(tip);
  const show = (at, x, y) => {
    const column = chart.columns[at];
    tip.replaceChildren(h("b", {}, when(at)), ...chart.groups.filter((group) => group.bytes[at] > 0).map((group) => h("div", {}, `${group.name}: ${format.bytes(group.bytes[at])}`)),
      ...remarks(column).map((text) => h("div", { class: "soft" }, text)));
    tip.hidden = false;
    tip.style.left = `${Math.max(0, Math.min(x + 12, window.innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(0, Math.min(y + 12, window.innerHeight - tip.offsetHeight - 8))}px`;
  };

  /** Each group's bytes upon those of the groups before it: the last is the whole. */
  const stacked = () => {
    const tops = [];
    let below = new Array(count).fill(0);
    for (const { bytes } of chart.groups) {
      below = below.map((value, at) => value + bytes[at]);
      tops.push(below);
    }
    return tops;
  };

  /** Shades the columns that nobody watched, and marks those with losses and gaps at the top. */
  const ground = (self) => {
    const { ctx, bbox } = self;
    const colour = dom.variable;
    const left = (at) => self.valToPos(chart.begin + at * chart.seconds, "x", true);
    chart.columns.forEach((column, at) => {
      const [x, width] = [left(at), Math.max(1, left(at + 1) - left(at))];
      if (!column.watched) {
        ctx.fillStyle = colour("--neutral-2");
        ctx.fillRect(x, bbox.top, width, bbox.height);
      }
      if (column.lost > 0 || column.gaps > 0) {
        ctx.fillStyle = colour("--bad");
        ctx.fillRect(x, bbox.top, Math.max(3, width), 6 * devicePixelRatio);
      }
    });
  };

  const box = h("div", { class: "chart", role: "img", "aria-label": "What was written over time; the tables have the same figures" });
  let plot = null;
  const draw = (width) => {
    plot?.destroy();
    plot = null;
    if (!count) return;
    const { kinds, soft, line, ink, sans } = paint.colours();
    const xs = Array.from({ length: count + 1 }, (_, at) => chart.begin + at * chart.seconds);
    // A step needs an end.
    const closed = (values) => [...values, null];
    const tops = stacked();
    const bars = uPlot.paths.bars({ size: [1, Infinity, 1], align: 1, gap: count < 200 ? 1 : 0 });
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: `11px ${sans}` };
    plot = new uPlot({
      width, height: HEIGHT, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { range: () => [chart.begin, chart.begin + count * chart.seconds] }, y: { range: (_, low, high) => [0, (high || 1) * 1.1] } },
      axes: [{ ...axis, values: (_, at) => at.map(label) }, { ...axis, size: 74, values: (_, at) => at.map(format.bytes) }],
      // The largest first, so that the others are upon it.
      series: [{}, ...tops.map((_, at) => ({ fill: kinds[colourOf(tops.length - 1 - at)], width: 0, paths: bars, points: { show: false } })),
        { stroke: ink, width: 1, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, spanGaps: false }],
      hooks: {
        drawClear: [ground],
        setCursor: [(self) => {
          const { left } = self.cursor;
          const at = left < 0 ? -1 : Math.floor((self.posToVal(left, "x") - chart.begin) / chart.seconds);
          if (at < 0 || at >= count) { tip.hidden = true; return; }
          const bounds = self.over.getBoundingClientRect();
          show(at, bounds.left + left, bounds.top + Math.max(0, self.cursor.top));
        }],
      },
    }, [xs, ...tops.reverse().map(closed), closed(chart.columns.map((column) => column.kernel))], box);
  };
  /** Those that are summed up have the colour of what is unknown. */
  const colourOf = (at) => (chart.groups[at].others ? 5 : [0, 1, 2, 3, 4, 6][at]);

  let width = 0;
  const legend = h("ul", { class: "legend" },
    chart.groups.map((group, at) => h("li", {}, dom.swatch(colourOf(at)), ` ${group.name} `, h("span", { class: "soft" }, format.bytes(group.bytes.reduce((all, one) => all + one, 0))))),
    h("li", { class: "soft" }, "line: written by the kernel's count; grey: nobody watched; red at the top: records lost, or a gap before"));
  document.querySelector(".ledger").append(
    h("section", { class: "panel" }, h("h2", {}, `Written over time, each column ${chart.length}`), count ? box : h("p", { class: "note" }, "No hour is in it yet."), legend),
    ...data.grids.map((table) => h("section", { class: "panel" }, grid.draw(grid.ofPage(table), { heading: "h2" }))),
  );
  dom.onWidth(box, (now) => { width = now; draw(width); });

  const wish = matchMedia("(prefers-color-scheme: dark)");
  const toggle = document.querySelector(".theme");
  const paintIn = (theme) => {
    root.dataset.theme = theme;
    toggle.textContent = theme === "dark" ? "Light" : "Dark";
    if (width) draw(width);
  };
  toggle.hidden = false;
  toggle.addEventListener("click", () => paintIn(root.dataset.theme === "dark" ? "light" : "dark"));
  wish.addEventListener("change", () => paintIn(wish.matches ? "dark" : "light"));
  paintIn(wish.matches ? "dark" : "light");
  let before = null;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    paintIn("light");
    document.dispatchEvent(new Event("layout"));
  });
  window.addEventListener("afterprint", () => paintIn(before));
  root.dataset.ready = "yes";
  performance.mark("mostrace:ready");
})();
