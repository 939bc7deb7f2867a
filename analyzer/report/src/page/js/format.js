// SPDX-License-Identifier: MIT OR Apache-2.0
// Formats numbers for people. kB, MB and GB are powers of ten.
"use strict";

const format = (() => {
  const UNITS = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const TIMES = [[1e6, "s"], [1e3, "ms"]];
  const SPACE = "\u00a0";

  /** Formats a number with at most three significant digits. */
  const short = (number) => {
    const size = Math.abs(number);
    return number.toFixed(size >= 99.95 || Number.isInteger(number) ? 0 : size >= 9.995 ? 1 : 2);
  };
  const scaled = (units, smallest) => (number) => {
    const [unit, name] = units.find(([unit]) => Math.abs(number) >= unit * 0.9995) ?? [1, smallest];
    return `${short(number / unit)}${SPACE}${name}`;
  };
  const bytes = scaled(UNITS, "B");
  const time = scaled(TIMES, "µs");
  /** A length of time, given in µs. */
  const us = (number) => (number === 0 ? "0" : time(number));
  /** A moment, given in µs, with as many digits as tell it from another one at the distance `step`. */
  const moment = (number, step = 1000) => {
    const [unit, name] = number >= 1e6 || step >= 1e5 ? [1e6, "s"] : [1e3, "ms"];
    const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / unit))));
    return `${(number / unit).toFixed(digits)}${SPACE}${name}`;
  };
  const count = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 2 });
  const percent = (part, whole) => (whole > 0 ? `${short((part * 100) / whole)}${SPACE}%` : "–");
  /** A share in whole per cent, as the answer has it. */
  const rounded = (part, whole) => {
    const share = whole > 0 ? (part * 100) / whole : 0;
    return share > 0 && share < 0.5 ? `<${SPACE}1${SPACE}%` : `${Math.round(share)}${SPACE}%`;
  };
  const times = (number) => `${number >= 100 ? count(Math.round(number)) : short(number)}${SPACE}×`;
  /** A number with its noun: 1 request, 2 requests. */
  const some = (number, noun, plural = `${noun}s`) => `${count(number)}${SPACE}${number === 1 ? noun : plural}`;
  /** A place on the disk, given as a sector. */
  const place = (sector) => bytes(sector * 512);
  const BY_UNIT = {
    bytes,
    count,
    us,
    ns: (value) => us(value / 1000),
    ms: (value) => us(value * 1000),
    percent: (value) => value.toFixed(2),
    ratio: (value) => times(value),
    moment: (value) => moment(value, 1000),
    id: String,
    text: String,
  };
  const cell = (value, unit) => (value === null || value === undefined ? "–" : BY_UNIT[unit](value));
  return { bytes, us, moment, count, percent, rounded, times, some, place, short, cell };
})();
