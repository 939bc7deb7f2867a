// SPDX-License-Identifier: MIT OR Apache-2.0
// Programs on one axis of time, each opening to its layers, files and processes. Close enough, each request is drawn by itself.
"use strict";

const lanes = (() => {
  const { h, button } = dom;
  const TALL = 36;
  const LOW = 24;
  const MOST = 6;
  /** The width of the names, and of a figure beside one, pixels. */
  const [LABEL, FIGURE] = [208, 70];
  /** Below this width a name has its figure only in its note. */
  const NARROW = 150;
  const MORE = 24;
  /** Lanes of one program, by kind. */
  const PARTS = [["layer", 6], ["file", 8], ["proc", 6]];
  /** The most requests that are drawn one by one. */
  const SINGLE = 2500;
  const ROWS = 4;
  /** The most bars of a lane. */
  const BARS = 500;
  /** The share from which on a program is alone. */
  const ALONE = 0.95;

  const make = (desk) => {
    const { store } = desk;
    const { words } = store;
    const canvas = dom.canvas({ "aria-hidden": "true" });
    const cross = h("div", { class: "cross", hidden: true });
    const plot = h("div", { class: "plot" }, canvas.element, cross);
    const labels = h("div", { class: "labels", role: "list", "aria-label": "Programs" });
    const more = button("", () => { all = !all; desk.redraw(); }, { class: "link more" });
    const said = h("span", { class: "soft" });
    const open = new Set();
    let all = false;
    let width = 0;
    let list = [];
    let boxes = [];

    const name = (dim, label) => {
      if (label !== null) return label;
      return dim === "file" ? "no known file" : "nobody known";
    };
    const groupName = (group, members) => {
      const text = name("app", appName(group));
      const some = members.map((who) => words.whos[who].name ?? "");
      const marked = some.length && some.every((who) => who.endsWith(" (submitter)"));
      return marked ? `${text} (submitter)` : text;
    };
    const appName = (group) => store.apps.names[group];
    const largest = (sums, most) => [...sums.keys()].filter((at) => sums[at] > 0).sort((a, b) => sums[b] - sums[a]).slice(0, most);

    /** What was given to write(), by program, in the window. */
    const asked = () => {
      const { calls } = store.tables;
      const sums = new Float64Array(store.apps.names.length);
      if (!calls) return sums;
      const [from, to] = desk.window();
      const writes = new Set(words.about.calls.flatMap((call, at) => (call === "write" ? [at] : [])));
      for (let row = store.after(calls.start, from), end = store.after(calls.start, to); row < end; row += 1) {
        if (writes.has(calls.call[row])) sums[store.apps.of[calls.who[row]]] += calls.bytes[row];
      }
      return sums;
    };

    /** The lanes to draw, with their labels, sums and terms. */
    const plan = () => {
      const { result } = desk;
      const sums = store.by(result, "app");
      const order = largest(sums, Infinity);
      const members = store.apps.names.map(() => new Set());
      for (let c = 0; c < store.cells.rows; c += 1) if (result.value[c] > 0) members[store.apps.of[store.cells.who[c]]].add(store.cells.who[c]);
      const total = sums.reduce((sum, value) => sum + value, 0);
      const calls = asked();
      const written = result.metric === "bytes" ? store.by(result, "app", result.bytes.map((value, c) => (store.cells.op[c] === store.ops.WRITE ? value : 0))) : sums;
      const out = [];
      const app = store.codes("app");
      for (const group of order.slice(0, all ? MORE : MOST)) {
        const label = appName(group);
        const many = members[group].size;
        const times = desk.selection.terms.length === 0 && calls[group] > 0 && written[group] > 0 ? written[group] / calls[group] : null;
        // The lane of a program that did nearly all would be the picture of all: only its parts have lanes.
        const alone = sums[group] >= total * ALONE;
        if (!alone) out.push({ dim: "app", value: label, code: group, label: groupName(group, [...members[group]]), many, bytes: sums[group], total, times, height: TALL, opens: true });
        if (!alone && !open.has(label)) continue;
        const inside = { ...result, value: result.value.map((value, c) => (app[c] === group ? value : 0)) };
        for (const [dim, most] of PARTS) {
          if (dim === "proc" && many < 2) continue;
          const parts = store.by(inside, dim);
          for (const code of largest(parts, most)) out.push({ dim, value: store.dims[dim].labels[code], code, of: group, label: name(dim, store.dims[dim].labels[code]), bytes: parts[code], total, height: LOW, opens: false });
        }
      }
      return { out, rest: order.length - Math.min(order.length, all ? MORE : MOST), restBytes: order.slice(all ? MORE : MOST).reduce((sum, at) => sum + sums[at], 0), total, programs: order.length };
    };

    /** For each cell, its lane of each kind. */
    const lanesOf = (out) => {
      const app = store.codes("app");
      return ["app", ...PARTS.map(([dim]) => dim)].map((dim) => {
        const mine = out.map((lane, at) => [lane, at]).filter(([lane]) => lane.dim === dim);
        if (!mine.length) return null;
        const code = store.codes(dim);
        const by = new Map(mine.map(([lane, at]) => [dim === "app" ? lane.code : `${lane.of} ${lane.code}`, at]));
        return Int16Array.from(code, (value, c) => by.get(dim === "app" ? value : `${app[c]} ${value}`) ?? -1);
      }).filter(Boolean);
    };

    const value = (number) => (desk.result.metric === "requests" ? format.some(number, "request") : format.bytes(number));
    let fit = chart.fitter();
    const line = (lane) => {
      const wide = labels.clientWidth || LABEL;
      const sub = [value(lane.bytes), format.percent(lane.bytes, lane.total), lane.times ? format.times(lane.times) : null].filter(Boolean).join(" · ");
      const text = `${lane.label}${lane.many > 1 ? ` ×${format.count(lane.many)}` : ""}`;
      const chosen = choice.has(desk.selection, lane.dim, lane.value);
      const bar = h("i", { "aria-hidden": "true" });
      bar.style.width = `${(lane.bytes / lane.total) * 100}%`;
      const pick = button([h("b", { "data-name": text }, fit(text, lane.opens ? wide - 34 : wide - 34 - (wide < NARROW ? 0 : FIGURE), lane.opens ? 14 : 12.5, lane.opens ? "bold" : "normal")), h("em", {}, lane.opens && wide >= NARROW ? sub : value(lane.bytes)), bar], (event) => desk.pick(lane.dim, lane.value, event), {
        class: "name", "aria-pressed": String(chosen), title: `${text}: ${sub}. Click selects, Ctrl-click adds, Alt-click leaves out.`, onkeydown: (event) => event.key === "x" && desk.leaveOut(lane.dim, lane.value),
      });
      const is = open.has(lane.value);
      const opener = lane.opens ? button(is ? "▾" : "▸", () => { open[is ? "delete" : "add"](lane.value); desk.redraw(); labels.children[list.indexOf(list.find((other) => other.value === lane.value && other.opens))]?.querySelector("button")?.focus(); }, { class: "open", "aria-expanded": String(is), "aria-label": `Parts of ${text}` }) : null;
      return h("div", { class: `lane ${lane.opens ? "tall" : `low is-${lane.dim}`}`, role: "listitem" }, opener, pick);
    };

    /** Draws requests one by one, in as many rows as they need. */
    const single = (pen, w, out, of, from, to, rows) => {
      const { kinds } = paint.colours();
      boxes = [];
      const x = (us) => ((us - from) / (to - from)) * w;
      const ends = out.map(() => new Float64Array(ROWS));
      const order = rows.map((row) => [row, store.rows.time[row] - Math.max(0, store.rows.wait[row] - 1)]).sort((a, b) => a[1] - b[1]);
      for (const [row, start] of order) {
        const c = store.rows.cell[row];
        for (const lane of of) {
          const at = lane[c];
          if (at < 0) continue;
          const free = ends[at].findIndex((end) => end <= start);
          const level = free < 0 ? ROWS - 1 : free;
          ends[at][level] = store.rows.time[row];
          const tall = (out[at].height - 6) / ROWS;
          const box = { x: Math.max(0, x(start)), y: out[at].y + 3 + level * tall, w: 0, h: tall - 1, row, lane: at };
          box.w = Math.max(2, x(store.rows.time[row]) - box.x);
          const queue = Math.max(0, store.rows.queue[row] - 1);
          const waits = Math.min(box.w, (queue / (to - from)) * w);
          pen.fillStyle = kinds[store.colours[store.cells.layer[c]]];
          pen.globalAlpha = 0.45;
          pen.fillRect(box.x, box.y, waits, box.h);
          pen.globalAlpha = 1;
          pen.fillRect(box.x + waits, box.y, Math.max(2, box.w - waits), box.h);
          boxes.push(box);
        }
      }
    };

    /** Bars of a round length, which the window's width does not change: how many, where the last one ends, their length. */
    const barsOf = (from, to) => {
      const round = chart.roundUp(Math.max(1, (to - from) / BARS));
      const length = store.summed ? Math.ceil(round / words.bin_us) * words.bin_us : round;
      const count = Math.max(1, Math.ceil((to - from) / length));
      return [count, from + count * length, length];
    };
    let seen = null;
    const paintOn = (pen, w, out) => {
      const [from, to] = desk.window();
      const height = out.reduce((sum, lane) => sum + lane.height, 0);
      const { line: grey, strong } = paint.colours();
      const [count, end, length] = barsOf(from, to);
      const wide = words.colours.length;
      const of = lanesOf(out);
      let y = 0;
      out.forEach((lane) => { lane.y = y; y += lane.height; });
      paint.axis(pen, from, to, { x: 0, width: w }, height + 1, 1);
      for (const lane of out) {
        pen.fillStyle = grey;
        pen.fillRect(0, lane.y + lane.height - 1, w, 1);
      }
      const rows = store.some(desk.result, from, to, SINGLE);
      const close = rows && rows.length * 3 < w * 4 && desk.selection.from !== null;
      if (close) {
        single(pen, w, out, of, from, to, rows);
        seen = { close, count: rows.length };
        return;
      }
      boxes = [];
      const bins = store.bins(desk.result, from, end, count, of, out.length);
      const across = w * ((end - from) / (to - from));
      const tops = out.map((_, at) => paint.most(bins, at * count, count, wide));
      const most = tops.reduce((all, [up, down]) => Math.max(all, up, down), 0);
      const reads = tops.some(([, down]) => down > 0);
      const writes = tops.some(([up]) => up > 0);
      out.forEach((lane, at) => {
        const [up, down] = tops[at];
        const room = lane.height - 4;
        const high = !reads ? room : !writes ? 0 : Math.round(room * (up >= down ? 0.6 : 0.4));
        const base = lane.y + 2 + high;
        if (up > 0) paint.stack(pen, bins, at * count, count, wide, false, { x: 0, width: across, base, height: high }, most);
        if (down > 0) {
          paint.stack(pen, bins, at * count, count, wide, true, { x: 0, width: across, base: base + 1, height: room - high - 1 }, most);
          pen.fillStyle = strong;
          pen.fillRect(0, base, w, 1);
        }
      });
      seen = { close: false, bins, count, length, most, reads, writes };
    };

    const heightOf = (out) => out.reduce((sum, lane) => sum + lane.height, 0) + 18;
    const light = () => {
      const { out, rest, restBytes, programs } = plan();
      const focus = document.activeElement;
      const held = labels.contains(focus) ? { at: [...labels.children].findIndex((child) => child.contains(focus)), name: focus.className } : null;
      list = out;
      fit = chart.fitter();
      labels.replaceChildren(...out.map(line));
      if (held) dom.one(`.${held.name.split(" ")[0]}`, labels.children[held.at])?.focus();
      more.hidden = programs <= MOST;
      more.textContent = all ? (rest ? `Fewer (${rest} more with ${value(restBytes)} are in the tab Programs)` : "Fewer") : `${format.some(rest, "more program")}: ${value(restBytes)}`;
      if (!out.length) {
        said.textContent = "Nothing of this selection was written or read.";
        canvas.size(width || 1, 20);
        return;
      }
      if (width) paintOn(canvas.size(width, heightOf(out)), width, out);
      if (!seen) return;
      said.textContent = seen.close
        ? `each of ${format.some(seen.count, "part")} of requests drawn from Q to C; pale until the device has it`
        : `${desk.result.metric === "requests" ? "requests ▲" : desk.result.metric === "other bytes" ? "bytes ▲" : `${seen.writes ? "written ▲" : ""}${seen.reads ? " read ▼" : ""}`} · one scale for all lanes, at most ${value(seen.most)} in a bar of ${format.us(seen.length)}`;
    };
    dom.onWidth(plot, (now) => { width = now; if (desk.result) light(); });

    const laneAt = (event) => {
      const y = event.clientY - plot.getBoundingClientRect().top;
      return list.findIndex((lane) => y >= lane.y && y < lane.y + lane.height);
    };
    const boxAt = (event) => {
      const { left, top } = plot.getBoundingClientRect();
      const [x, y] = [event.clientX - left, event.clientY - top];
      return boxes.find((box) => x >= box.x - 1 && x <= box.x + box.w + 1 && y >= box.y - 1 && y <= box.y + box.h + 1);
    };
    const tell = (event, us) => {
      const lane = list[laneAt(event)];
      if (!lane) return null;
      if (seen?.close) {
        const box = boxAt(event);
        return box ? details.short(store.row(box.row)) : [h("b", {}, lane.label)];
      }
      const [from] = desk.window();
      const bin = Math.min(seen.count - 1, Math.max(0, Math.floor((us - from) / seen.length)));
      const wide = words.colours.length;
      const at = (list.indexOf(lane) * seen.count + bin) * wide * 2;
      const step = seen.length;
      const parts = [];
      for (let k = 0; k < wide * 2; k += 1) {
        if (seen.bins[at + k] > 0) parts.push(h("div", {}, dom.swatch(k % wide), ` ${words.colours[k % wide]}: ${value(seen.bins[at + k])} ${k < wide ? "" : "read"}`));
      }
      return [h("b", {}, lane.label), h("div", { class: "soft" }, `${format.moment(from + bin * step, step)}, for ${format.us(step)}`), parts.length ? parts : "nothing"];
    };
    desk.timed(plot, { tell, cross, click: (event) => {
      const box = boxAt(event);
      if (box) desk.openRequest(box.row);
      else if (list[laneAt(event)]) desk.pick(list[laneAt(event)].dim, list[laneAt(event)].value, event);
    } });

    const chartOf = () => {
      const { out } = plan();
      const left = 260;
      const draw = (pen, w) => {
        const { ink, soft, sans } = paint.colours();
        out.reduce((y, lane) => {
          pen.fillStyle = ink;
          pen.font = `${lane.opens ? "bold " : ""}12px ${sans}`;
          pen.textBaseline = "top";
          pen.fillText(chart.fit(lane.label, left - 20, 12, "bold"), lane.opens ? 4 : 16, y + 3);
          pen.fillStyle = soft;
          pen.font = `11px ${sans}`;
          if (lane.opens) pen.fillText(`${value(lane.bytes)} · ${format.percent(lane.bytes, lane.total)}`, 4, y + 18);
          return y + lane.height;
        }, 0);
        paintOn(shift(pen, left), w - left, out);
      };
      return { title: `${desk.sheet.name}: programs over time`, note: `${said.textContent}; ${desk.words()}`, source: desk.source(), warnings: desk.sheet.missing, legend: words.colours.slice(0, 6).map((name, k) => [`--k${k}`, name]), width: 1100, height: heightOf(out), draw };
    };
    const element = h("div", {}, h("div", { class: "timed" }, labels, plot), more);
    return { element, light, name: "Over time", title: "Programs over time", draw: light, by: "cause_or_submitter", tools: [said], chart: chartOf, table: () => files.table(desk, "app") };
  };

  /** A pen whose drawings lie further right. */
  const shift = (pen, by) => ({
    set fillStyle(value) { pen.fillStyle = value; }, set globalAlpha(value) { pen.globalAlpha = value; }, set font(value) { pen.font = value; },
    set textBaseline(value) { pen.textBaseline = value; }, set textAlign(value) { pen.textAlign = value; },
    fillRect: (x, y, w, h) => pen.fillRect(x + by, y, w, h), fillText: (text, x, y) => pen.fillText(text, x + by, y),
  });

  return { make, shift };
})();
