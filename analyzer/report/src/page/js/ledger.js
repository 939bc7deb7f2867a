// SPDX-License-Identifier: MIT OR Apache-2.0
// The page of a ledger: what was written over time, stacked by groups, beside what the kernel counted; and the tables.
"use strict";

(() => {
  const { h, s } = dom;
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const { chart: made } = data;
  const count = made.columns.length;
  const [HEIGHT, LEFT, RIGHT, FOOT] = [320, 70, 12, 22];
  const when = (at) => new Date((made.begin + at * made.seconds) * 1000).toISOString().slice(0, 16).replace("T", " ");
  /** Those that are summed up have the colour of what is unknown. */
  const colourOf = (at) => (made.groups[at].others ? 5 : [0, 1, 2, 3, 4, 6][at]);

  /** A day at its beginning, and the hour otherwise. */
  const label = (seconds) => {
    const text = new Date(seconds * 1000).toISOString();
    return text.slice(11, 16) === "00:00" ? text.slice(5, 10) : text.slice(11, 16);
  };

  /** What is to be said of a column of time beside its bytes. */
  const remarks = (column) => [
    column.watched_ms ? `watched for ${format.us(column.watched_ms * 1000)}` : "nobody watched",
    column.kernel === null ? null : `the kernel counted ${format.bytes(column.kernel)}`,
    column.uncounted > 0 ? "not all of it can be compared with the kernel's counters" : null,
    column.lost > 0 ? `${format.some(column.lost, "record")} lost` : null,
    column.gaps > 0 ? `nobody watched for ${format.us(column.gap_ms * 1000)} before${column.gap_write_bytes === null ? "" : `: the kernel counted ${format.bytes(column.gap_write_bytes)} meanwhile`}` : null,
    column.restarts > 0 ? "the counters began anew: what was written before that is not known" : null,
  ].filter(Boolean);

  const tip = h("div", { class: "tip", role: "status", hidden: true });
  document.body.append(tip);
  const show = (at, event) => {
    tip.replaceChildren(h("b", {}, when(at)), ...made.groups.filter((group) => group.bytes[at] > 0).map((group) => h("div", {}, `${group.name}: ${format.bytes(group.bytes[at])}`)),
      ...remarks(made.columns[at]).map((text) => h("div", { class: "soft" }, text)));
    tip.hidden = false;
    tip.style.left = `${Math.max(0, Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(0, Math.min(event.clientY + 12, window.innerHeight - tip.offsetHeight - 8))}px`;
  };

  /** Draws each column as wide as the part of it that was watched, so that 17 seconds are not an hour. */
  const svg = (w) => {
    const sums = made.columns.map((column, at) => made.groups.reduce((all, group) => all + group.bytes[at], 0));
    const most = Math.max(1, ...sums, ...made.columns.map(({ kernel }) => kernel ?? 0));
    const y = chart.linear([0, most], [HEIGHT - FOOT, 14]);
    const x = chart.linear([0, count], [LEFT, w - RIGHT]);
    const step = x(1) - x(0);
    const marks = chart.ticks(0, most, 5);
    const columns = made.columns.map((column, at) => {
      const part = Math.min(1, column.watched_ms / (made.seconds * 1000));
      const wide = Math.max(column.watched_ms ? 2 : 0, step * part - (step > 4 ? 1 : 0));
      let below = 0;
      const bars = made.groups.map((group, nth) => {
        const value = group.bytes[at];
        if (!value) return null;
        const bar = chart.rect(x(at), y(below + value), wide, y(below) - y(below + value), { class: `fill-${colourOf(nth)}` });
        below += value;
        return bar;
      });
      return s("g", { onpointermove: (event) => show(at, event), onpointerleave: () => { tip.hidden = true; } },
        chart.rect(x(at), 14, step, HEIGHT - FOOT - 14, { class: "clear" }),
        chart.rect(x(at) + step * part, 14, step * (1 - part), HEIGHT - FOOT - 14, { class: "fill-m" }), bars,
        column.kernel === null || !column.watched_ms ? null : s("line", { class: "kernel", x1: x(at), x2: x(at) + wide, y1: y(column.kernel), y2: y(column.kernel) }),
        column.lost > 0 || column.gaps > 0 ? chart.rect(x(at), 8, Math.max(3, step), 5, { class: "fill-bad" }) : null);
    });
    // Hours are told at parts of a day, days at weeks.
    const least = count / Math.max(1, (w - LEFT) / 60);
    const every = (made.seconds === 3600 ? [1, 2, 3, 6, 12, 24, 48, 96, 168] : [1, 2, 7, 14, 28, 56]).find((step) => step >= least) ?? Math.ceil(least);
    const times = Array.from({ length: Math.ceil(count / every) }, (_, nth) => nth * every);
    return chart.root(w, HEIGHT, "What was written over time; the tables have the same figures", {}, chart.left(y, marks, [LEFT, w - RIGHT], (value) => (value ? format.bytes(value) : "0")), columns,
      chart.bottom(x, { all: times }, HEIGHT - FOOT, (at) => label(made.begin + at * made.seconds), [LEFT - 20, w]));
  };

  const box = h("div", { class: "chart" });
  dom.onWidth(box, (width) => count && box.replaceChildren(svg(width)));
  const legend = h("ul", { class: "legend" },
    made.groups.map((group, at) => h("li", {}, dom.swatch(colourOf(at)), ` ${group.name} `, h("span", { class: "soft" }, format.bytes(group.bytes.reduce((all, one) => all + one, 0))))),
    h("li", { class: "soft" }, "line: written by the kernel's count; grey: not watched; red at the top: records lost, or a gap before"));
  const title = `Written over time, each column ${made.length}`;
  const menu = save.menu(title, { chart: () => ({ title: document.title, note: title, source: "mostrace ledger", warnings: [...document.querySelectorAll(".notice.bad")].map((one) => one.textContent), legend: made.groups.map((group, at) => [`--k${colourOf(at)}`, group.name]), node: () => box.querySelector("svg") }) });
  document.querySelector(".ledger").append(
    h("section", { class: "panel" }, h("div", { class: "tools" }, h("h2", {}, title), h("span", { class: "end" }, count ? menu : null)), count ? box : h("p", { class: "note" }, "No hour is in it yet."), legend),
    ...data.grids.map((table) => h("section", { class: "panel" }, grid.draw(grid.ofPage(table), { heading: "h2" }))),
  );

  const wish = matchMedia("(prefers-color-scheme: dark)");
  const toggle = dom.one(".theme");
  const paintIn = (theme) => {
    root.dataset.theme = theme;
    toggle.textContent = theme === "dark" ? "Light" : "Dark";
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
  document.addEventListener("click", dom.closeMenus);
  root.dataset.ready = "yes";
  performance.mark("mostrace:ready");
})();
