// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens pages of `mostrace report` in Chromium: light at 400 to 1920 pixels, dark at one width, with every tab, by pointer and by keyboard.
// Fails on a message in the console, a request, content that is wider than the page, or anything that axe-core finds wrong.
// Prints what a first paint, a brush and a print take.
// usage: NODE_PATH=… node report-check.cjs PAGE.html…      (npm packages: puppeteer-core, axe-core)
"use strict";

const path = require("node:path");
const puppeteer = require("puppeteer-core");
const { source: axeSource } = require("axe-core");

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** A theme changes no width. */
const WIDTHS = { light: [1920, 1366, 768, 400], dark: [1366] };

const open = async (browser, file, theme, width, wrong) => {
  const page = await browser.newPage();
  page.on("console", (message) => wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("request", (request) => /^(file|blob|data):/.test(request.url()) || wrong.push(`request: ${request.url()}`));
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.setViewport({ width, height: 768 });
  await page.goto(`file://${path.resolve(file)}`);
  await page.waitForFunction(() => document.documentElement.dataset.ready);
  return page;
};
const rest = (page) => page.evaluate(() => new Promise((done) => { setTimeout(done, 200); }));

const looks = async (page, what, wrong) => {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (over > 0) wrong.push(`${what}: ${over} pixels wider than the page`);
  const { violations } = await page.evaluate(() => window.axe.run());
  for (const { id, impact, nodes } of violations) wrong.push(`${what}: ${impact}: ${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].any[0]?.message ?? ""}`);
};

/** Looks at the page, and at each tab with its table. */
const check = async (browser, file, theme, width) => {
  const wrong = [];
  const page = await open(browser, file, theme, width, wrong);
  await page.evaluate(axeSource);
  await looks(page, "page", wrong);
  const tabs = await page.$$eval("article:not([hidden]) [role=tab]", (all) => all.length);
  for (let tab = 0; tab < tabs; tab += 1) {
    await page.evaluate((at) => document.querySelectorAll("article:not([hidden]) [role=tab]")[at].click(), tab);
    await rest(page);
    await looks(page, `tab ${tab + 1}`, wrong);
    const twin = await page.$("article:not([hidden]) .tab-body .twin-of");
    if (!twin) continue;
    await twin.evaluate((button) => button.click());
    await looks(page, `tab ${tab + 1}, its table`, wrong);
  }
  await page.close();
  return wrong.map((what) => `${file} (${theme}, ${width}): ${what}`);
};

const sums = (page) => page.$eval("article:not([hidden]) .sums", (element) => element.textContent);

/** Selects by keyboard alone, and goes back. */
const keyboard = async (browser, file) => {
  const wrong = [];
  const page = await open(browser, file, "light", 1366, wrong);
  if (!(await page.$("article:not([hidden]) .sums"))) return wrong;
  const whole = await sums(page);
  await page.keyboard.press("+");
  await rest(page);
  if ((await page.evaluate(() => location.hash)).indexOf("t=") < 0) wrong.push("+ does not shorten the interval");
  await page.keyboard.press("0");
  await rest(page);
  if ((await sums(page)) !== whole) wrong.push("0 does not show all of the time");
  await page.keyboard.press("/");
  // A letter of a layer that every trace has.
  await page.keyboard.type("e");
  await page.keyboard.press("Enter");
  await rest(page);
  const chips = await page.$$eval("article:not([hidden]) .chips button", (all) => all.length);
  if (chips === 0) wrong.push("the search selects nothing");
  await page.evaluate(() => document.activeElement.blur());
  await page.goBack();
  await rest(page);
  if ((await sums(page)) !== whole) wrong.push("Back does not undo");
  await page.keyboard.press("?");
  if (!(await page.$("dialog[open]"))) wrong.push("? does not list the keys");
  await page.keyboard.press("Escape");
  await page.close();
  return wrong.map((what) => `${file} (keyboard): ${what}`);
};

/** Drags over the bars of the whole time, and returns how long the drawings took, ms. */
const times = async (browser, file) => {
  const wrong = [];
  const page = await open(browser, file, "light", 1366, wrong);
  const plot = await page.$("article:not([hidden]) .when");
  const first = await page.evaluate(() => ({ paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime, ready: performance.getEntriesByName("mostrace:ready")[0]?.startTime }));
  let drawn = [];
  if (plot) {
    const box = await plot.boundingBox();
    await page.evaluate(() => performance.clearMeasures());
    await page.mouse.move(box.x + 10, box.y + 20);
    await page.mouse.down();
    for (let step = 1; step <= 60; step += 1) await page.mouse.move(box.x + 10 + (box.width - 20) * (step / 60), box.y + 20);
    await page.mouse.up();
    await rest(page);
    drawn = await page.evaluate(() => performance.getEntriesByName("mostrace:draw").map((entry) => entry.duration));
  }
  const pdf = await page.pdf({ format: "A4" });
  const pages = (Buffer.from(pdf).toString("latin1").match(/\/Type\s*\/Page\b/g) ?? []).length;
  await page.close();
  const sorted = drawn.sort((a, b) => a - b);
  const at = (part) => (sorted.length ? sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)].toFixed(1) : "–");
  console.log(`${path.basename(file)}: first paint ${first.paint?.toFixed(0)} ms, ready ${first.ready?.toFixed(0)} ms; ${sorted.length} drawings of a brush: half ${at(0.5)} ms, 95 % ${at(0.95)} ms; printed on ${pages} pages`);
  return wrong;
};

(async () => {
  const browser = await puppeteer.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"], headless: true });
  const wrong = [];
  for (const file of process.argv.slice(2)) {
    wrong.push(...await times(browser, file), ...await keyboard(browser, file));
    for (const theme of ["light", "dark"]) for (const width of WIDTHS[theme]) wrong.push(...await check(browser, file, theme, width));
  }
  await browser.close();
  wrong.forEach((line) => console.error(line));
  process.exitCode = wrong.length ? 1 : 0;
})();
