// SPDX-License-Identifier: MIT OR Apache-2.0
// Scales, axes and texts of the charts that are SVG. The node that is shown is the node that is saved: it has no other form.
"use strict";

const chart = (() => {
  const { s } = dom;

  /** @typedef {(value: number) => number} Scale */

  /** A linear scale from values to pixels.
   * @param {[number, number]} domain @param {[number, number]} range @returns {Scale} */
  const linear = ([from, to], [start, end]) => (value) => start + ((value - from) / (to - from || 1)) * (end - start);

  /** The least of 1, 2 and 5 times a power of ten that is at least a value.
   * @param {number} value */
  const roundUp = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((by) => by * power).find((one) => one >= value * (1 - 1e-9)) ?? value;
  };

  /** Round values of an interval, at most about `many`.
   * @param {number} from @param {number} to @param {number} many */
  const ticks = (from, to, many) => {
    if (!(to > from)) return { step: 1, all: [from] };
    const step = roundUp((to - from) / Math.max(1, many));
    const all = [];
    for (let nth = Math.ceil(from / step - 1e-9); nth * step <= to * (1 + 1e-9); nth += 1) all.push(nth * step || 0);
    return { step, all };
  };

  let pen = null;
  /** The width of a text in pixels, in the page's font.
   * @param {string} text */
  const measure = (text, size = 12, weight = "normal") => {
    pen ??= document.createElement("canvas").getContext("2d");
    pen.font = `${weight === "normal" ? "" : "600 "}${size}px ${dom.variable("--sans") || "sans-serif"}`;
    return pen.measureText(text).width;
  };
  /** What a copy is of says more than that it is one, and who submitted more than that it did. */
  const brief = (name) => name.replace(/^copies of (the )?/, "").replace(/ \(submitter\)$/, "");
  /** Shortens a name in its middle; a shorter one than six characters would say nothing. */
  const cut = (name, width, size, weight) => {
    for (let most = Math.min(name.length - 1, Math.ceil(width / 3)); most >= 6; most -= 1) {
      const text = dom.shorten(name, most);
      if (measure(text, size, weight) <= width) return text;
    }
    return "";
  };
  /** The ways to write a name that are at most as wide, the best first: of a path, the file's name says most. */
  const ways = (whole, width, size = 12, weight = "normal") => {
    const name = brief(whole);
    const tail = /^\/.*(\/[^/]+)$/.exec(name);
    const wholes = [whole, name, ...(tail ? [`…${tail[1]}`] : [])].filter((text) => measure(text, size, weight) <= width);
    // If a short form fits, and another name has it already, the rest tells them apart.
    const rest = wholes.length ? [whole, name] : [name, whole];
    return [...wholes, ...rest.map((text) => cut(text, width, size, weight)).filter(Boolean)];
  };
  /** A name that is at most as wide.
   * @param {string} whole @param {number} width */
  const fit = (whole, width, size = 12, weight = "normal") => ways(whole, width, size, weight)[0] ?? "";
  /** Shortens names so that no two different ones look alike. A name that cannot be told from others is not shown. */
  const fitter = () => {
    const shown = new Map();
    return (name, width, size, weight) => {
      const text = ways(name, width, size, weight).find((one) => (shown.get(one) ?? name) === name) ?? "";
      shown.set(text, name);
      return text;
    };
  };

  /** An axis at the bottom.
   * @param {Scale} x @param {{all: number[]}} marks @param {number} y @param {(value: number) => string} tell
   * @param {[number, number]} bounds of the texts */
  const bottom = (x, { all }, y, tell, [left, right]) => s("g", { class: "axis" }, all.map((value) => {
    const text = tell(value);
    const half = measure(text, 11) / 2;
    const at = Math.max(left + half, Math.min(right - half, x(value)));
    return [s("line", { x1: x(value), x2: x(value), y1: y, y2: y + 4 }), s("text", { x: at, y: y + 15, "text-anchor": "middle" }, text)];
  }));
  /** An axis at the left, with lines through the chart.
   * @param {Scale} y @param {{all: number[]}} marks @param {[number, number]} range @param {(value: number) => string} tell */
  const left = (y, { all }, [from, to], tell) => s("g", { class: "axis" }, all.map((value) => [
    s("line", { x1: from, x2: to, y1: y(value), y2: y(value) }), s("text", { x: from - 5, y: y(value) + 4, "text-anchor": "end" }, tell(value)),
  ]));

  /** The root of a chart, as wide as its place. A chart whose parts can be chosen is a group, otherwise it is one picture. */
  const root = (width, height, name, more = {}, ...children) => s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name, ...more }, ...children);
  const rect = (x, y, width, height, more) => s("rect", { x: number(x), y: number(y), width: number(Math.max(0, width)), height: number(Math.max(0, height)), ...more });
  const text = (x, y, words, more) => s("text", { x: number(x), y: number(y), ...more }, words);
  const number = (value) => Math.round(value * 100) / 100;

  /** The legend of a chart: [[class of its colour, name]].
   * @param {[string, string][]} entries */
  const legend = (entries) => dom.h("ul", { class: "legend" }, entries.map(([colour, name]) => dom.h("li", {}, dom.h("span", { class: `swatch ${colour}`, "aria-hidden": "true" }), ` ${name}`)));

  return { linear, roundUp, ticks, measure, brief, fit, fitter, bottom, left, root, rect, text, legend };
})();
