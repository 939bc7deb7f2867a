// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens pages of `mostrace report` in Chromium: light and dark, 1280 and 400 pixels wide. Fails on a message in the
// console, a request, content that is wider than the page, or what axe-core rates as serious.
// usage: NODE_PATH=… node report-check.cjs PAGE.html…      (npm packages: puppeteer-core, axe-core)
"use strict";

const path = require("node:path");
const puppeteer = require("puppeteer-core");
const { source: axeSource } = require("axe-core");

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const GRAVE = ["serious", "critical"];

const check = async (browser, file, theme, width) => {
  const wrong = [];
  const page = await browser.newPage();
  page.on("console", (message) => wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("request", (request) => request.url().startsWith("file:") || wrong.push(`request: ${request.url()}`));
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.setViewport({ width, height: 900 });
  await page.goto(`file://${path.resolve(file)}`);
  // Sections are drawn when they come into view.
  await page.evaluate(() => document.querySelectorAll(".panel").forEach((panel) => panel.dispatchEvent(new Event("draw"))));
  await page.waitForNetworkIdle();
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (over > 0) wrong.push(`${over} pixels wider than the page`);
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => window.axe.run());
  for (const { id, impact, nodes } of violations.filter((found) => GRAVE.includes(found.impact))) {
    wrong.push(`${impact}: ${id}: ${nodes[0].html}`);
  }
  await page.close();
  return wrong.map((what) => `${file} (${theme}, ${width}): ${what}`);
};

(async () => {
  const browser = await puppeteer.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"], headless: true });
  const wrong = [];
  for (const file of process.argv.slice(2)) {
    for (const theme of ["light", "dark"]) {
      for (const width of [1280, 400]) wrong.push(...await check(browser, file, theme, width));
    }
  }
  await browser.close();
  wrong.forEach((line) => console.error(line));
  process.exitCode = wrong.length ? 1 : 0;
})();
