// SPDX-License-Identifier: MIT OR Apache-2.0
// One trace: the first screen, what is selected, the tabs and the details.
"use strict";

const sheet = (() => {
  const { h, button } = dom;
  const TABS = [lanes, icicle, files, transactions, durability, latency, tracks, sizes];
  /** What was done, in the words of the sums: [operation, whether bytes are told, one, many]. */
  /** @type {[string, boolean, string, string?][]} */
  const OPS = [["write", true, "written"], ["read", true, "read"], ["discard", true, "discarded"], ["flush", false, "flush asked for", "flushes asked for"], ["device_flush", false, "flush executed", "flushes executed"]];

  /** A panel with a title, tools, and what can be saved and looked at as a table. */
  const panel = (desk, title, view, { tools = [], end = null, heading = "h2" } = {}) => {
    const twin = h("div", { class: "twin", hidden: true });
    const chart = h("div", {}, view.element);
    const isChart = !view.isTable;
    const toggle = isChart && view.table && button("Table", () => {
      const is = twin.hidden;
      twin.hidden = !is;
      chart.hidden = is;
      toggle.setAttribute("aria-pressed", String(is));
      twin.replaceChildren(is ? grid.draw(view.table(), { heading: null, saves: false, pick: view.pick ? (row) => { toggle.click(); view.pick(row); } : null }) : "");
      if (!is) desk.redraw();
    }, { "aria-pressed": "false", class: "twin-of", title: "The same as a table (t)" });
    return h("section", { class: "panel" }, h("div", { class: "tools" }, h(heading, {}, title), tools, h("span", { class: "end" }, end, toggle, isChart && (view.chart || view.table) ? save.menu(title, { chart: view.chart, table: view.table }) : null)), chart, twin);
  };

  /** The sums of the selection, and its terms, each of which can be taken back. */
  const chips = (desk) => {
    const list = h("div", { class: "chips" });
    const sums = h("div", { class: "sums" });
    const light = () => {
      const { selection, result, store } = desk;
      const totals = store.totals(result);
      // What is summed can be selected: writes, reads, flushes.
      const parts = OPS.filter(([op]) => totals[op].requests > 0).map(([op, isBytes, one, many]) => button(
        isBytes ? `${format.bytes(totals[op].bytes)} ${one} in ${format.some(totals[op].requests, "request")}` : format.some(totals[op].requests, one, many),
        (event) => desk.pick("op", op, event), { class: "sum", "aria-pressed": String(choice.has(selection, "op", op)), title: `Only these: ${op}` }));
      sums.replaceChildren(...(parts.length ? parts : [selection.terms.length || selection.from !== null ? "Nothing in this trace matches this selection." : "no request"]));
      const [from, to] = desk.window();
      const all = [];
      if (selection.from !== null) all.push(button([`${format.moment(from, (to - from) / 50)} – ${format.moment(to, (to - from) / 50)}`, h("span", { "aria-hidden": "true" }, " ✕")], () => desk.during(null, null), { "aria-label": "All of the time again" }));
      for (const term of selection.terms) {
        const text = `${term.not ? "without " : ""}${choice.DIMS[term.dim]} ${term.value ?? "not known"}`;
        all.push(button([dom.shorten(text, 60), h("span", { "aria-hidden": "true" }, " ✕")], () => desk.set(choice.without(selection, term)), { class: term.not ? "not" : "", title: text, "aria-label": `Remove: ${text}` }));
      }
      if (all.length) all.push(button("Clear", () => desk.set(choice.ALL), { class: "clear" }));
      list.replaceChildren(...all);
    };
    return { element: h("div", { class: "chosen", role: "group", "aria-label": "Selection" }, sums, list), light };
  };

  /** Fills the article of a trace; returns its desk. */
  const draw = (article, data, opened, host) => {
    const place = article.querySelector(".desk");
    if (data.counters) host.who.querySelector(".counters").append(grid.draw(grid.ofPage(data.counters)));
    const it = desk.make(data, opened, host);
    it.details = details.make(it);
    if (data.is_empty) {
      first.nothing(article, data, host.who);
      it.light = () => {};
      it.drawHeavy = () => {};
      it.drawLight = () => {};
      return it;
    }
    first.hero(it, article);
    const mine = it.add(chips(it));
    const top = first.make(it, panel, mine.element);
    const views = [...TABS, ...(data.flash ? [flash] : [])].map((tab) => tab.make(it));
    const bodies = h("div", { class: "tab-body", role: "tabpanel", tabindex: 0, id: `tab-body-${host.nth}` });
    const tabs = views.map((view, at) => button(view.name, () => it.tab(at), { role: "tab", "aria-selected": "false", "aria-controls": `tab-body-${host.nth}`, tabindex: -1 }));
    it.tabs = tabs;
    it.tabAt = 0;
    it.by = () => views[it.tabAt].by ?? "cause_or_submitter";
    it.tab = (at, quiet = false) => {
      it.tabAt = at;
      tabs.forEach((tab, nth) => {
        tab.setAttribute("aria-selected", String(nth === at));
        tab.setAttribute("tabindex", nth === at ? 0 : -1);
      });
      bodies.replaceChildren(panel(it, views[at].title, views[at], { heading: "h3", tools: views[at].tools }));
      bodies.setAttribute("aria-label", views[at].title);
      it.setHeavy(views[at]);
      if (!quiet) host.write();
    };
    const strip = h("div", { class: "tablist", role: "tablist", "aria-label": "Views of the selection", onkeydown: (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      it.tab((it.tabAt + by + tabs.length) % tabs.length);
      tabs[it.tabAt].focus();
    } }, tabs);
    const at = TABS.indexOf(transactions);
    it.transactions = views[at].show ? { ...views[at], show: (which) => { it.tab(at, true); views[at].show(which); bodies.scrollIntoView({ block: "nearest" }); } } : null;
    const command = (view) => ("command" in view ? view.command() : it.command(it.by()));
    const copy = dom.copier("Copy the command", () => command(views[it.tabAt]), { title: "mostrace analyze … --where …, which prints these figures" });
    // A printed page has all of them.
    const printed = h("div", { class: "printed" });
    it.print = (is) => {
      printed.replaceChildren(...(is ? views.flatMap((view, nth) => (nth === it.tabAt ? [] : [panel(it, view.title, view, { heading: "h3", tools: view.tools })])) : []));
      if (is) views.forEach((view) => view.draw());
    };
    place.append(...top, h("div", { class: "tabs" }, h("div", { class: "closer" }, h("b", {}, "Look closer"), strip, copy), bodies, printed), it.details.element);
    it.tab(0, true);
    it.light = it.drawLight;
    return it;
  };
  return { draw };
})();
