// SPDX-License-Identifier: MIT OR Apache-2.0
// Every colour of a chart is told from its ground, light and dark: WCAG's contrast of 3:1, and 4.5:1 for text.
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");

const css = fs.readFileSync(path.join(__dirname, "..", "style.css"), "utf8");
const variables = (selector) => {
  const from = css.indexOf(`${selector} {`);
  const block = css.slice(from, css.indexOf("}", from));
  return Object.fromEntries([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]));
};
const luminance = (colour) => {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};

const light = variables(":root");
const themes = { light, dark: { ...light, ...variables(':root[data-theme="dark"]') } };
for (const [name, of] of Object.entries(themes)) {
  test(`${name}: colours of charts are told from their ground`, () => {
    const charts = Object.keys(of).filter((one) => /^[kw]\d$/.test(one)).concat("flush", "discard", "accent", "less", "more", "strong", "sync", "call", "measure");
    assert.ok(charts.length >= 22);
    for (const one of charts) assert.ok(contrast(of[one], of.surface) >= 3, `--${one} ${contrast(of[one], of.surface).toFixed(2)}`);
  });
  test(`${name}: texts can be read`, () => {
    for (const ground of ["ground", "surface", "raised", "hover"]) for (const text of ["ink", "soft"]) assert.ok(contrast(of[text], of[ground]) >= 4.5, `${text} on ${ground} ${contrast(of[text], of[ground]).toFixed(2)}`);
    for (const text of ["good", "bad", "unsure"]) assert.ok(contrast(of[text], of[`${text}-ground`]) >= 4.5, text);
    // The names in boxes.
    const dark = name === "dark";
    for (let k = 0; k < 8; k += 1) {
      const text = !dark && [0, 2, 4, 6, 7].includes(k) ? "#ffffff" : "#0b0d0f";
      assert.ok(contrast(text, of[`k${k}`]) >= 4.5, `text on --k${k} ${contrast(text, of[`k${k}`]).toFixed(2)}`);
    }
    for (let w = 0; w < 5; w += 1) {
      const text = !dark && [1, 2].includes(w) ? "#ffffff" : "#0b0d0f";
      assert.ok(contrast(text, of[`w${w}`]) >= 4.5, `text on --w${w} ${contrast(text, of[`w${w}`]).toFixed(2)}`);
    }
  });
}

test("a colour has one meaning", () => {
  // A flush is one, whether it is a block's kind or what is waited for.
  const same = [["k6", "flush", "w2"], ["k7", "discard"]];
  const of = themes.light;
  const names = Object.keys(of).filter((one) => /^([kw]\d|flush|discard|less|more|sync|call|measure)$/.test(one));
  const meaning = (name) => same.find((all) => all.includes(name))?.[0] ?? name;
  for (const theme of Object.values(themes)) {
    const by = new Map();
    for (const name of names) {
      const known = by.get(theme[name]);
      assert.ok(known === undefined || known === meaning(name) || (known === "call" && name === "strong"), `${name} looks like ${known}`);
      by.set(theme[name], meaning(name));
    }
  }
});
