// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws several traces side by side: their bytes by colour, and each compared with the first.
"use strict";

const compare = (() => {
  const { h, swatch } = dom;

  const strips = (sheets) => {
    // Figures are per transaction if every trace has a count of transactions.
    const each = sheets.every((one) => one.transactions);
    const bars = sheets.map((one) => {
      const times = each ? one.transactions : 1;
      const parts = icicle.byColour(one.icicle.written).map((bytes) => bytes / times);
      return { name: one.name, parts, sum: one.icicle.written.v / times };
    });
    const most = Math.max(1, ...bars.map((bar) => bar.sum));
    const drawn = bars.flatMap((bar) => {
      const strip = h("div", { class: "strip" }, bar.parts.map((bytes, colour) => {
        const part = h("div", { class: `back-${colour}`, title: `${sheets[0].colours[colour]}: ${format.bytes(bytes)}` });
        part.style.width = `${(bytes * 100) / most}%`;
        return bytes > 0 ? part : null;
      }));
      return [h("span", { class: "name" }, bar.name), h("div", { class: "track", "aria-hidden": "true" }, strip), h("span", { class: "value" }, format.bytes(bar.sum))];
    });
    const used = sheets[0].colours.filter((_, colour) => bars.some((bar) => bar.parts[colour] > 0));
    const table = {
      title: "By part", note: null,
      columns: [{ name: "trace", unit: "text" }, ...used.map((name) => ({ name, unit: "bytes" })), { name: "bytes", unit: "bytes" }],
      rows: bars.map((bar) => [bar.name, ...used.map((name) => Math.round(bar.parts[sheets[0].colours.indexOf(name)])), Math.round(bar.sum)]),
    };
    return h("section", { class: "panel", id: "compared-bytes" },
      h("h2", {}, each ? "Bytes written per transaction" : "Bytes written"),
      h("div", { class: "versus" }, drawn),
      h("ul", { class: "legend" }, used.map((name) => h("li", {}, swatch(sheets[0].colours.indexOf(name)), name))),
      grid.draw(table));
  };

  const draw = (article, { sheets, compared }) => {
    const [first, ...others] = sheets;
    article.append(
      h("section", { class: "hero" }, h("h1", { class: "finding" }, `${compared[0].sentence}.`)),
      strips(sheets),
      ...others.map((other, nth) => h("section", { class: "panel", id: `compared-${nth}` },
        h("h2", {}, `${other.name} against ${first.name}`),
        h("p", { class: "lead" }, `a is ${first.name}, b is ${other.name}. ${compared[nth].sentence}.`),
        h("div", { class: "tables" }, compared[nth].grids.filter((table) => table.rows.length).map((table) => grid.draw(table))))));
    return [h("a", { href: "#compared-bytes" }, "Bytes"), ...others.map((other, nth) => h("a", { href: `#compared-${nth}` }, other.name))];
  };
  return { draw };
})();
