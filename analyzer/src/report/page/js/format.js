// SPDX-License-Identifier: MIT OR Apache-2.0
// Formats numbers for people.
"use strict";

const format = (() => {
  const UNITS = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "KB"]];
  const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];

  /** Formats a number with at most three significant digits. */
  const short = (number) => {
    const size = Math.abs(number);
    return number.toFixed(size >= 99.95 || Number.isInteger(number) ? 0 : size >= 9.995 ? 1 : 2);
  };
  const scaled = (units, smallest) => (number) => {
    const [unit, name] = units.find(([unit]) => Math.abs(number) >= unit) ?? [1, smallest];
    return `${short(number / unit)} ${name}`;
  };
  const bytes = scaled(UNITS, "bytes");
  const time = scaled(TIMES, "ns");
  const ns = (number) => (number === 0 ? "0" : time(number));
  const count = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 2 });
  const percent = (part, whole) => (whole > 0 ? `${short((part * 100) / whole)} %` : "–");
  /** Formats a sector as a place on the disk. */
  const place = (sector) => {
    const mib = sector / 2048;
    return mib >= 1024 ? `${short(mib / 1024)} GiB` : `${short(mib)} MiB`;
  };
  const BY_UNIT = {
    bytes: (value) => count(value),
    count,
    ns,
    ms: (value) => ns(value * 1e6),
    percent: (value) => value.toFixed(2),
    id: String,
    text: String,
  };
  const cell = (value, unit) => (value === null || value === undefined ? "–" : BY_UNIT[unit](value));
  return { bytes, ns, count, percent, place, short, cell };
})();
