// SPDX-License-Identifier: MIT OR Apache-2.0
// One trace: its chips, the overview, the lanes, the tabs and the details.
"use strict";

const sheet = (() => {
  const { h, button } = dom;
  const TABS = [icicle, files, transactions, latency, durability, sizes];
  const OPS = [["write", "written"], ["read", "read"], ["flush", "flush", "flushes asked for"], ["device_flush", "flush", "flushes executed"], ["discard", "discarded"]];

  /** A panel with a title, tools, and what can be saved and looked at as a table. */
  const panel = (desk, title, view, { tools = [], heading = "h2" } = {}) => {
    const twin = h("div", { class: "twin", hidden: true });
    const chart = h("div", {}, view.element);
    const toggle = view.table && button("Table", () => {
      const is = twin.hidden;
      twin.hidden = !is;
      chart.hidden = is;
      toggle.setAttribute("aria-pressed", String(is));
      twin.replaceChildren(is ? grid.draw(view.table(), { heading: null, pick: view.pick ? (row) => { toggle.click(); view.pick(row); } : null }) : "");
      if (!is) desk.redraw();
    }, { "aria-pressed": "false", class: "twin-of", title: "The same as a table (t)" });
    return h("section", { class: "panel" }, h("div", { class: "tools" }, h(heading, {}, title), tools, h("span", { class: "end" }, toggle, view.chart || view.table ? save.menu(title, { chart: view.chart, table: view.table }) : null)), chart, twin);
  };

  const chips = (desk) => {
    const list = h("div", { class: "chips" });
    const sums = h("p", { class: "sums" });
    const light = () => {
      const { selection, result, store } = desk;
      const totals = store.totals(result);
      const parts = [];
      if (totals.write.requests) parts.push(`${format.bytes(totals.write.bytes)} written in ${format.some(totals.write.requests, "request")}`);
      if (totals.read.requests) parts.push(`${format.bytes(totals.read.bytes)} read in ${format.some(totals.read.requests, "request")}`);
      if (totals.flush.requests) parts.push(`${format.some(totals.flush.requests, "flush", "flushes")} asked for`);
      if (totals.device_flush.requests) parts.push(`${format.some(totals.device_flush.requests, "flush", "flushes")} executed`);
      if (totals.discard.requests) parts.push(`${format.bytes(totals.discard.bytes)} discarded in ${format.some(totals.discard.requests, "request")}`);
      sums.textContent = parts.join(" · ") || "no request";
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

  /** The header's buttons for operations. */
  const operations = (desk, place) => {
    const totals = desk.store.totals(desk.store.ask(choice.ALL));
    const light = () => {
      const buttons = OPS.filter(([op]) => totals[op].requests > 0).map(([op, word, many]) => {
        const text = many ? `${format.count(totals[op].requests)} ${many}` : `${format.bytes(totals[op].bytes)} ${word}`;
        return button(text, (event) => desk.pick("op", op, event), { "aria-pressed": String(choice.has(desk.selection, "op", op)), title: `Only these: ${op}` });
      });
      place.replaceChildren(...buttons);
    };
    return { light };
  };

  /** Fills the article of a trace; returns its desk. */
  const draw = (article, data, opened, host) => {
    const place = article.querySelector(".desk");
    if (data.counters) article.querySelector(".counters").append(grid.draw(grid.ofPage(data.counters)));
    const it = desk.make(data, opened, host);
    it.details = details.make(it);
    if (data.is_empty) {
      it.light = () => {};
      it.drawHeavy = () => {};
      it.drawLight = () => {};
      return it;
    }
    const header = host.header();
    const over = it.add(overview.make(it));
    const mine = it.add(chips(it));
    it.add(operations(it, header.ops));
    const programs = it.add(lanes.make(it));
    const more = it.addResting(tracks.make(it));
    const views = TABS.map((tab) => tab.make(it));
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
      bodies.replaceChildren(panel(it, views[at].title, views[at], { heading: "h3" }));
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
    it.show = (view) => it.tab(TABS.indexOf(view));
    place.append(
      h("div", { class: "main" },
        h("div", { class: "sticky panel" }, mine.element, over.element),
        panel(it, "Programs", programs, { tools: programs.tools }),
        panel(it, "Also over time", more, { tools: more.tools }),
        h("div", { class: "tabs" }, strip, bodies)),
      it.details.element);
    it.tab(0, true);
    it.light = it.drawLight;
    return it;
  };
  return { draw };
})();
