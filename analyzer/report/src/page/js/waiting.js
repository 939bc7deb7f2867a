// SPDX-License-Identifier: MIT OR Apache-2.0
// What is waited for: a bar of what transactions wait for with one of them near the median; without transactions, what calls
// for durability wait for, and how long requests take.
"use strict";

const waiting = (() => {
  const { h, s } = dom;
  /** Kinds of waiting in the order in which they are drawn: the device first. */
  const ORDER = [2, 1, 3, 0, 4];

  /** One bar for all transactions; names that do not fit into it are below. */
  const bar = (desk, sums, many, w) => {
    const whole = sums.reduce((all, one) => all + one, 0);
    const out = [];
    let [x, free] = [0, 0];
    for (const kind of ORDER) {
      const wide = (sums[kind] / whole) * w;
      if (!(wide > 0)) continue;
      const text = `${waits.KINDS[kind]} ${format.rounded(sums[kind], whole)}`;
      const tip = [h("b", {}, waits.KINDS[kind]), h("div", {}, `${format.us(sums[kind] / many)} of ${format.us(whole / many)} on average`)];
      out.push(chart.rect(x, 0, Math.max(0.5, wide - 1), 22, { class: `fill-wait-${kind}`, onpointermove: (event) => desk.tip(tip, event), onpointerleave: () => desk.tip(null) }));
      if (wide > chart.measure(text, 12) + 10) out.push(s("g", { class: `on-wait-${kind}` }, chart.text(x + 5, 15, text)));
      else if (wide > 5) {
        const long = chart.measure(text, 11);
        const at = Math.min(Math.max(x, free), w - long);
        if (at >= free) {
          out.push(chart.text(at, 35, text, { class: "small soft" }));
          free = at + long + 10;
        }
      }
      x += wide;
    }
    return chart.root(w, 40, "What transactions wait for; the tab Transactions has the same as a table", {}, out);
  };

  const ofTransactions = (desk) => {
    const { store, sheet } = desk;
    const { took } = store.tables.transactions;
    const said = h("p", { class: "soft" });
    const [sums, fall] = [h("div"), h("div", { class: "fall" })];
    const title = h("h2");
    let one = null;
    const picture = (title, node, note) => ({ title: `${sheet.name}: ${title}`, note, source: desk.source(), warnings: sheet.missing, legend: null, node });
    const menu = save.menu("what a transaction waits for", { chart: () => ({ ...picture("what a transaction waits for", () => sums.querySelector("svg"), said.textContent), legend: waits.KINDS.map((name, kind) => [`--w${kind}`, name]) }), table: () => desk.transactions.table() });
    const second = save.menu("one transaction", { chart: () => waterfall.pictureOf(desk, one, () => fall.querySelector("svg")), table: () => waterfall.tableOf(desk, one) });
    const opener = dom.button("Open", () => desk.openTransaction(one.at), { title: "All of it, in the tab Transactions" });
    const tools = h("span", { class: "end" }, opener, second);
    let width = 0;
    const draw = () => {
      const some = waits.selected(desk);
      if (!some.length) {
        said.textContent = "No transaction in this selection.";
        title.textContent = "";
        [sums, fall].forEach((place) => place.replaceChildren());
        tools.hidden = true;
        return;
      }
      tools.hidden = false;
      const times = Float64Array.from(some, (at) => took[at]).sort();
      const at = (part) => format.us(waits.quantile(times, part));
      said.textContent = times.length === 1 ? `one took ${at(1)}` : `half take at most ${at(0.5)} · 99 % ${at(0.99)} · slowest ${at(1)}`;
      one = waits.of(store, waits.median(store, some));
      title.textContent = times.length === 1 ? `One transaction: ${format.us(one.to - one.from)}` : `One near the median: ${format.us(one.to - one.from)}`;
      if (!width) return;
      sums.replaceChildren(bar(desk, waits.sumsOf(store, some), some.length, width));
      fall.replaceChildren(waterfall.svg(desk, one, width, { brief: true, height: window.innerWidth >= 1700 ? 330 : 186 }));
    };
    dom.onWidth(sums, (now) => { width = now; if (desk.result) draw(); });
    return { draw, light: draw, element: h("section", { class: "panel" },
      h("div", { class: "tools" }, h("h2", {}, "What a transaction waits for"), h("span", { class: "end" }, menu)), said, sums,
      h("div", { class: "tools one" }, title, tools), fall) };
  };

  /** Bars of what calls for durability wait for, one below the other. */
  const ofCalls = (desk, parts, w) => {
    const whole = parts.reduce((all, one) => all + one, 0);
    const rows = parts.map((value, at) => [waits.PARTS[at], value]).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
    const left = Math.max(...rows.map(([name]) => chart.measure(name, 12))) + 10;
    const right = Math.max(...rows.map(([, value]) => chart.measure(`${format.us(value)} · ${format.rounded(value, whole)}`, 12))) + 10;
    const x = chart.linear([0, rows[0][1]], [0, Math.max(10, w - left - right)]);
    return chart.root(w, rows.length * 21, "What calls for durability wait for; the tab Durability has the same as a table", {}, rows.map(([name, value], nth) => [
      chart.text(left - 8, nth * 21 + 14, name, { "text-anchor": "end" }), chart.rect(left, nth * 21 + 2, Math.max(1, x(value)), 15, { class: "ink" }),
      chart.text(left + Math.max(1, x(value)) + 6, nth * 21 + 14, `${format.us(value)} · ${format.rounded(value, whole)}`, { class: "soft" }),
    ]));
  };

  const ofRequests = (desk) => {
    const { store, sheet } = desk;
    const { calls } = store.tables;
    const durable = new Set(store.words.about.durable);
    const [bars, said, times] = [h("div"), h("p", { class: "soft" }), h("div")];
    const callsPart = h("div", {}, h("div", { class: "tools" }, h("h2", {}, "What calls for durability wait for"), h("span", { class: "end" }, save.menu("what calls for durability wait for", { chart: () => ({ title: `${sheet.name}: what calls for durability wait for`, note: desk.words(), source: desk.source(), warnings: sheet.missing, node: () => bars.querySelector("svg") }) }))), bars);
    let width = 0;
    const draw = () => {
      const [from, to] = desk.window();
      const some = [];
      if (calls) for (let row = store.after(calls.start, from), end = store.after(calls.start, to); row < end; row += 1) if (durable.has(calls.call[row]) && durability.passes(desk, row)) some.push(row);
      callsPart.hidden = !some.length;
      const made = latency.percentiles(desk);
      const all = made.rows.find(([name]) => name === "all requests");
      said.textContent = !all ? "No request with a known latency." : all[1] === 1 ? `one took ${format.us(all[2])}` : `half take at most ${format.us(all[2])} · 99 % ${format.us(all[4])} · slowest ${format.us(all[5])}`;
      if (!width) return;
      const parts = some.length ? waits.partsOfAll(calls, some) : [];
      callsPart.hidden = !parts.some((value) => value > 0);
      if (!callsPart.hidden) bars.replaceChildren(ofCalls(desk, parts, width));
      times.replaceChildren(...(all && all[1] > 1 ? [latency.histogram(desk, width, callsPart.hidden ? 250 : 150)] : []));
    };
    dom.onWidth(times, (now) => { width = now; if (desk.result) draw(); });
    return { draw, light: draw, element: h("section", { class: "panel" }, callsPart,
      h("div", { class: "tools one" }, h("h2", {}, "How long requests take"), h("span", { class: "end" }, save.menu("how long requests take", { chart: () => latency.pictureOf(desk, () => times.querySelector("svg")), table: () => latency.percentiles(desk) }))), said, times) };
  };

  /** The only request that there is. */
  const ofOne = (desk, row) => ({ light: () => {}, draw: () => {}, element: h("section", { class: "panel alone" }, h("h2", {}, desk.details.titleOf(row)), desk.details.chainOf(row)) });
  const isOne = ({ summed, rows }) => !summed && rows.rows === 1;

  const make = (desk) => (isOne(desk.store) ? ofOne(desk, 0) : desk.store.tables.transactions?.rows ? ofTransactions(desk) : ofRequests(desk));
  return { make };
})();
