// SPDX-License-Identifier: MIT OR Apache-2.0
// The page: chooses the trace that is shown, keeps the address, and the colours.
"use strict";

(async () => {
  const { h } = dom;
  const data = JSON.parse(document.getElementById("data").textContent);
  const articles = [...document.querySelectorAll("article")];
  const tabs = [...document.querySelectorAll(".traces button")];
  const field = dom.one(".search");
  /** What a trace is, which stands in the header while it is shown. */
  const whos = articles.map((article) => article.querySelector(".who"));
  const root = document.documentElement;
  const opened = new Map();
  const desks = new Map();
  let shown = -1;
  let written = "";

  /** If there are several traces, the first page compares them. */
  const compared = articles.length - data.sheets.length;
  const current = () => desks.get(shown) ?? null;

  const note = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  document.body.append(note);
  const tip = (content, event) => {
    note.hidden = content === null || !event;
    if (note.hidden) return;
    note.replaceChildren(...[content].flat(3).filter((one) => one !== null && one !== undefined && one !== false));
    const { clientWidth, clientHeight } = root;
    const [x, y] = [event.clientX + 14, event.clientY + 16];
    const { offsetWidth, offsetHeight } = note;
    note.style.left = `${Math.max(4, x + offsetWidth > clientWidth ? event.clientX - offsetWidth - 10 : x)}px`;
    note.style.top = `${Math.max(4, y + offsetHeight > clientHeight ? event.clientY - offsetHeight - 10 : y)}px`;
  };

  const packed = async (nth) => {
    if (!opened.has(nth)) opened.set(nth, await unpack.open(document.getElementById(`pack-${nth}`).textContent));
    return opened.get(nth);
  };

  /** Writes what is shown into the address, as a step that Back takes back. */
  const write = () => {
    const it = current();
    const more = { trace: articles.length > 1 ? String(shown) : null, tab: it?.tabAt ? String(it.tabAt) : null, tx: it?.opened.tx, request: it?.opened.request };
    const hash = choice.toHash(it?.selection ?? choice.ALL, more);
    if (hash === written) return;
    written = hash;
    location.hash = hash;
  };

  const open = async (nth) => {
    if (nth < compared) {
      const traces = await Promise.all(data.sheets.map(async (one, at) => ({ sheet: one, theStore: storeOf(at, await packed(at)) })));
      if (!articles[nth].hasChildNodes()) compare.draw(articles[nth], data, traces);
      return;
    }
    if (desks.has(nth)) return;
    const at = nth - compared;
    desks.set(nth, sheet.draw(articles[nth], data.sheets[at], await packed(at), { tip, write, nth, who: whos[nth] }));
  };
  const stores = new Map();
  const storeOf = (at, tables) => {
    if (!stores.has(at)) stores.set(at, store.make(tables));
    return stores.get(at);
  };

  const show = async (nth) => {
    articles.forEach((article, at) => { article.hidden = at !== nth; });
    tabs.forEach((tab, at) => tab.setAttribute("aria-current", String(at === nth)));
    shown = nth;
    field.hidden = nth < compared || data.sheets[nth - compared].is_empty;
    document.querySelector(".slot").replaceChildren(...[whos[nth]].filter(Boolean));
    await open(nth);
  };

  /** Opens the transaction and the request that an address names, which may not be there. */
  const reopen = (it, named) => {
    const { tx, request } = named;
    const number = (text, most) => (/^\d+$/.test(text ?? "") && Number(text) < most ? Number(text) : null);
    const { tables, rows, summed } = it.store;
    it.opened = { tx: number(tx, tables.transactions?.rows ?? 0), request: number(request, summed ? 0 : rows.rows) };
    if (it.opened.tx !== null) it.transactions?.show(it.opened.tx);
    if (it.opened.request !== null) it.details.request(it.opened.request);
    else it.details?.clear();
  };

  /** Takes what is shown from the address. */
  const read = async () => {
    const { selection, more } = choice.ofHash(location.hash);
    written = location.hash.replace(/^#/, "");
    const wanted = Number(more.trace ?? 0);
    await show(articles[wanted] ? wanted : 0);
    const it = current();
    if (!it) return;
    it.selection = selection;
    it.drawLight();
    const tab = Number(more.tab ?? 0);
    if (it.tabs?.[tab] && it.tabAt !== tab) it.tab(tab, true);
    it.drawHeavy();
    reopen(it, more);
  };
  tabs.forEach((tab, nth) => tab.addEventListener("click", async () => {
    await show(nth);
    write();
    current()?.drawLight();
    current()?.drawHeavy();
  }));
  window.addEventListener("hashchange", () => { if (location.hash.replace(/^#/, "") !== written) read(); });

  const wish = matchMedia("(prefers-color-scheme: dark)");
  const toggle = dom.one(".theme");
  const paintIn = (theme) => {
    root.dataset.theme = theme;
    toggle.textContent = theme === "dark" ? "Light" : "Dark";
    const it = current();
    if (it?.result) {
      it.drawLight();
      it.drawHeavy();
    }
    document.dispatchEvent(new Event("theme"));
  };
  const turn = () => paintIn(root.dataset.theme === "dark" ? "light" : "dark");
  toggle.hidden = false;
  toggle.addEventListener("click", turn);
  wish.addEventListener("change", () => paintIn(wish.matches ? "dark" : "light"));
  root.dataset.theme = wish.matches ? "dark" : "light";
  toggle.textContent = wish.matches ? "Light" : "Dark";

  const input = field.querySelector("input");
  search.make(input, document.querySelector(".search ul"), current);
  const help = keys.make(current, { field: input, theme: turn });
  document.querySelector(".keys").addEventListener("click", help.open);
  document.addEventListener("click", dom.closeMenus);

  // A printed page is white.
  let before = null;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    paintIn("light");
    current()?.print?.(true);
    document.dispatchEvent(new Event("layout"));
  });
  window.addEventListener("afterprint", () => {
    current()?.print?.(false);
    paintIn(before);
  });

  // For tests, which compare sums with those of a command.
  Object.assign(window, { mostrace: { current, choice } });
  await read();
  root.dataset.ready = "yes";
  performance.mark("mostrace:ready");
})();
