// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws bars and axes of time on a canvas, for charts of many marks, or on a pen that writes SVG.
"use strict";

const paint = (() => {
  let theme = null;
  /** The colours of the style sheet; they are read once for each theme. */
  const colours = () => {
    const name = document.documentElement.dataset.theme;
    if (theme?.name === name) return theme;
    const of = dom.variable;
    theme = {
      name, kinds: Array.from({ length: 8 }, (_, at) => of(`--k${at}`)), flush: of("--flush"), discard: of("--discard"), ink: of("--ink"), soft: of("--soft"), line: of("--line"),
      strong: of("--strong"), surface: of("--surface"), accent: of("--accent"), sync: of("--sync"), bar: of("--measure"), sans: of("--sans"), wait: Array.from({ length: 5 }, (_, at) => of(`--w${at}`)),
    };
    return theme;
  };

  /** Adds up the colours of a bin. */
  const sum = (bins, at, wide) => {
    let all = 0;
    for (let k = 0; k < wide; k += 1) all += bins[at + k];
    return all;
  };

  /** Draws bars of stacked colours from a base line up, or down. `box`: {x, width, base, height}. */
  const stack = (pen, bins, from, count, wide, down, box, most) => {
    const { kinds } = colours();
    const stride = wide * 2;
    const step = box.width / count;
    for (let bin = 0; bin < count; bin += 1) {
      const at = (from + bin) * stride + (down ? wide : 0);
      const all = sum(bins, at, wide);
      if (all <= 0) continue;
      const high = Math.max(1, (all / most) * box.height);
      let y = box.base;
      for (let k = 0; k < wide; k += 1) {
        const value = bins[at + k];
        if (value <= 0) continue;
        const tall = (value / all) * high;
        pen.fillStyle = kinds[k];
        if (down) pen.fillRect(box.x + bin * step, y, Math.max(1, step), tall);
        else pen.fillRect(box.x + bin * step, y - tall, Math.max(1, step), tall);
        y += down ? tall : -tall;
      }
    }
  };

  /** The largest sum of a bin, written and read. */
  const most = (bins, from, count, wide) => {
    let [up, down] = [0, 0];
    for (let bin = from; bin < from + count; bin += 1) {
      up = Math.max(up, sum(bins, bin * wide * 2, wide));
      down = Math.max(down, sum(bins, bin * wide * 2 + wide, wide));
    }
    return [up, down];
  };

  /** Draws an axis of time below y, with lines through the chart above. */
  const axis = (pen, from, to, box, y, lines) => {
    const { soft, line, sans } = colours();
    pen.font = `11px ${sans}`;
    pen.textBaseline = "top";
    const { step, all } = chart.ticks(from, to, box.width / 90);
    for (const at of all) {
      const x = box.x + ((at - from) / (to - from)) * box.width;
      if (lines) {
        pen.fillStyle = line;
        pen.fillRect(x, lines, 1, y - lines);
      }
      pen.fillStyle = soft;
      const text = format.moment(at, step);
      pen.textAlign = x < box.x + 20 ? "left" : x > box.x + box.width - 24 ? "right" : "center";
      pen.fillText(text, Math.max(x, box.x), y + 2);
    }
    pen.textAlign = "left";
  };

  return { colours, stack, most, sum, axis };
})();
