// SPDX-License-Identifier: MIT OR Apache-2.0
// Makes elements. Text is always set as text, never as markup.
"use strict";

const dom = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  const fill = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  };
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  const button = (text, onclick, attributes) => h("button", { type: "button", onclick, ...attributes }, text);

  /** Makes a group of buttons of which one is chosen. */
  const choice = (label, options, chosen, choose) => {
    const buttons = options.map((option, at) =>
      button(option, () => {
        buttons.forEach((other, nth) => other.setAttribute("aria-pressed", String(nth === at)));
        choose(at);
      }, { "aria-pressed": String(at === chosen) }));
    return h("div", { class: "row", role: "group", "aria-label": label }, buttons);
  };

  const swatch = (colour) => h("span", { class: `swatch back-${colour}`, "aria-hidden": "true" });

  /** Returns a variable of the style sheet. */
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** Shortens a text in its middle: the end of a path is the file's own name. */
  const shorten = (text, most) => {
    if (text.length <= most) return text;
    if (most < 4) return "";
    const end = Math.ceil((most - 1) / 2);
    return `${text.slice(0, most - 1 - end)}…${text.slice(-end)}`;
  };

  /** Calls back once at first, and whenever the width of the element changes. */
  const onWidth = (element, draw) => {
    let last = -1;
    const look = () => {
      const width = element.clientWidth;
      if (width > 0 && width !== last) {
        last = width;
        draw(width);
      }
    };
    new ResizeObserver(look).observe(element);
    // Before printing there is no other event.
    document.addEventListener("layout", look);
  };

  /** Calls back when the colours change. */
  const onTheme = (draw) => document.addEventListener("theme", draw);

  return { h, s, button, choice, swatch, variable, shorten, onWidth, onTheme };
})();
