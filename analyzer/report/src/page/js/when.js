// SPDX-License-Identifier: MIT OR Apache-2.0
// When: bytes over the whole time, in bars of a length that the window's width does not change; and the brush, which selects an
// interval for every view.
"use strict";

const when = (() => {
  const { h, s } = dom;
  /** The most bars, and the shortest one, µs. */
  const [BARS, LEAST] = [200, 1000];
  const [LEFT, RIGHT, FOOT, RUG] = [64, 8, 20, 17];
  /** Operations without bytes that were written or read, each with a row of its own below the bars. */
  const ROWS = [["device_flush", "flushes", "flush"], ["discard", "discards", "discard"]];
  const NEAR = 7;
  /** From this span on, bars are a rate. */
  const RATE = 1e6;

  /** The length of a bar, µs: a round number, or the nearest one of which the sums of a long trace are made.
   * @param {number} span @param {number|null} bin */
  const lengthOf = (span, bin) => {
    const length = Math.max(LEAST, chart.roundUp(span / BARS));
    return bin === null ? length : Math.ceil(length / bin) * bin;
  };

  const make = (desk) => {
    const { store, sheet } = desk;
    const { words } = store;
    const length = lengthOf(store.span, words.bin_us);
    const bars = Math.max(1, Math.ceil(store.span / length));
    const end = bars * length;
    const isRate = store.span >= RATE;
    const place = h("div");
    const before = h("div", { class: "shade" });
    const behind = h("div", { class: "shade" });
    const frame = h("div", { class: "brush" }, h("span", { class: "grip" }), h("span", { class: "grip right" }));
    const cross = h("div", { class: "cross", hidden: true });
    const plot = h("div", {
      class: "plot when", tabindex: 0, role: "slider", "aria-label": "Interval of time", "aria-valuemin": 0, "aria-valuemax": store.span,
      "aria-description": "The arrow keys move the interval, plus and minus make it shorter and longer, 0 shows all.",
    }, place, before, behind, frame, cross);
    const legend = h("span");
    const said = h("span", { class: "soft" }, `a bar is ${format.us(length)}; drag to select`);
    let width = 0;
    let drawn = null;

    /** How a bar's value is written. */
    const teller = () => {
      if (desk.wholeTime().metric === "requests") return (value) => format.count(value);
      return isRate ? (value) => (value ? `${format.bytes(value / (length / 1e6))}/s` : "0") : (value) => (value ? format.bytes(value) : "0");
    };
    const sumsOf = () => {
      const result = desk.wholeTime();
      return store.bins(result, 0, end, bars, [new Int8Array(store.cells.rows)], 1);
    };
    /** Counts the requests of each row below the bars. */
    const rugs = () => {
      const { ok } = desk.wholeTime();
      const { rows, cells, ops } = store;
      const of = Int8Array.from(cells.op, (op, c) => (ok[c] ? ROWS.findIndex(([name]) => ops.of(name) === op) : -1));
      const out = ROWS.map(() => new Float64Array(bars));
      for (let row = 0; row < rows.rows; row += 1) {
        const which = of[rows.cell[row]];
        if (which >= 0) out[which][Math.min(bars - 1, Math.floor(rows.time[row] / length))] += rows.requests ? rows.requests[row] : 1;
      }
      return out;
    };
    /** What the bars are of has no row below them. */
    const isBelow = (fill) => { const { metric } = desk.wholeTime(); return metric === "bytes" || (metric === "other bytes" && fill !== "discard"); };
    const legendOf = (bins) => {
      const wide = words.colours.length;
      const has = words.colours.map((_, k) => { for (let at = k; at < bins.length; at += wide) if (bins[at] > 0) return true; return false; });
      return words.colours.flatMap((name, k) => (has[k] ? [[k, name]] : []));
    };
    const heightOf = () => (window.innerWidth >= 1700 ? 190 : 116);

    const svg = (w) => {
      const height = heightOf();
      const wide = words.colours.length;
      const bins = sumsOf();
      const tell = teller();
      const below = rugs().map((counts, nth) => ({ counts, name: ROWS[nth][1], fill: ROWS[nth][2], most: Math.max(...counts) })).filter(({ most, fill }) => most > 0 && isBelow(fill));
      const base = height - FOOT - RUG * below.length;
      const [up, down] = paint.most(bins, 0, bars, wide);
      const y = chart.linear([-down, up || (down ? 0 : 1)], [base, 8]);
      const x = chart.linear([0, end], [LEFT, w - RIGHT]);
      // A rate is round if it is so for a second.
      const per = isRate && desk.wholeTime().metric !== "requests" ? length / 1e6 : 1;
      const marks = chart.ticks(-down / per, up / per, height > 150 ? 5 : 3);
      const step = (w - LEFT - RIGHT) / bars;
      const out = [];
      const stack = (bin, k0, sign) => {
        let sum = 0;
        for (let k = 0; k < wide; k += 1) {
          const value = bins[(bin * wide * 2) + k0 + k];
          if (value <= 0) continue;
          const [a, b] = [y(sign * sum), y(sign * (sum + value))];
          out.push(chart.rect(x(bin * length), Math.min(a, b), Math.max(0.7, step - Math.min(0.6, step / 4)), Math.abs(a - b), { class: `fill-${k}` }));
          sum += value;
        }
      };
      for (let bin = 0; bin < bars; bin += 1) {
        stack(bin, 0, 1);
        stack(bin, wide, -1);
      }
      const rows = below.map(({ counts, name, fill, most }, nth) => {
        const floor = base + RUG * (nth + 1);
        return [chart.text(LEFT - 5, floor - 2, name, { "text-anchor": "end", class: "small soft" }),
          [...counts].map((value, bin) => (value ? chart.rect(x(bin * length), floor - Math.max(1, (value / most) * (RUG - 3)), Math.max(0.7, step - Math.min(0.6, step / 4)), Math.max(1, (value / most) * (RUG - 3)), { class: `fill-${fill}` }) : null))];
      });
      const time = chart.ticks(0, end, Math.max(2, (w - LEFT) / 110));
      legend.replaceChildren(chart.legend([...legendOf(bins).map(([k, name]) => [`back-${k}`, name]), ...below.map(({ fill, name }) => [`back-${fill}`, fill === "flush" ? "flushes by the device" : name])]));
      return chart.root(w, height, "Over time; the table has the same figures", { "aria-hidden": "true", class: "bars" },
        chart.left((value) => y(value * per), { all: marks.all }, [LEFT, w - RIGHT], (value) => tell(Math.abs(value) * per)),
        out, down > 0 ? s("line", { class: "zero", x1: LEFT, x2: w - RIGHT, y1: y(0), y2: y(0) }) : null, rows,
        chart.bottom(x, time, height - FOOT, (value) => format.moment(value, time.step), [LEFT - 8, w]));
    };

    const inner = () => Math.max(1, width - LEFT - RIGHT);
    const x = (us) => LEFT + (us / end) * inner();
    const us = (at) => store.snap(Math.min(store.span, Math.max(0, ((at - LEFT) / inner()) * end)));
    const shade = () => {
      const { from, to } = desk.selection;
      const is = from !== null;
      plot.classList.toggle("brushed", is);
      const [left, right] = is ? [x(from), x(to)] : [LEFT, width - RIGHT];
      before.style.left = `${LEFT}px`;
      before.style.width = `${Math.max(0, left - LEFT)}px`;
      behind.style.left = `${right}px`;
      behind.style.right = `${RIGHT}px`;
      frame.style.left = `${left}px`;
      frame.style.width = `${Math.max(2, right - left)}px`;
      const [a, b] = desk.window();
      plot.setAttribute("aria-valuenow", a);
      plot.setAttribute("aria-valuetext", is ? `${format.moment(a, b - a)} to ${format.moment(b, b - a)}` : `all ${format.us(store.span)}`);
    };
    const redraw = () => { if (width && desk.result) place.replaceChildren(svg(width)); };
    dom.onWidth(plot, (now) => { width = now; redraw(); shade(); });

    // A drag makes an interval, or moves an edge of the one that is there.
    let drag = null;
    const at = (event) => event.clientX - plot.getBoundingClientRect().left;
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      plot.setPointerCapture(event.pointerId);
      const start = at(event);
      const { from, to } = desk.selection;
      const near = from !== null && [x(to), x(from)].findIndex((edge) => Math.abs(edge - start) <= NEAR);
      if (near === 0) drag = { fixed: from, moved: true };
      else if (near === 1) drag = { fixed: to, moved: true };
      else if (from !== null && event.shiftKey && start > x(from) && start < x(to)) drag = { pan: us(start) - from, length: to - from, moved: true };
      else drag = { fixed: us(start), start, moved: false };
    });
    const note = (time) => {
      const bin = Math.min(bars - 1, Math.floor(time / length));
      const bins = sums();
      const wide = words.colours.length;
      const counts = desk.wholeTime().metric === "requests";
      const parts = [];
      for (let k = 0; k < wide * 2; k += 1) {
        const value = bins[bin * wide * 2 + k];
        if (value > 0) parts.push(h("div", {}, dom.swatch(k % wide), ` ${words.colours[k % wide]}: ${counts ? format.count(value) : format.bytes(value)}${k < wide ? "" : " read"}`));
      }
      return [h("b", {}, `${format.moment(bin * length, length)}, for ${format.us(length)}`), parts.length ? parts : h("div", {}, "nothing")];
    };
    /** @type {[string, Float64Array|null]} */
    let held = ["", null];
    const sums = () => {
      const key = desk.keyOfTerms();
      if (held[0] !== key || !held[1]) held = [key, sumsOf()];
      return held[1];
    };
    plot.addEventListener("pointermove", (event) => {
      desk.point(us(at(event)), [0, end], note(us(at(event))), event);
      if (!drag) return;
      if (!drag.moved && Math.abs(at(event) - drag.start) < 3) return;
      drag.moved = true;
      if (drag.pan !== undefined) {
        const from = Math.max(0, Math.min(store.span - drag.length, us(at(event)) - drag.pan));
        desk.during(from, from + drag.length, true);
      } else {
        const other = us(at(event));
        if (other !== drag.fixed) desk.during(Math.min(drag.fixed, other), Math.max(drag.fixed, other), true);
      }
    });
    const release = () => {
      if (drag?.moved) desk.commit();
      drag = null;
    };
    plot.addEventListener("pointerup", release);
    plot.addEventListener("pointercancel", release);
    plot.addEventListener("pointerleave", () => desk.point(null));
    plot.addEventListener("dblclick", () => desk.during(null, null));
    plot.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      desk.point(null);
      desk.wheel(event, us(at(event)));
    }, { passive: false });
    plot.addEventListener("keydown", (event) => { if (event.key === "Home") desk.during(null, null); });
    desk.axes.push({ cross, range: () => [0, end], width: inner, left: LEFT });

    return {
      element: plot,
      /** The largest bar, for tests. */
      peak: () => paint.most(sumsOf(), 0, bars, words.colours.length).join(),
      tools: [legend],
      end: said,
      light: () => {
        const key = desk.keyOfTerms();
        if (key !== drawn) redraw();
        drawn = key;
        shade();
      },
      chart: () => ({ title: `${sheet.name}: over time`, note: `a bar is ${format.us(length)}; ${desk.words()}`, source: desk.source(), warnings: sheet.missing,
        legend: [...legendOf(sumsOf()).map(([k, name]) => [`--k${k}`, name]), ...(isBelow("flush") ? [["--flush", "flushes by the device"]] : [])], node: () => place.querySelector("svg") }),
      table: () => {
        const bins = sumsOf();
        const below = rugs();
        const wide = words.colours.length;
        const counts = desk.wholeTime().metric === "requests";
        const unit = counts ? "count" : "bytes";
        const rows = Array.from({ length: bars }, (_, bin) => [bin * length, paint.sum(bins, bin * wide * 2, wide), paint.sum(bins, bin * wide * 2 + wide, wide), ...below.map((one) => one[bin])]);
        const columns = [{ name: "from", unit: "moment" }, { name: counts ? "requests" : desk.wholeTime().metric === "bytes" ? "written" : "bytes", unit, bar: true, sum: true }, { name: "read", unit, sum: true }, ...ROWS.map(([, name]) => ({ name, unit: "count", sum: true }))];
        const keep = columns.map((_, nth) => nth < 2 || rows.some((row) => row[nth] > 0));
        return { title: "Over time", columns: columns.filter((_, nth) => keep[nth]), rows: rows.map((row) => row.filter((_, nth) => keep[nth])) };
      },
    };
  };
  return { make, lengthOf };
})();
