// SPDX-License-Identifier: MIT OR Apache-2.0
// The programs with the most bytes, each with its layers, and the rest of them with its layers too.
"use strict";

const programs = (() => {
  const { h, s } = dom;
  const [MOST, ROW] = [8, 33];
  /** A program with this share of all is alone: there is no list. */
  const ALONE = 0.95;

  /** Programs, the largest first: {label, value, parts by colour}; the last one is the rest. */
  const listOf = (desk) => {
    const { store, result } = desk;
    const sums = store.by(result, "app", result.value);
    const code = store.codes("app");
    const wide = store.words.colours.length;
    const parts = new Float64Array(sums.length * wide);
    for (let c = 0; c < store.cells.rows; c += 1) parts[code[c] * wide + store.colours[store.cells.layer[c]]] += result.value[c];
    const order = [...sums.keys()].filter((at) => sums[at] > 0).sort((a, b) => sums[b] - sums[a]);
    const one = (at) => ({ label: store.apps.names[at], known: true, value: sums[at], parts: [...parts.slice(at * wide, (at + 1) * wide)] });
    const shown = order.slice(0, order.length === MOST + 1 ? MOST + 1 : MOST).map(one);
    const left = order.slice(shown.length).map(one);
    const rest = left.length ? { label: `${format.count(left.length)} more`, known: false, value: left.reduce((all, { value }) => all + value, 0), parts: store.words.colours.map((_, k) => left.reduce((all, of) => all + of.parts[k], 0)) } : null;
    return { list: rest ? [...shown, rest] : shown, whole: sums.reduce((all, value) => all + value, 0) };
  };

  /** Whether several programs share what was written or read. */
  const areMany = (desk) => {
    const { store } = desk;
    const all = store.ask(choice.ALL);
    const sums = [...store.by(all, "app", all.value)];
    const whole = sums.reduce((sum, value) => sum + value, 0);
    return whole > 0 && Math.max(...sums) < whole * ALONE;
  };

  const make = (desk) => {
    const { sheet } = desk;
    const box = h("div");
    let width = 0;
    const tell = (value) => (desk.result.metric === "requests" ? format.count(value) : format.bytes(value));
    const svg = (w) => {
      const { list, whole } = listOf(desk);
      const most = Math.max(...list.map(({ value }) => value), 1);
      const x = chart.linear([0, most], [0, w - 2]);
      const fit = chart.fitter();
      const names = s("g", { "aria-hidden": "true" });
      const rows = list.map(({ label, known, value, parts }, nth) => {
        const y = nth * ROW;
        const name = known ? label ?? "nobody known" : label;
        const number = `${tell(value)} · ${format.rounded(value, whole)}`;
        const pressed = known && choice.has(desk.selection, "app", label);
        let from = 0;
        const bars = parts.map((part, k) => {
          if (part <= 0) return null;
          const rect = chart.rect(from, y + 18, Math.max(0.4, x(part)), 9, { class: `fill-${k}` });
          from += x(part);
          return rect;
        });
        const pick = (event) => known && desk.pick("app", label, event);
        const tip = [h("b", {}, name), ...parts.map((part, k) => (part > 0 ? h("div", {}, dom.swatch(k), ` ${desk.store.words.colours[k]} ${tell(part)}`) : null))];
        names.append(chart.text(1, y + 13, fit(name, w - chart.measure(number, 12) - 14, 12, "bold"), { class: "strong", "data-name": name }), chart.text(w - 1, y + 13, number, { class: "soft", "text-anchor": "end" }));
        return s("g", {
          class: `${known ? "node" : ""}${pressed ? " pressed" : ""}`, role: known ? "button" : "img", tabindex: known ? 0 : null, "aria-pressed": known ? String(pressed) : null, "aria-label": `${name}: ${number}`, onclick: pick,
          onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(event); } else if (event.key === "x" && known) desk.leaveOut("app", label); },
          onpointermove: (event) => desk.tip(tip, event), onpointerleave: () => desk.tip(null),
        }, chart.rect(0, y + 1, w, ROW - 3, { class: "ground" }), bars);
      });
      return chart.root(w, Math.max(1, list.length) * ROW, "Programs by bytes", { role: "group" }, rows, names);
    };
    const draw = () => width && box.replaceChildren(svg(width));
    dom.onWidth(box, (now) => { width = now; if (desk.result) draw(); });
    return {
      element: box, draw, light: draw, table: () => files.table(desk, "app"),
      chart: () => ({ title: `${sheet.name}: programs`, note: desk.words(), source: desk.source(), warnings: sheet.missing, legend: desk.store.words.colours.slice(0, 6).map((name, k) => [`--k${k}`, name]), node: () => box.querySelector("svg") }),
    };
  };
  return { make, areMany, listOf };
})();
