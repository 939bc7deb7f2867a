// SPDX-License-Identifier: MIT OR Apache-2.0
// The page: chooses the trace that is shown, and the colours.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const articles = [...document.querySelectorAll("article")];
  const tabs = [...document.querySelectorAll(".traces button")];
  const contents = document.querySelector(".contents");
  const links = new Map();

  /** If there are several traces, the first page compares them. */
  const first = articles.length - data.sheets.length;
  const draw = (nth) => (nth < first ? compare.draw(articles[nth], data) : sheet.draw(articles[nth], data.sheets[nth - first], nth));
  const show = (nth) => {
    articles.forEach((article, at) => { article.hidden = at !== nth; });
    tabs.forEach((tab, at) => tab.setAttribute("aria-current", String(at === nth)));
    if (!links.has(nth)) links.set(nth, draw(nth));
    contents.replaceChildren(...links.get(nth));
  };
  tabs.forEach((tab, nth) => tab.addEventListener("click", () => show(nth)));

  const root = document.documentElement;
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const toggle = document.querySelector(".theme");
  const paint = (theme) => {
    root.dataset.theme = theme;
    toggle.textContent = theme === "dark" ? "Light" : "Dark";
    document.dispatchEvent(new Event("theme"));
  };
  toggle.hidden = false;
  toggle.addEventListener("click", () => paint(root.dataset.theme === "dark" ? "light" : "dark"));
  wish.addEventListener("change", () => paint(wish.matches ? "dark" : "light"));
  paint(wish.matches ? "dark" : "light");

  // A printed page is white, and has all sections.
  let before = null;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    paint("light");
    document.querySelectorAll("article:not([hidden]) .panel").forEach((panel) => panel.dispatchEvent(new Event("draw")));
    document.dispatchEvent(new Event("layout"));
  });
  window.addEventListener("afterprint", () => paint(before));
  show(0);
})();
