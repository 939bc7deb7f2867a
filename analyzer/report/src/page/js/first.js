// SPDX-License-Identifier: MIT OR Apache-2.0
// The first screen of a trace: how much and how many times, why, what is waited for, and when. What a trace does not have is
// not there: a trace of many programs has their list in place of what is waited for.
"use strict";

const first = (() => {
  const { h } = dom;

  /** The ladder, and the ratio in large letters, beside the answer that the page has as text. */
  const hero = (desk, article) => {
    const made = ladder.make(desk);
    if (!made) return;
    article.querySelector(".steps").append(made.element);
    article.querySelector(".times").append(h("b", {}, format.times(made.times)), h("span", { class: "soft" }, made.base));
  };

  /** The panels: `panel` makes one of a view. Returns their elements. */
  const make = (desk, panel, chosen) => {
    const over = desk.add(when.make(desk));
    desk.peak = over.peak;
    const why = desk.addResting(flow.make(desk));
    const many = programs.areMany(desk);
    const list = many ? desk.addResting(programs.make(desk)) : null;
    const side = many ? null : desk.addResting(waiting.make(desk));
    const causes = panel(desk, "Why: cause → blocks", why, { tools: why.tools });
    return [
      h("div", { class: `first ${many ? "many" : ""}` }, list ? panel(desk, "Programs", list) : null, causes, side?.element),
      // It stays at the top, because an interval is selected here for what is below.
      h("div", { class: "sticky" }, panel(desk, "When", over, { tools: over.tools, end: over.end }), chosen),
    ];
  };

  /** A trace without requests: what can be tried. */
  const nothing = (article, sheet, who) => {
    const about = who.querySelector(".about dl").cloneNode(true);
    about.className = "plain-list";
    article.querySelector(".desk").append(h("section", { class: "panel" }, h("h2", {}, "What to try"),
      h("ul", {},
        h("li", {}, "Is this the device that the files are on? ", h("code", {}, "findmnt -T FILE"), " says which one it is, and ", h("code", {}, "mostrace record -d FOLDER"), " finds it by itself."),
        h("li", {}, "Was the recording long enough? A filesystem writes after 5 to 30 seconds, unless a program asks for durability. ", h("code", {}, "sync"), " at the end writes what is left."),
        h("li", {}, "Was it read from memory? ", h("code", {}, "echo 3 | sudo tee /proc/sys/vm/drop_caches"), " empties the cache before a recording of reads."))),
    h("section", { class: "panel" }, h("h2", {}, "What was traced"), about),
    sheet.counters ? h("section", { class: "panel" }, grid.draw(grid.ofPage(sheet.counters), { heading: "h2" })) : "");
  };
  return { make, hero, nothing };
})();
