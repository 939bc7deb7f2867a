// SPDX-License-Identifier: MIT OR Apache-2.0
// The search for programs, processes, files and layers: a list below the field, of which one is taken.
"use strict";

const search = (() => {
  const { h } = dom;
  const MOST = 12;
  const DIMS = [["app", "program"], ["file", "file"], ["proc", "process"], ["layer", "layer"]];

  /** What matches a text, the heaviest first: [{dim, value, kind, bytes}]. */
  const find = (theStore, result, text) => {
    const words = text.toLowerCase();
    const found = [];
    let matching = [0, 0];
    for (const [dim, kind] of DIMS) {
      const sums = theStore.by(result, dim, result.bytes);
      const { labels } = theStore.dims[dim];
      labels.forEach((label, at) => {
        if (label === null || !label.toLowerCase().includes(words)) return;
        if (dim === "file" && sums[at] > 0) matching = [matching[0] + 1, matching[1] + sums[at]];
        found.push({ dim, value: label, kind, bytes: sums[at] });
      });
    }
    found.sort((a, b) => b.bytes - a.bytes);
    const all = matching[0] > 1 ? [{ dim: "match", value: text, kind: `${format.count(matching[0])} files with`, bytes: matching[1] }] : [];
    return { list: [...all, ...found.slice(0, MOST)], more: Math.max(0, found.length - MOST) };
  };

  /** `current()` is the desk that is shown. */
  const make = (field, list, current) => {
    let found = [];
    let chosen = -1;
    const close = () => {
      list.hidden = true;
      field.setAttribute("aria-expanded", "false");
      field.removeAttribute("aria-activedescendant");
      chosen = -1;
    };
    const mark = () => {
      [...list.querySelectorAll("[role=option]")].forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
      if (chosen >= 0) field.setAttribute("aria-activedescendant", `found-${chosen}`);
    };
    const take = (at, event) => {
      const desk = current();
      const one = found[at];
      if (!one || !desk) return;
      field.value = "";
      close();
      desk.pick(one.dim, one.value, event);
    };
    const open = () => {
      const desk = current();
      const text = field.value.trim();
      if (!text || !desk) {
        close();
        return;
      }
      const { list: some, more } = find(desk.store, desk.wholeTime(), text);
      found = some;
      chosen = some.length ? 0 : -1;
      list.replaceChildren(...some.map((one, at) => h("li", { role: "option", id: `found-${at}`, onpointerdown: (event) => { event.preventDefault(); take(at, event); } },
        h("span", { class: "soft" }, one.kind), h("b", {}, one.dim === "match" ? `“${one.value}”` : one.value), h("span", { class: "soft" }, format.bytes(one.bytes)))),
      ...(some.length ? [] : [h("li", { class: "soft", role: "option", "aria-disabled": "true" }, "Nothing has such a name.")]), ...(more ? [h("li", { class: "soft", role: "option", "aria-disabled": "true" }, `${format.count(more)} more`)] : []));
      list.hidden = false;
      field.setAttribute("aria-expanded", "true");
      mark();
    };
    field.addEventListener("input", open);
    field.addEventListener("focus", open);
    field.addEventListener("blur", close);
    field.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by && found.length) {
        event.preventDefault();
        chosen = (chosen + by + found.length) % found.length;
        mark();
      } else if (event.key === "Enter") take(Math.max(0, chosen), event);
      else if (event.key === "Escape") {
        field.value = "";
        close();
        field.blur();
      }
    });
  };
  return { make, find };
})();
