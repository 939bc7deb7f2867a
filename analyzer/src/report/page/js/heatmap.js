// SPDX-License-Identifier: MIT OR Apache-2.0
// A grid of cells on a canvas, with zoom and a cursor, for the mouse and for the keyboard.
"use strict";

const heatmap = (() => {
  const { h, button, variable } = dom;
  const LEFT = 78;
  const BOTTOM = 26;
  const TOP = 6;
  const RIGHT = 8;
  const GAP = 7;

  /** Decodes numbers that are stored as differences. */
  const places = (skips) => {
    let at = 0;
    return skips.map((skip) => (at += skip));
  };

  /** Returns round steps for an axis, at most `most` of them. */
  const ticks = (from, to, most) => {
    const rough = (to - from) / Math.max(1, most);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
    const out = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) out.push(at);
    return out;
  };

  /**
   * model: columns, bin_ns; bands: [{row, rows}] from the bottom up; cells: {at, ...}, each drawn with `paint(nth)`: [css colour, opacity];
   * `line(row, band)`: where a row begins, in words; `lines(band, from, to, unit)`: rows that have a mark, a row being `unit` pixels high;
   * `describe(nth, row, band, when)`: nodes; `name`. `first`: what stands ahead of the buttons.
   */
  const draw = (frameClass, model, first = null) => {
    const canvas = h("canvas", { class: "field", tabindex: 0, role: "img", "aria-label": model.name });
    const frame = h("div", { class: `frame ${frameClass}` }, canvas);
    const readout = h("div", { class: "readout short", "aria-live": "polite" });
    const total = model.bands.reduce((sum, band) => sum + band.rows, 0);
    const whole = { x0: 0, x1: model.columns, y0: 0, y1: total };
    let view = { ...whole };
    let cursor = null;
    let index = new Map();
    let drag = null;

    const hint = () => readout.replaceChildren(h("span", { class: "soft" },
      "Point at a cell, or move with the arrow keys. Drag over a part to look closer, or use + and −; 0 or a double click shows all."));
    const setCells = () => { index = new Map(model.cells.at.map((at, nth) => [at, nth])); };
    const visible = () => model.bands.filter((band) => band.row < view.y1 && band.row + band.rows > view.y0);
    const size = () => ({ width: frame.clientWidth, height: frame.clientHeight });

    /** Converts rows to pixels; bands are a little apart. */
    const scale = () => {
      const { width, height } = size();
      const bands = visible();
      const room = height - TOP - BOTTOM - GAP * (bands.length - 1);
      const x = (column) => LEFT + ((column - view.x0) * (width - LEFT - RIGHT)) / (view.x1 - view.x0);
      const unit = room / (view.y1 - view.y0);
      const y = (row, band) => height - BOTTOM - (row - view.y0) * unit - GAP * bands.indexOf(band);
      const at = (px, py) => {
        const column = Math.floor(view.x0 + ((px - LEFT) * (view.x1 - view.x0)) / (width - LEFT - RIGHT));
        for (const band of bands) {
          const row = Math.floor(view.y0 + (height - BOTTOM - GAP * bands.indexOf(band) - py) / unit);
          if (row >= band.row && row < band.row + band.rows) return { column, row };
        }
        return null;
      };
      return { x, y, at, unit, bands, width, height, wide: (width - LEFT - RIGHT) / (view.x1 - view.x0) };
    };

    const paint = () => {
      const { width, height } = size();
      if (!width) return;
      const ratio = window.devicePixelRatio || 1;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const { x, y, unit, bands, wide } = scale();
      pen.font = `11px ${variable("--sans")}`;
      pen.textBaseline = "middle";
      for (const band of bands) {
        const [top, bottom] = [y(Math.min(band.row + band.rows, view.y1), band), y(Math.max(band.row, view.y0), band)];
        pen.fillStyle = variable("--raised");
        pen.fillRect(LEFT, top, width - LEFT - RIGHT, bottom - top);
        pen.fillStyle = variable("--soft");
        pen.textAlign = "right";
        let last = Infinity;
        for (const row of model.lines(band, Math.max(band.row, view.y0), Math.min(band.row + band.rows, view.y1), unit)) {
          const place = Math.min(Math.max(y(row, band), TOP + 4), height - BOTTOM - 4);
          if (last - place < 13) continue;
          pen.fillText(model.line(row, band), LEFT - 6, place);
          last = place;
        }
      }
      pen.save();
      pen.beginPath();
      pen.rect(LEFT, 0, width - LEFT - RIGHT, height - BOTTOM + 1);
      pen.clip();
      const colours = new Map();
      model.cells.at.forEach((at, nth) => {
        const [column, row] = [at % model.columns, Math.floor(at / model.columns)];
        if (column < view.x0 - 1 || column > view.x1 || row < view.y0 - 1 || row >= view.y1) return;
        const band = bands.find((b) => row >= b.row && row < b.row + b.rows);
        if (!band) return;
        const [name, opacity] = model.paint(nth);
        if (!colours.has(name)) colours.set(name, variable(name));
        pen.fillStyle = colours.get(name);
        pen.globalAlpha = opacity;
        pen.fillRect(x(column), y(row + 1, band), Math.max(wide, 1.5) + 0.3, Math.max(unit, 1.5) + 0.3);
      });
      pen.globalAlpha = 1;
      if (cursor) {
        const band = bands.find((b) => cursor.row >= b.row && cursor.row < b.row + b.rows);
        if (band) {
          pen.strokeStyle = variable("--ink");
          pen.lineWidth = 1.5;
          pen.strokeRect(x(cursor.column) - 2, y(cursor.row + 1, band) - 2, Math.max(wide, 2) + 4, Math.max(unit, 2) + 4);
        }
      }
      if (drag?.to) {
        pen.fillStyle = variable("--accent");
        pen.globalAlpha = 0.2;
        pen.fillRect(drag.from.x, drag.from.y, drag.to.x - drag.from.x, drag.to.y - drag.from.y);
        pen.globalAlpha = 1;
      }
      pen.restore();
      pen.textAlign = "center";
      pen.fillStyle = variable("--soft");
      const seconds = (column) => (column * model.bin_ns) / 1e9;
      for (const at of ticks(seconds(view.x0), seconds(view.x1), (width - LEFT) / 90)) {
        const px = x((at * 1e9) / model.bin_ns);
        if (px < LEFT + 8 || px > width - RIGHT - 14) continue;
        pen.fillText(format.ns(Math.round(at * 1e9)), px, height - BOTTOM + 14);
      }
    };

    const tell = (column, row) => {
      const nth = index.get(row * model.columns + column);
      const band = model.bands.find((b) => row >= b.row && row < b.row + b.rows);
      if (!band || column < 0 || column >= model.columns) return hint();
      const when = `${format.ns(Math.round(column * model.bin_ns))} to ${format.ns(Math.round((column + 1) * model.bin_ns))}`;
      readout.replaceChildren(...model.describe(nth, row, band, when));
    };
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    /** Returns the cell at this place, or the nearest one that is not empty. */
    const near = (px, py) => {
      const here = scale().at(px, py);
      if (!here) return null;
      let best = null;
      for (let dy = -3; dy <= 3; dy++) {
        for (let dx = -3; dx <= 3; dx++) {
          const found = index.has((here.row + dy) * model.columns + here.column + dx) && here.column + dx >= 0 && here.column + dx < model.columns;
          const far = dx * dx + dy * dy;
          if (found && (!best || far < best.far)) best = { column: here.column + dx, row: here.row + dy, far };
        }
      }
      return best ?? here;
    };
    const setView = (next) => {
      const clamp = (from, to, most, least) => {
        const length = Math.min(Math.max(to - from, least), most);
        const start = Math.min(Math.max(from, 0), most - length);
        return [start, start + length];
      };
      const [x0, x1] = clamp(next.x0, next.x1, model.columns, 4);
      const [y0, y1] = clamp(next.y0, next.y1, total, Math.min(4, total));
      view = { x0, x1, y0, y1 };
      reset.disabled = view.x1 - view.x0 === model.columns && view.y1 - view.y0 === total;
      paint();
    };
    const zoom = (factor) => {
      const x = cursor ? cursor.column + 0.5 : (view.x0 + view.x1) / 2;
      const y = cursor ? cursor.row + 0.5 : (view.y0 + view.y1) / 2;
      setView({ x0: x - (x - view.x0) * factor, x1: x + (view.x1 - x) * factor, y0: y - (y - view.y0) * factor, y1: y + (view.y1 - y) * factor });
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") return;
      drag = { from: point(event) };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const here = point(event);
      if (drag) drag.to = here;
      cursor = near(here.x, here.y);
      if (cursor) tell(cursor.column, cursor.row);
      else hint();
      paint();
    });
    canvas.addEventListener("pointerup", (event) => {
      const here = point(event);
      if (event.pointerType === "touch") {
        cursor = near(here.x, here.y);
        if (cursor) tell(cursor.column, cursor.row);
      } else if (drag?.to && Math.abs(here.x - drag.from.x) > 8 && Math.abs(here.y - drag.from.y) > 8) {
        const { at } = scale();
        const [a, b] = [at(drag.from.x, drag.from.y), at(here.x, here.y)];
        if (a && b) {
          setView({ x0: Math.min(a.column, b.column), x1: Math.max(a.column, b.column) + 1, y0: Math.min(a.row, b.row), y1: Math.max(a.row, b.row) + 1 });
        }
      }
      drag = null;
      paint();
    });
    canvas.addEventListener("pointerleave", () => { if (!drag) { cursor = null; hint(); paint(); } });
    canvas.addEventListener("dblclick", () => setView(whole));
    canvas.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 10 : 1;
      const move = (dx, dy) => {
        const from = cursor ?? { column: Math.floor((view.x0 + view.x1) / 2), row: Math.floor((view.y0 + view.y1) / 2) };
        const column = Math.min(Math.max(from.column + dx * step, 0), model.columns - 1);
        const row = Math.min(Math.max(from.row + dy * step, 0), total - 1);
        cursor = { column, row };
        tell(column, row);
        const [width, height] = [view.x1 - view.x0, view.y1 - view.y0];
        const x0 = column < view.x0 ? column : column >= view.x1 ? column + 1 - width : view.x0;
        const y0 = row < view.y0 ? row : row >= view.y1 ? row + 1 - height : view.y0;
        setView({ x0, x1: x0 + width, y0, y1: y0 + height });
      };
      const act = {
        ArrowLeft: () => move(-1, 0), ArrowRight: () => move(1, 0), ArrowUp: () => move(0, 1), ArrowDown: () => move(0, -1),
        "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => setView(whole), Escape: () => setView(whole),
      }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    const reset = button("Show all", () => setView(whole), { disabled: true });
    const tools = h("div", { class: "row" }, first, button("+", () => zoom(0.5), { "aria-label": "Look closer" }), button("−", () => zoom(2), { "aria-label": "See more" }), reset);
    setCells();
    hint();
    dom.onWidth(frame, paint);
    dom.onTheme(paint);
    return {
      element: h("div", { class: "heat" }, tools, frame, readout),
      /** Replaces the cells of the grid. */
      show: (cells) => { model.cells = cells; cursor = null; setCells(); hint(); paint(); },
    };
  };
  return { draw, places, ticks };
})();
