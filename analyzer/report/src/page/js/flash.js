// SPDX-License-Identifier: MIT OR Apache-2.0
// What a model of a drive writes to its flash: the curve over levels of fill, and whose data is moved at the level of the slider.
"use strict";

const flash = (() => {
  const { h, s } = dom;
  const TALL = 200;
  const percent = (share) => `${Math.round(share * 1000) / 10}\u00a0%`;
  /** A ratio near 1 has digits. */
  const times = (ratio) => `${ratio >= 9.995 ? format.short(ratio) : ratio.toFixed(2)}\u00a0×`;

  /** The colour of a layer: the page's own, if the recording wrote it. */
  const colourOf = (store, name) => {
    const layer = store.words.layers.find((one) => one.name === name);
    return layer ? String(layer.colour) : name === "what was there before" ? "bar" : "2";
  };

  /** The layers of all levels, those that are moved most first. */
  const layersOf = (levels) => {
    const sums = new Map();
    for (const level of levels) for (const [name, share] of level.layers) sums.set(name, (sums.get(name) ?? 0) + share * level.moved);
    return [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  };

  /** The curve as a table. */
  const table = ({ levels }) => {
    const layers = layersOf(levels);
    const share = (level, name) => (level.layers.find(([one]) => one === name)?.[1] ?? 0) * level.moved;
    return {
      title: "What the flash writes, by a model", note: "For each byte at the device; the layers are those of what is moved.",
      columns: [{ name: "full, %", unit: "percent" }, ...["flash", "moved", "left empty by flushes", "least of the last laps", "greatest"].map((name) => ({ name, unit: "ratio", bar: name === "flash" })), { name: "steady", unit: "text" }, ...layers.map((name) => ({ name, unit: "ratio" }))],
      rows: levels.map((level) => [level.fill * 100, level.ratio, level.moved, level.padded, level.least, level.greatest, level.is_steady ? "yes" : "no", ...layers.map((name) => share(level, name))]),
    };
  };

  /** The points of the curve in a box of this width: {x, y, level}. */
  const points = (levels, width, left) => {
    const most = chart.roundUp(Math.max(2, ...levels.map((level) => level.ratio)));
    const [first, last] = [Math.min(0.5, levels[0].fill), 1];
    const x = chart.linear([first, last], [left, width - 14]);
    const y = chart.linear([0, most], [TALL - 24, 12]);
    return { x, y, most, first, of: levels.map((level) => ({ level, x: x(level.fill), y: y(level.ratio) })) };
  };

  const curve = (levels, at, width, choose) => {
    const left = 38;
    const { x, y, most, first, of } = points(levels, width, left);
    const marks = chart.ticks(first, 1, width < 420 ? 3 : 6);
    const line = of.map((point, nth) => `${nth ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("");
    const said = levels.map((level) => `${percent(level.fill)} full ${times(level.ratio)}`).join(", ");
    return chart.root(width, TALL, `Bytes on the flash for each byte at the device: ${said}`, {},
      chart.left(y, chart.ticks(0, most, 4), [left, width - 14], (value) => format.times(value)),
      chart.bottom(x, marks, TALL - 24, (value) => percent(value), [left, width]),
      s("path", { class: "curve", d: line }),
      of.map((point, nth) => s("circle", { class: nth === at ? "dot chosen" : "dot", cx: point.x, cy: point.y, r: nth === at ? 6 : 4, onclick: () => choose(nth) })),
      chart.text(Math.min(of[at].x, width - 60), Math.max(12, of[at].y - 11), times(levels[at].ratio), { class: "strong", "text-anchor": of[at].x > width - 80 ? "end" : "middle" }));
  };

  /** What the level is made of, and a bar of the layers of what is moved. */
  const level = (store, it, { layers, moved, ratio, fill, padded, least, greatest, is_steady: isSteady }) => {
    const parts = [`${times(moved)} moved by the collector`];
    if (it.rounded > 1.005) parts.push(`${times(it.rounded - 1)} to write whole units`);
    if (padded > 0) parts.push(`${times(padded)} left empty by flushes`);
    const steady = isSteady ? "" : ` NOT steady: ${times(least)} to ${times(greatest)} in the last laps.`;
    const rows = layers.filter(([, share]) => share >= 0.005).map(([name, share]) => {
      const colour = colourOf(store, name);
      const bar = s("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", width: "100%", height: 10, "aria-hidden": "true" }, chart.rect(0, 0, share * 100, 10, { class: `fill-${colour}` }));
      return h("li", {}, h("span", { class: "share" }, format.rounded(share, 1)), h("span", {}, name), bar);
    });
    return [
      h("p", {}, h("b", {}, `${percent(fill)} full: ${times(ratio)} the device's bytes on the flash.`), ` Of these ${parts.join(", ")}.${steady}`),
      rows.length ? h("p", { class: "soft" }, "Whose data is moved:") : h("p", { class: "soft" }, "Nothing is moved."), h("ul", { class: "moved" }, rows),
    ];
  };

  const make = (desk) => {
    const { sheet, store } = desk;
    const it = sheet.flash;
    const about = [h("b", {}, it.words), " The whole recording is repeated, whatever is selected. docs/FLASH.md says what the model leaves out."];
    const frame = { name: "Flash", title: "What the flash writes, by a model", draw: () => {}, by: "cause_or_submitter", command: () => `mostrace flash ${choice.shell(sheet.path)} --capacity ${it.capacity}` };
    if (it.problem) return { ...frame, isTable: true, element: h("div", {}, h("p", { class: "note" }, about), h("p", { class: "notice" }, `There is no model: ${it.problem}.`)) };
    const { levels } = it;
    let { at } = it;
    const place = h("div", { class: "chart" });
    const said = h("div", {});
    const output = h("output", {});
    const slider = h("input", { type: "range", min: 0, max: levels.length - 1, step: 1, value: at, "aria-label": "How full the drive is", oninput: () => choose(Number(slider.value)) });
    let width = 0;
    const choose = (nth) => {
      at = nth;
      slider.value = String(at);
      slider.setAttribute("aria-valuetext", `${percent(levels[at].fill)} full`);
      output.textContent = `${percent(levels[at].fill)} full`;
      if (width) place.replaceChildren(curve(levels, at, width, choose));
      said.replaceChildren(...level(store, it, levels[at]));
    };
    dom.onWidth(place, (wide) => {
      width = wide;
      choose(at);
    });
    const [fresh, full, after] = it.life.map(times);
    const life = `New ${fresh}, ${percent(levels[it.at].fill)} full ${times(levels[it.at].ratio)}, all once written and nothing discarded ${full}, ${percent(levels[it.at].fill)} again by fstrim ${after}. What it writes alone fills ${percent(it.own_share)}.`;
    return {
      ...frame, table: () => table(it),
      chart: () => ({ title: `${sheet.name}: bytes on the flash for each byte at the device`, source: desk.source(), warnings: [it.words, ...sheet.missing], legend: [], node: () => place.querySelector("svg") }),
      element: h("div", { class: "flash" }, h("p", { class: "note" }, about), h("label", { class: "slider" }, "How full ", slider, output), place, said, h("p", { class: "note" }, life)),
    };
  };
  return { make, layersOf, points, table };
})();
