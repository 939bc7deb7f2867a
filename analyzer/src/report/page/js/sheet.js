// SPDX-License-Identifier: MIT OR Apache-2.0
// Shows one trace: its sections, each drawn when it comes into view.
"use strict";

const sheet = (() => {
  const { h, swatch } = dom;

  const legend = (data) => {
    const sums = icicle.byColour(data.icicle.written);
    const whole = data.icicle.written.v;
    return h("ul", { class: "legend" }, sums.map((bytes, colour) => bytes > 0
      ? h("li", {}, swatch(colour), data.colours[colour], h("span", { class: "value" }, `${format.bytes(bytes)} · ${format.percent(bytes, whole)}`)) : null));
  };

  const went = (data) => {
    const place = h("div");
    const show = (direction) => place.replaceChildren(icicle.draw(data, direction));
    const has = ["written", "read"].filter((direction) => data.icicle[direction].v > 0);
    if (!has.length) return h("p", { class: "note" }, "Nothing was written or read.");
    show(has[0]);
    const choice = has.length > 1 ? dom.choice("Direction", has.map((direction) => (direction === "read" ? "Reads" : "Writes")), 0, (at) => show(has[at])) : null;
    return h("div", {}, choice, place, legend(data));
  };

  const WENT = {
    caused: "Every byte once, by who caused it: of bytes that several have caused, each has a share.",
    submitted: "Every byte once, by who submitted it: this trace does not tell who caused it.",
  };
  const some = (...grids) => grids.filter((table) => table && table.rows.length);

  /** The sections: short name, heading, description, and the function that draws it; null if there is nothing to draw. */
  const sections = (data) => [
    ["Bytes", "Where the bytes went", WENT[data.icicle.basis], () => went(data)],
    data.timeline && ["Time", "Bytes over time", "Written to the device, each part on top of the others.", () => timeline.draw(data)],
    data.density && (data.density.written.bytes.length || data.density.read.bytes.length)
      && ["Sectors", "Sectors over time", "Places on the disk that were not touched are left out; a cell has the colour of most of its bytes, and is stronger the more there are.", () => density.draw(data)],
    data.waterfall?.shown.length
      ? ["Transactions", "Transactions of SQLite", "From the first call to the last for durability, and what the device did meanwhile.", () => waterfall.draw(data)]
      : ["Transactions", "Transactions of SQLite", data.waterfall ? "The system calls of this trace show none." : "This trace has no system calls, which show them.", null],
    data.latency && ["Latency", "Latency", "Each request once in each kind that it has blocks of.", () => latency.draw(data)],
    some(data.processes, data.files).length
      && ["Who", "Processes and files", "", () => h("div", {}, some(data.processes, data.files).map((table) => grid.draw(table)))],
    some(data.syncs).length && ["Syncs", "Calls for durability", "", () => grid.draw(data.syncs)],
    some(data.sizes, data.order).length
      && ["Sizes", "Sizes and order of requests", "", () => h("div", { class: "tables" }, some(data.sizes, data.order).map((table) => grid.draw(table)))],
    some(data.rewrites, data.hottest).length
      && ["Rewrites", "Rewrites and hot blocks", "", () => h("div", { class: "tables" }, some(data.rewrites, data.hottest).map((table) => grid.draw(table)))],
  ].filter(Boolean);

  const later = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      later.unobserve(target);
      target.dispatchEvent(new Event("draw"));
    }
  }, { rootMargin: "600px" });

  /** Fills the article of a trace; returns the links to its sections. */
  const draw = (article, data, nth) => {
    if (data.counters) article.querySelector(".counters").append(grid.draw(data.counters));
    const place = article.querySelector(".sections");
    return sections(data).map(([short, title, lead, make], at) => {
      const id = `s${nth}-${at}`;
      const body = h("div");
      const panel = h("section", { class: "panel", id, "aria-labelledby": `${id}-h` }, h("h2", { id: `${id}-h` }, title), lead ? h("p", { class: "lead" }, lead) : null, body);
      place.append(panel);
      if (make) {
        const fill = () => body.hasChildNodes() || body.append(make() ?? "");
        panel.addEventListener("draw", fill);
        // The first section is visible at once.
        if (at === 0) fill();
        else later.observe(panel);
      }
      return h("a", { href: `#${id}` }, short);
    });
  };
  return { draw };
})();
