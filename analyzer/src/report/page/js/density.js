// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws where on the disk requests went, over time.
"use strict";

const density = (() => {
  const { h, swatch } = dom;

  const cellsOf = (cells) => ({ ...cells, at: heatmap.places(cells.skip), most: Math.max(1, ...cells.bytes.map(Math.log2)) });

  const draw = (sheet) => {
    const data = sheet.density;
    const directions = [["Writes", cellsOf(data.written)], ["Reads", cellsOf(data.read)]].filter(([, cells]) => cells.at.length);
    if (!directions.length) return null;
    let [, cells] = directions[0];
    const start = (row, band) => band.from + Math.floor(((band.to - band.from) * (row - band.row)) / band.rows);
    const choice = directions.length > 1
      ? dom.choice("Direction", directions.map(([name]) => name), 0, (at) => { [, cells] = directions[at]; map.show(cells); }) : null;
    const map = heatmap.draw("map", {
      name: "Sectors over time, coloured by what was written",
      columns: data.columns, bin_ns: data.bin_ns, bands: data.bands, cells,
      paint: (nth) => [`--k${cells.colour[nth]}`, 0.3 + (0.7 * Math.log2(cells.bytes[nth])) / cells.most],
      line: (row, band) => format.place(start(row, band)),
      lines: (band, from, to, unit) => {
        const step = Math.max(1, Math.ceil(44 / unit));
        const out = [];
        for (let row = from; row < to; row += step) out.push(Math.floor(row));
        return out;
      },
      describe: (nth, row, band, when) => {
        const sectors = `sectors ${format.count(start(row, band))} to ${format.count(start(row + 1, band) - 1)}`;
        if (nth === undefined) return [`Nothing here: ${when}, ${sectors}.`];
        const [file, process] = data.whose[cells.whose[nth]] ?? [];
        const whose = cells.whose[nth] < 0 ? "No one file and process has more than half of it."
          : `Most of it ${file ? `is of ${file}` : "is of no known file"}${process ? `, submitted by ${process}` : ""}.`;
        return [swatch(cells.colour[nth]), " ", h("b", {}, `${format.bytes(cells.bytes[nth])}, mostly ${sheet.colours[cells.colour[nth]]}`), ` – ${when}, ${sectors}. ${whose}`];
      },
    }, choice);
    return map.element;
  };
  return { draw };
})();
