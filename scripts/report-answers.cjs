// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens pages of `mostrace report` in Chromium and checks what a reader relies on: the answer is on the first screen, numbers and
// names are whole, units fit, peaks do not depend on the window, pictures say what they show and what the trace lacks, an address
// brings back what was open, and traces are compared on one scale. A check that found nothing to look at on any page is a fault, too.
// usage: NODE_PATH=… node report-answers.cjs PAGE.html…      (npm package: puppeteer-core)
"use strict";

const path = require("node:path");
const puppeteer = require("puppeteer-core");

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const WIDTHS = [400, 1366, 1920];
/** A comparison has at most so many tables. */
const MOST_TABLES = 8;

/** How often each check had something to look at. */
const seen = { causes: 0, numbers: 0, names: 0, tables: 0, flushes: 0, peaks: 0, pictures: 0, warnings: 0, reopened: 0, drags: 0, comparisons: 0, rests: 0 };
/** Adds what a check in the page saw to `seen`; returns what is wrong. */
const took = ({ wrong, ...saw }) => {
  for (const [name, count] of Object.entries(saw)) seen[name] += count;
  return wrong;
};

const rest = (page, ms = 250) => page.evaluate((wait) => new Promise((done) => { setTimeout(done, wait); }), ms);
const open = async (browser, file, { width = 1366, hash = "" } = {}) => {
  const page = await browser.newPage();
  await page.setViewport({ width, height: 768 });
  await page.goto(`file://${path.resolve(file)}${hash}`);
  await page.waitForFunction(() => document.documentElement.dataset.ready);
  await rest(page);
  return page;
};
const tabsOf = (page) => page.$$eval("article:not([hidden]) [role=tab]", (all) => all.length);
const tab = async (page, at) => {
  await page.evaluate((nth) => document.querySelectorAll("article:not([hidden]) [role=tab]")[nth].click(), at);
  await rest(page);
};

/** Runs in the page: texts that are cut. A number is whole, and two names that look alike are the same. */
const cutTexts = () => {
  const wrong = [];
  let [numbers, labels] = [0, 0];
  const shown = (element) => element.getClientRects().length > 0;
  for (const element of document.querySelectorAll("article:not([hidden]) *")) {
    const own = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("").trim();
    if (!own || !shown(element)) continue;
    if (element.closest("[data-name]") || !/^[−+]?\d/.test(own)) continue;
    numbers += 1;
    if (/^[−+]?\d[\d.,\s]*[a-zA-Zµ%×/]*…/.test(own)) wrong.push(`a number is cut: ${own}`);
    if (!element.closest("svg") && getComputedStyle(element).textOverflow === "ellipsis" && element.scrollWidth > element.clientWidth) wrong.push(`a number is cut: ${own}`);
  }
  for (const chart of document.querySelectorAll("article:not([hidden]) svg, article:not([hidden]) .labels")) {
    const names = new Map();
    for (const element of chart.querySelectorAll("[data-name]")) {
      const [text, name] = [element.textContent, element.dataset.name];
      if (!text || !shown(element)) continue;
      labels += 1;
      if (names.has(text) && names.get(text) !== name) wrong.push(`${text} stands for ${names.get(text)} and for ${name}`);
      names.set(text, name);
    }
  }
  return { wrong, numbers, names: labels };
};

/** Runs in the page: tables that are wider than their place. */
const wideTables = () => {
  const all = [...document.querySelectorAll("article:not([hidden]) .scroll")];
  return { wrong: all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => `${one.getAttribute("aria-label")} hides ${one.scrollWidth - one.clientWidth} pixels`), tables: all.length };
};

/** Runs in the page: saves every picture that can be saved, and returns the SVG of each with the size of its PNG. */
const pictures = async () => {
  const saved = [];
  const { createObjectURL } = URL;
  URL.createObjectURL = (blob) => { if (!blob) return ""; saved.push(blob); return createObjectURL.call(URL, blob); };
  HTMLAnchorElement.prototype.click = () => {};
  const out = [];
  for (const menu of document.querySelectorAll("article:not([hidden]) details.menu")) {
    // A chart of nothing has no picture.
    if (!menu.getClientRects().length || !menu.closest(".panel")?.querySelector("svg, canvas")) continue;
    const [svg, png] = ["SVG", "PNG"].map((kind) => [...menu.querySelectorAll("button")].find((button) => button.textContent.includes(kind)));
    if (!svg) continue;
    saved.length = 0;
    svg.click();
    png.click();
    for (let wait = 0; wait < 100 && saved.length < 2; wait += 1) await new Promise((done) => { setTimeout(done, 30); });
    const text = await saved.find((blob) => blob.type.startsWith("image/svg"))?.text();
    out.push({ name: menu.querySelector("summary").getAttribute("aria-label"), text: text ?? "", png: saved.find((blob) => blob.type === "image/png")?.size ?? 0 });
  }
  return out;
};
/** What must be in a picture, by its name: an axis of time, and a swatch of a legend. */
const [AXIS, LEGEND] = [/>\d[\d.]*\s(µs|ms|s)<.*>\d[\d.]*\s(µs|ms|s)</s, /<rect[^>]*height="10"/];
const HAS = { "Save: When": [AXIS, LEGEND], "Save: Programs over time": [AXIS, LEGEND], "Save: one transaction": [AXIS, LEGEND] };
/** Those with lanes: names of lanes that the page shows. */
const LANES = { "Save: Programs over time": ".labels b", "Save: one transaction": ".first [data-name].small" };

const first = async (page, wrong) => {
  const at = await page.$eval("article:not([hidden]) .flow", (flow) => flow.getBoundingClientRect().bottom).catch(() => null);
  seen.causes += at !== null;
  if (at !== null && at > 768) wrong.push(`the causes end at ${at}`);
};

const check = async (browser, file) => {
  const wrong = [];
  const page = await open(browser, file);
  const isLossy = (await page.$("article:not([hidden]) .notice.bad")) !== null;
  await first(page, wrong);
  const tabs = await tabsOf(page);
  for (let at = -1; at < tabs; at += 1) {
    if (at >= 0) await tab(page, at);
    wrong.push(...took(await page.evaluate(cutTexts)), ...took(await page.evaluate(wideTables)));
    for (const { name, text, png } of await page.evaluate(pictures)) {
      if (!/^<svg[^]*<\/svg>$/.test(text)) wrong.push(`${name}: no SVG`);
      if (png < 1000) wrong.push(`${name}: no PNG`);
      if (isLossy && !text.includes("Incomplete: ")) wrong.push(`${name}: does not say that the trace is incomplete`);
      for (const part of HAS[name] ?? []) if (!part.test(text)) wrong.push(`${name}: has no ${part}`);
      const lanes = LANES[name] ? await page.$$eval(`article:not([hidden]) ${LANES[name]}`, (all) => all.map((one) => one.textContent).filter((lane) => lane && !/[…×]/.test(lane))) : [];
      for (const lane of lanes) if (!text.includes(`>${lane.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}`)) wrong.push(`${name}: has no lane ${lane}`);
      seen.pictures += lanes.length > 0;
      seen.warnings += isLossy;
    }
  }
  await page.close();
  const narrow = await open(browser, file, { width: WIDTHS[0] });
  wrong.push(...took(await narrow.evaluate(cutTexts)).map((line) => `${WIDTHS[0]} pixels wide: ${line}`));
  await narrow.close();
  return wrong;
};

const flushes = async (browser, file) => {
  const page = await open(browser, file, { hash: "#op=flush&op=device_flush" });
  const wrong = [];
  const tabs = await tabsOf(page);
  seen.flushes += await page.evaluate(() => window.mostrace.current()?.result?.metric === "requests");
  for (let at = 0; at < tabs; at += 1) {
    await tab(page, at);
    wrong.push(...(await page.evaluate(() => document.querySelector("article.sheet:not([hidden])").innerText)).match(/\d\s?[kMG]?B\/s/g) ?? []);
  }
  await page.close();
  return wrong.map((text) => `flushes are counted as ${text}`);
};

/** What is said of peaks, which is the same at every width. */
const peaks = async (browser, file) => {
  const said = new Set();
  for (const width of WIDTHS) {
    const page = await open(browser, file, { width });
    said.add(await page.evaluate(() => [
      window.mostrace.current()?.peak?.(), ...[...document.querySelectorAll("article:not([hidden]) .tools .soft")].map((one) => one.textContent).filter((text) => / bar (is|of) /.test(text)),
    ].join(" | ")));
    await page.close();
  }
  seen.peaks += [...said].some((text) => /\d/.test(text));
  return said.size > 1 ? [`peaks depend on the width: ${[...said].join("; ")}`] : [];
};

const reload = async (browser, file) => {
  const wrong = [];
  let page = await open(browser, file);
  const can = await page.evaluate(() => { const it = window.mostrace.current(); return it?.transactions && !it.store.summed ? (it.openTransaction(3), it.openRequest(5), true) : false; });
  if (can) {
    await rest(page);
    const hash = await page.evaluate(() => location.hash);
    const said = () => page.evaluate(() => [document.querySelector(".transaction h3")?.textContent, document.querySelector("aside.details:not([hidden]) h2")?.textContent].join());
    const before = await said();
    await page.close();
    page = await open(browser, file, { hash });
    seen.reopened += 1;
    if (!/\S,\S/.test(before) || before !== await said()) wrong.push(`a reload loses ${before}`);
  }
  await page.close();
  page = await open(browser, file, { hash: "#app=nope" });
  if (await page.$(".sums") && !(await page.$eval("article:not([hidden]) .sums", (sums) => sums.textContent)).includes("Nothing")) wrong.push("#app=nope says nothing");
  await page.close();
  return wrong;
};

/** After a drag nothing is left of what the pointer showed. */
const leftovers = async (browser, file) => {
  const page = await open(browser, file);
  const box = await (await page.$("article:not([hidden]) .when"))?.boundingBox();
  let wrong = [];
  if (box) {
    seen.drags += 1;
    await page.mouse.move(box.x + box.width * 0.3, box.y + 30);
    await page.mouse.down();
    for (let step = 0; step < 10; step += 1) await page.mouse.move(box.x + box.width * (0.3 + step * 0.03), box.y + 30);
    await page.mouse.up();
    await rest(page);
    wrong = await page.$$eval(".tip:not([hidden]), .cross:not([hidden])", (all) => all.filter((one) => one.getClientRects().length).map((one) => `a drag leaves ${one.className} ${one.textContent}`));
  }
  await page.close();
  return wrong;
};

const compared = async (browser, file) => {
  const page = await open(browser, file);
  seen.comparisons += 1;
  const wrong = await page.evaluate((most) => {
    const out = [];
    const names = [...document.querySelectorAll(".traces button")].slice(1).map((one) => one.textContent);
    const rows = [...document.querySelectorAll(".compared .bars svg > g")].map((row) => [...row.querySelectorAll(".axis text")].map((text) => text.textContent).join()).filter(Boolean).slice(0, names.length);
    if (new Set(rows).size !== 1) out.push(`traces have scales of their own: ${rows.join("; ")}`);
    const tables = [...document.querySelectorAll(".compared table")];
    if (tables.length > most) out.push(`${tables.length} tables`);
    for (const table of tables) {
      const heads = [...table.querySelectorAll("th")].slice(1).map((one) => one.textContent);
      if (heads.join() !== names.join()) out.push(`heads ${heads.join()}`);
    }
    return out;
  }, MOST_TABLES);
  await page.close();
  return wrong;
};

/** The rest of many programs has layers that sum to it, in the list and below the box of the rest. */
const sums = async (browser, file) => {
  const page = await open(browser, file);
  const wrong = took(await page.evaluate(() => {
    const it = window.mostrace.current();
    if (!it?.result) return { wrong: [], rests: 0 };
    const { list, whole } = programs.listOf(it);
    const total = (values) => values.reduce((all, value) => all + value, 0);
    const bad = list.filter(({ value, parts }) => total(parts) !== value).map(({ label }) => `the layers of ${label} do not sum to it`);
    if (total(list.map(({ value }) => value)) !== whole) bad.push("programs do not sum to the whole");
    return { wrong: bad, rests: list.filter(({ known }) => !known).length };
  }));
  await page.close();
  return wrong;
};

(async () => {
  const browser = await puppeteer.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"], headless: true });
  let wrong = 0;
  for (const file of process.argv.slice(2)) {
    const of = [];
    for (const one of [check, flushes, peaks, reload, leftovers, sums]) of.push(...await one(browser, file));
    const page = await open(browser, file);
    if (await page.$(".compared")) of.push(...await compared(browser, file));
    await page.close();
    [...new Set(of)].forEach((line) => console.error(`${path.basename(file)}: ${line}`));
    wrong += of.length;
  }
  await browser.close();
  const idle = Object.keys(seen).filter((name) => seen[name] === 0);
  if (idle.length) console.error(`nothing was seen of: ${idle.join(", ")}`);
  wrong += idle.length;
  console.log(`answers: ${process.argv.length - 2} pages, ${wrong} faults (${Object.entries(seen).map(([name, count]) => `${name} ${count}`).join(", ")})`);
  process.exitCode = wrong ? 1 : 0;
})();
