// SPDX-License-Identifier: MIT OR Apache-2.0
// Saves a chart as SVG or PNG, with its title and its source, and a table as CSV.
"use strict";

const save = (() => {
  const { h, s, button } = dom;
  const HEAD = 46;
  const FOOT = 22;

  /** A pen that writes SVG, with the part of a canvas's pen that `paint` and the views use. */
  const svgPen = (width, height) => {
    const root = s("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` });
    let path = "";
    const number = (value) => Math.round(value * 100) / 100;
    const pen = {
      fillStyle: "#000", strokeStyle: "#000", globalAlpha: 1, lineWidth: 1, font: "11px sans-serif", textBaseline: "alphabetic", textAlign: "left",
      fillRect: (x, y, w, t) => root.append(s("rect", { x: number(x), y: number(y), width: number(w), height: number(t), fill: pen.fillStyle, "fill-opacity": pen.globalAlpha < 1 ? number(pen.globalAlpha) : null })),
      strokeRect: (x, y, w, t) => root.append(s("rect", { x: number(x), y: number(y), width: number(w), height: number(t), fill: "none", stroke: pen.strokeStyle })),
      fillText: (text, x, y) => root.append(s("text", {
        x: number(x), y: number(y), fill: pen.fillStyle, "font-family": "sans-serif", "font-size": /(\d+)px/.exec(pen.font)?.[1] ?? 11, "font-weight": /^(bold|600|650)/.test(pen.font) ? "bold" : null,
        "text-anchor": { right: "end", center: "middle" }[pen.textAlign] ?? "start", "dominant-baseline": { top: "text-before-edge", middle: "central" }[pen.textBaseline] ?? "auto",
      }, text)),
      measureText: (text) => ({ width: text.length * 6.2 }),
      beginPath: () => { path = ""; },
      moveTo: (x, y) => { path += `M${number(x)} ${number(y)}`; },
      lineTo: (x, y) => { path += `L${number(x)} ${number(y)}`; },
      arc: (x, y, r) => { path += `M${number(x - r)} ${number(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`; },
      stroke: () => root.append(s("path", { d: path, fill: "none", stroke: pen.strokeStyle, "stroke-width": pen.lineWidth })),
      fill: () => root.append(s("path", { d: path, fill: pen.fillStyle, "fill-opacity": pen.globalAlpha < 1 ? number(pen.globalAlpha) : null })),
      translate: (x, y) => { pen.shift = [x, y]; },
    };
    return { root, pen };
  };

  const download = (name, blob) => {
    const link = h("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const named = (title, end) => `${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60)}.${end}`;

  /** Surrounds a chart with its title and its source, on a pen that is as wide. */
  const framed = (pen, chart, draw) => {
    const { ink, soft, surface, sans } = paint.colours();
    pen.fillStyle = surface;
    pen.fillRect(0, 0, chart.width, chart.height + HEAD + FOOT);
    pen.fillStyle = ink;
    pen.textBaseline = "top";
    pen.font = `bold 15px ${sans}`;
    pen.fillText(chart.title, 8, 8);
    pen.fillStyle = soft;
    pen.font = `11px ${sans}`;
    pen.fillText(chart.note, 8, 28);
    pen.fillText(chart.source, 8, chart.height + HEAD + 5);
    draw();
  };

  const svg = (chart) => {
    const { root, pen } = svgPen(chart.width, chart.height + HEAD + FOOT);
    framed(pen, chart, () => {
      const inner = svgPen(chart.width, chart.height);
      chart.draw(inner.pen, chart.width, chart.height);
      root.append(s("g", { transform: `translate(0 ${HEAD})` }, [...inner.root.childNodes]));
    });
    download(named(chart.title, "svg"), new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" }));
  };

  const png = (chart) => {
    const ratio = 2;
    const canvas = h("canvas", { width: chart.width * ratio, height: (chart.height + HEAD + FOOT) * ratio });
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    framed(pen, chart, () => {
      pen.translate(0, HEAD);
      chart.draw(pen, chart.width, chart.height);
    });
    canvas.toBlob((blob) => download(named(chart.title, "png"), blob));
  };

  const quoted = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    // A spreadsheet must not take a name for a formula.
    if (typeof value === "string" && /^[=+\-@\t]/.test(text)) text = `'${text}`;
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  /** `table`: {columns: [{name}], rows}. */
  const csv = (table) => [table.columns.map((column) => column.name.replaceAll(" ", "_")), ...table.rows]
    .map((row) => row.map(quoted).join(",")).join("\n");
  const saveCsv = (table) => download(named(table.title, "csv"), new Blob([csv(table), "\n"], { type: "text/csv" }));

  /** A menu of what can be saved. `chart()` and `table()` are asked when something is chosen; either may be missing. */
  const menu = (what, { chart, table }) => {
    const close = () => { box.open = false; };
    const items = [
      chart && button("Picture (SVG)", () => { close(); svg(chart()); }), chart && button("Picture (PNG)", () => { close(); png(chart()); }),
      table && button("All rows (CSV)", () => { close(); saveCsv(table()); }),
    ].filter(Boolean);
    const box = h("details", { class: "menu" }, h("summary", { "aria-label": `Save: ${what}` }, "Save"), h("div", {}, items));
    return box;
  };

  return { menu, csv, svgPen };
})();
