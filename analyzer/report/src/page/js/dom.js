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
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  };
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  const button = (text, onclick, attributes) => h("button", { type: "button", onclick, ...attributes }, text);

  /** Makes a group of buttons of which one is chosen. */
  const options = (label, names, chosen, choose) => {
    const buttons = names.map((name, at) =>
      button(name, () => {
        buttons.forEach((other, nth) => other.setAttribute("aria-pressed", String(nth === at)));
        choose(at);
      }, { "aria-pressed": String(at === chosen) }));
    return h("div", { class: "row options", role: "group", "aria-label": label }, buttons);
  };

  const swatch = (colour) => h("span", { class: `swatch back-${colour}`, "aria-hidden": "true" });

  /** Returns a variable of the style sheet. */
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** The first element of a selector.
   * @param {string} selector @param {ParentNode|null} within @returns {HTMLElement|null} */
  const one = (selector, within = document) => within?.querySelector(selector) ?? null;
  /** Closes the menus that are open, but for one that was clicked in. */
  const closeMenus = (event) => document.querySelectorAll("details.menu[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.removeAttribute("open"); });

  /** Shortens a text in its middle: the end of a path is the file's own name. */
  const shorten = (text, most) => {
    if (text.length <= most) return text;
    if (most < 4) return "";
    const end = Math.ceil((most - 1) * 0.6);
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

  /** A canvas as sharp as the screen. */
  const canvas = (attributes) => {
    const element = h("canvas", attributes);
    const pen = element.getContext("2d");
    const size = (width, height) => {
      const ratio = window.devicePixelRatio || 1;
      const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
      if (element.width !== w || element.height !== h) {
        element.width = w;
        element.height = h;
        element.style.width = `${width}px`;
        element.style.height = `${height}px`;
      }
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      return pen;
    };
    return { element, size };
  };

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages from files may not use the clipboard API in every browser.
      const area = h("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  /** A button that copies a text, and says so. */
  const copier = (name, make, attributes) => {
    const element = button(name, async () => {
      await copy(make());
      element.textContent = "Copied";
      setTimeout(() => { element.textContent = name; }, 1500);
    }, attributes);
    return element;
  };

  return { h, s, button, options, swatch, variable, one, closeMenus, shorten, onWidth, canvas, copier };
})();
