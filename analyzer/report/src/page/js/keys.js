// SPDX-License-Identifier: MIT OR Apache-2.0
// The keyboard: each key with what it does, which `?` lists.
"use strict";

const keys = (() => {
  const { h, button } = dom;

  /** [keys, what, action]; `current()` is the desk that is shown. */
  const all = (current, { field, help, theme }) => [
    [["/"], "search programs, files, processes and layers", () => field.focus()],
    [["←", "ArrowLeft"], "an earlier interval", () => current()?.pan(-0.25)],
    [["→", "ArrowRight"], "a later interval", () => current()?.pan(0.25)],
    [["+", "="], "a shorter interval", () => current()?.zoom(0.5)],
    [["-", "−"], "a longer interval", () => current()?.zoom(2)],
    [["0", "Home"], "all of the time", () => current()?.during(null, null)],
    [["Escape"], "close what is open, or take back the last term of the selection", () => {
      const it = current();
      if (!it) return;
      if (it.details.isOne()) it.closeOne();
      else if (it.selection.terms.length) it.set(choice.without(it.selection, it.selection.terms[it.selection.terms.length - 1]));
      else if (it.selection.from !== null) it.during(null, null);
    }],
    [["Backspace"], "undo, as the browser’s Back does", () => history.back()],
    [["1", "2", "3", "4", "5", "6", "7", "8"], "the tabs", (key) => current()?.tab?.(Number(key) - 1)],
    [["w"], "writes only", () => current()?.pick("op", "write")],
    [["r"], "reads only", () => current()?.pick("op", "read")],
    [["t"], "the table of the chart, or back", () => dom.one(".twin-of", document.activeElement?.closest(".panel") ?? document.querySelector("article:not([hidden]) .first"))?.click()],
    [["x"], "on a program or a box: leave it out; Enter selects it, Ctrl-click adds", null],
    [["d"], "dark or light", theme],
    [["?"], "this list", help],
  ];

  const make = (current, parts) => {
    const box = h("dialog", { class: "help", "aria-labelledby": "help-title" });
    const list = all(current, { ...parts, help: () => (box.open ? box.close() : box.showModal()) });
    box.append(h("h2", { id: "help-title" }, "Keys and pointer"),
      h("dl", {}, list.map(([names, what]) => [h("dt", {}, names.filter((name) => !/^Arrow|Home|=|−$/.test(name) || names.length === 1).map((name) => h("kbd", {}, name))), h("dd", {}, what)])),
      h("p", {}, "Drag over the bars to select an interval, or in a lane to look closer; a double click shows all. The wheel with Ctrl zooms, in the lanes down to single requests. A click on a program, cause, file, layer or box selects it, Ctrl-click adds it, Alt-click leaves it out. The address of the page holds the selection: send it with the file."),
      button("Close", () => box.close()));
    document.body.append(box);
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      const target = /** @type {HTMLElement} */ (event.target);
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || box.open) return;
      // A table scrolls by the arrow keys.
      if (event.key.startsWith("Arrow") && target.closest?.(".scroll")) return;
      const found = list.find(([names, , act]) => act && names.includes(event.key));
      if (!found) return;
      event.preventDefault();
      found[2](event.key);
    });
    return { open: () => box.showModal() };
  };
  return { make };
})();
