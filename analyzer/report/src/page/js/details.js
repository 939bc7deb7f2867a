// SPDX-License-Identifier: MIT OR Apache-2.0
// The panel over the charts: one request with its chain from the call to the sector, or one call.
"use strict";

const details = (() => {
  const { h, button } = dom;
  const SURE = {
    exact: "every change of these bytes was seen, all by this cause", shared: "all causes are known, and each has a part", first: "this cause changed them first; others may have too",
    set: "one of several possible causes", proportional: "its part of a whole transaction or checkpoint", unknown: "not known",
  };

  /** A request in a few lines, for a note at the pointer. */
  const short = (row) => [
    h("b", {}, `${row.op} ${format.bytes(row.bytes)}`), h("div", {}, dom.swatch(row.layer.colour), ` ${row.layer.name}${row.layer.part ? `: ${row.layer.part}` : ""}`),
    h("div", {}, `${row.who ?? "nobody known"}${row.why ? `, ${row.why}` : ""}`), row.file ? h("div", {}, row.file) : null,
    h("div", { class: "soft" }, `at ${format.moment(row.time, 1)}${row.wait === null ? "" : ` after ${format.us(row.wait)}`}`),
  ];

  const make = (desk) => {
    const { store } = desk;
    const body = h("div", { class: "body" });
    const back = button("Close", () => desk.closeOne());
    const element = h("aside", { class: "details one", "aria-label": "Details", hidden: true }, body);
    let one = null;

    const pair = (name, value) => (value === null || value === undefined || value === "" ? null : [h("dt", {}, name), h("dd", {}, value)]);
    /** A request in words: its chain from the call to the sector, and how long it took. */
    const chainOf = (row) => {
      const link = (dim, value, text = value) => button(text, (event) => desk.pick(dim, value, event), { class: "link" });
      const steps = [
        ["call", [row.why ? `${row.why}() by ` : "by ", row.who === null ? "nobody known" : link("proc", row.who)]],
        ["file", row.file === null ? "no known file" : link("file", row.file)],
        [row.layer.class === "journal" ? "journal" : "block", [dom.swatch(row.layer.colour), " ", link("layer", row.layer.name), row.layer.part ? `: ${row.layer.part}` : "", row.own && row.own !== row.file ? h("div", { class: "soft" }, `of ${row.own}`) : ""]],
        ["device", row.sector === null ? row.op : `${row.op} ${format.bytes(row.bytes)} at sector ${format.count(row.sector)}${row.fua ? ", FUA" : ""}`],
      ];
      return [
        h("ol", { class: "chain" }, steps.map(([name, value]) => h("li", {}, h("b", {}, name), h("div", {}, value)))),
        h("dl", {}, pair("completed", format.moment(row.time, 1)), pair("in the queue", row.queue === null ? null : format.us(row.queue)), pair("in the device", row.device === null ? null : format.us(row.device)),
          pair("from Q to C", row.wait === null ? null : format.us(row.wait)), pair("the cause is", `${row.known}: ${SURE[row.known] ?? ""}`)),
      ];
    };
    const titleOf = (row) => `A ${row.op} of ${format.bytes(row.bytes)}`;
    const requestOf = (row) => [h("h2", {}, titleOf(row)), ...chainOf(row), h("p", {}, button("Select its time", () => desk.during(row.time - (row.wait ?? 0) - 1, row.time + 2)), " ", back)];
    const callOf = (row) => {
      const { calls } = store.tables;
      const { words } = store;
      const [start, took] = [calls.start[row], calls.took[row]];
      return [
        h("h2", {}, `${words.about.calls[calls.call[row]]}()`),
        h("dl", {}, pair("process", words.whos[calls.who[row]].name), pair("file", words.files[calls.file[row]]), pair("began", format.moment(start, 1)), pair("took", format.us(took)), ...(words.about.durable.includes(calls.call[row]) ? waits.partsOf(calls, row).map((us, at) => (us > 0 ? pair(`waited: ${waits.PARTS[at]}`, format.us(us)) : null)) : []), pair("bytes", calls.bytes[row] ? format.bytes(calls.bytes[row]) : null)),
        h("p", {}, button("Select its time", () => desk.during(start, start + took + 1)), " ", back),
      ];
    };
    const show = (make) => {
      one = make;
      element.hidden = one === null;
      if (one) body.replaceChildren(...one());
      element.scrollTop = 0;
    };
    return { element, request: (row) => show(() => requestOf(store.row(row))), call: (row) => show(() => callOf(row)), clear: () => show(null), titleOf: (row) => titleOf(store.row(row)), chainOf: (row) => chainOf(store.row(row)), isOne: () => one !== null };
  };
  return { make, short };
})();
