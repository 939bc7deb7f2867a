// SPDX-License-Identifier: MIT OR Apache-2.0
// The whole trace on one axis: written up, read down, flushes and discards as rugs; and the brush, which selects an interval
// for every view.
"use strict";

const overview = (() => {
  const { h } = dom;
  const UP = 40;
  const DOWN = 18;
  const RUG = 5;
  const HEIGHT = UP + DOWN + RUG + 19;
  const NEAR = 7;

  const make = (desk) => {
    const { store } = desk;
    const whole = [0, store.span];
    const chart = dom.canvas({ "aria-hidden": "true" });
    const before = h("div", { class: "shade" });
    const behind = h("div", { class: "shade" });
    const frame = h("div", { class: "brush" }, h("span", { class: "grip" }), h("span", { class: "grip right" }));
    const cross = h("div", { class: "cross", hidden: true });
    const plot = h("div", {
      class: "plot overview", tabindex: 0, role: "slider", "aria-label": "Interval of time", "aria-valuemin": 0, "aria-valuemax": store.span,
      "aria-description": "The arrow keys move the interval, plus and minus make it shorter and longer, 0 shows all.",
    }, chart.element, before, behind, frame, cross);
    const label = h("div", { class: "label" });
    const element = h("div", { class: "timed strip" }, label, plot);
    let width = 0;
    let drawn = null;

    const paintOn = (pen, w) => {
      const { colours } = store.words;
      const count = Math.max(1, Math.floor(w / 2));
      const result = desk.wholeTime();
      const lane = [new Int8Array(store.cells.rows)];
      const bins = store.bins(result, ...whole, count, lane, 1);
      const [up, down] = paint.most(bins, 0, count, colours.length);
      const most = Math.max(up, down);
      const tall = down > 0 ? UP : UP + DOWN;
      const high = up > 0 ? tall : 2;
      const { strong, flush, discard } = paint.colours();
      const low = UP + DOWN - high;
      paint.stack(pen, bins, 0, count, colours.length, false, { x: 0, width: w, base: high, height: high - 1 }, most, desk.scale);
      paint.stack(pen, bins, 0, count, colours.length, true, { x: 0, width: w, base: high + 1, height: low - 2 }, most, desk.scale);
      pen.fillStyle = strong;
      pen.fillRect(0, high, w, 1);
      const [flushes, discards] = rugs(count);
      paint.rug(pen, flushes, { x: 0, width: w, y: UP + DOWN + 1, height: RUG }, flush);
      paint.rug(pen, discards, { x: 0, width: w, y: UP + DOWN + 1, height: RUG }, discard);
      paint.axis(pen, ...whole, { x: 0, width: w }, UP + DOWN + RUG + 1, 0);
      return { most, perSecond: count / (store.span / 1e6) };
    };
    /** Counts the flushes that the device executed, and the discards, in each bin. */
    const rugs = (count) => {
      const { ok } = desk.wholeTime();
      const { rows, cells, ops } = store;
      const sort = Int8Array.from(cells.op, (op, c) => (!ok[c] ? -1 : op === ops.of("device_flush") ? 0 : op === ops.of("discard") ? 1 : -1));
      const out = [new Float64Array(count), new Float64Array(count)];
      for (let row = 0; row < rows.rows; row += 1) {
        const which = sort[rows.cell[row]];
        if (which >= 0) out[which][Math.min(count - 1, Math.floor((rows.time[row] / store.span) * count))] += rows.requests ? rows.requests[row] : 1;
      }
      return out;
    };

    const x = (us) => (us / store.span) * width;
    const us = (at) => store.snap(Math.min(store.span, Math.max(0, (at / width) * store.span)));
    const place = () => {
      const { from, to } = desk.selection;
      const is = from !== null;
      plot.classList.toggle("brushed", is);
      const [left, right] = is ? [x(from), x(to)] : [0, width];
      before.style.width = `${left}px`;
      behind.style.left = `${right}px`;
      frame.style.left = `${left}px`;
      frame.style.width = `${Math.max(2, right - left)}px`;
      const [a, b] = desk.window();
      const text = is ? `${format.moment(a, b - a)} to ${format.moment(b, b - a)}` : `all ${format.us(store.span)}`;
      plot.setAttribute("aria-valuenow", a);
      plot.setAttribute("aria-valuetext", text);
    };
    const redraw = () => {
      if (!width) return;
      const { most, perSecond } = paintOn(chart.size(width, HEIGHT), width, HEIGHT);
      label.replaceChildren(h("b", {}, "Whole trace"), h("span", { class: "soft" }, `written ▲ read ▼ · ${desk.scale} scale, top ${format.bytes(most * perSecond)}/s`),
        h("span", { class: "soft rugs" }, h("i", { class: "mark flush" }), "flushes ", h("i", { class: "mark discard" }), "discards"));
    };
    dom.onWidth(plot, (now) => { width = now; redraw(); place(); });

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
    plot.addEventListener("pointermove", (event) => {
      desk.point(us(at(event)), whole, null, event);
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
    const end = () => {
      if (drag?.moved) desk.commit();
      drag = null;
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", end);
    plot.addEventListener("pointerleave", () => desk.point(null));
    plot.addEventListener("dblclick", () => desk.during(null, null));
    plot.addEventListener("wheel", (event) => {
      event.preventDefault();
      desk.wheel(event, us(at(event)));
    }, { passive: false });
    plot.addEventListener("keydown", (event) => {
      if (event.key === "Home") desk.during(null, null);
    });
    desk.axes.push({ cross, range: () => whole, width: () => width });

    return {
      element,
      light: () => {
        const key = desk.keyOfTerms() + desk.scale + document.documentElement.dataset.theme;
        if (key !== drawn) redraw();
        drawn = key;
        place();
      },
      chart: () => ({ title: `${desk.sheet.name}: bytes over time`, note: `written up, read down, ${desk.scale} scale; ${desk.words()}`, source: desk.source(), width: 1000, height: HEIGHT, draw: (pen, w) => paintOn(pen, w) }),
      table: () => {
        const count = 200;
        const lane = [new Int8Array(store.cells.rows)];
        const [from, to] = desk.window();
        const bins = store.bins(desk.result, from, to, count, lane, 1);
        const wide = store.words.colours.length;
        const rows = [];
        for (let bin = 0; bin < count; bin += 1) {
          const start = from + ((to - from) * bin) / count;
          rows.push([start, paint.sum(bins, bin * wide * 2, wide), paint.sum(bins, bin * wide * 2 + wide, wide)]);
        }
        return { title: "Bytes over time", columns: [{ name: "from", unit: "moment" }, { name: "written", unit: "bytes", bar: true, sum: true }, { name: "read", unit: "bytes", sum: true }], rows };
      },
    };
  };
  return { make };
})();
