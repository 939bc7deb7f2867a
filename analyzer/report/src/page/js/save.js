// SPDX-License-Identifier: MIT OR Apache-2.0
// Saves a chart as SVG or PNG, with its title, its legend and its source, and a table as CSV.
"use strict";

const save = (() => {
  const { h, s, button } = dom;
  const SVG = "http://www.w3.org/2000/svg";

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

  /** What a saved picture has from the style sheet, which does not go with it. */
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity", "font-size", "font-weight", "text-anchor"];
  /** A copy of a node that is shown, which looks the same without the page.
   * @param {SVGElement} node */
  const copied = (node) => {
    const copy = /** @type {SVGElement} */ (node.cloneNode(true));
    const [from, to] = [[node, ...node.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
    from.forEach((one, at) => {
      const computed = getComputedStyle(one);
      for (const name of STYLES) to[at].setAttribute(name, computed.getPropertyValue(name));
      for (const name of ["class", "tabindex", "role", "aria-label", "aria-hidden"]) to[at].removeAttribute(name);
      if (one.tagName === "text") to[at].setAttribute("font-family", "sans-serif");
    });
    return copy;
  };

  /** Breaks a text into lines that are at most as wide.
   * @param {string} text @param {number} width */
  const lines = (text, width, size) => {
    const out = [""];
    for (const word of text.split(" ")) {
      const longer = out[out.length - 1] ? `${out[out.length - 1]} ${word}` : word;
      if (chart.measure(longer, size) <= width) out[out.length - 1] = longer;
      else out.push(word);
    }
    return out.filter(Boolean);
  };

  /** @typedef {{title: string, note?: string, source: string, warnings?: string[], legend?: string[][], node?: () => SVGElement, width?: number, height?: number,
   * draw?: (pen: object, width: number, height: number) => void}} Picture */

  /** A picture by itself: the chart below its title, its note, what the trace lacks and the legend, above its source.
   * @param {Picture} of @returns {SVGElement} */
  const picture = (of) => {
    const { ink, soft, surface } = paint.colours();
    const { root, pen } = of.node ? { root: copied(of.node()), pen: null } : svgPen(of.width, of.height);
    const [width, height] = of.node ? ["width", "height"].map((name) => Number(root.getAttribute(name))) : [of.width, of.height];
    if (pen) of.draw(pen, width, height);
    const out = [];
    let y = 8;
    const say = (text, size, fill, weight = "normal") => lines(text, width - 16, size).forEach((line) => {
      out.push(s("text", { x: 8, y: y + size, "font-family": "sans-serif", "font-size": size, "font-weight": weight, fill }, line));
      y += Math.round(size * 1.4);
    });
    say(of.title, 15, ink, "bold");
    if (of.note) say(of.note, 11, soft);
    (of.warnings ?? []).forEach((line) => say(`Incomplete: ${line}`, 11, dom.variable("--bad"), "bold"));
    let x = 8;
    for (const [colour, name] of of.legend ?? []) {
      const wide = chart.measure(name, 11) + 32;
      if (x > 8 && x + wide > width) [x, y] = [8, y + 16];
      out.push(s("rect", { x, y: y + 2, width: 10, height: 10, fill: dom.variable(colour) }), s("text", { x: x + 15, y: y + 11, "font-family": "sans-serif", "font-size": 11, fill: ink }, name));
      x += wide;
    }
    if (of.legend?.length) y += 20;
    const top = y + 4;
    const whole = top + height + 20;
    return s("svg", { xmlns: SVG, width, height: whole, viewBox: `0 0 ${width} ${whole}` },
      s("rect", { width, height: whole, fill: surface }), out, s("g", { transform: `translate(0 ${top})` }, [...root.childNodes]),
      s("text", { x: 8, y: whole - 6, "font-family": "sans-serif", "font-size": 11, fill: soft }, of.source));
  };
  const serial = (of) => new XMLSerializer().serializeToString(picture(of));

  const svg = (of) => download(named(of.title, "svg"), new Blob([serial(of)], { type: "image/svg+xml" }));

  /** Draws the same picture twice as large. The page's policy allows images only of what the page has itself. */
  const png = async (of) => {
    const image = new Image();
    image.setAttribute("src", `data:image/svg+xml;charset=utf-8,${encodeURIComponent(serial(of))}`);
    await image.decode();
    const canvas = h("canvas", { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(named(of.title, "png"), blob));
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

  /** A menu of what can be saved. `chart()` and `table()` are asked when something is chosen; either may be missing.
   * @param {string} what @param {{chart?: () => Picture, table?: () => {title: string, columns: {name: string}[], rows: any[][]}}} of */
  const menu = (what, { chart: of, table }) => {
    // A chart of nothing has no picture.
    const draw = (way) => {
      close();
      const is = of();
      if (is.draw || is.node()) way(is);
    };
    const close = () => { box.open = false; };
    const items = [
      of && button("Picture (SVG)", () => draw(svg)), of && button("Picture (PNG)", () => draw(png)),
      table && button("All rows (CSV)", () => { close(); saveCsv(table()); }),
    ].filter(Boolean);
    const box = h("details", { class: "menu" }, h("summary", { "aria-label": `Save: ${what}` }, "Save"), h("div", {}, items));
    return box;
  };

  return { menu, csv, svgPen, picture };
})();
