// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens the packed tables. ../../pack.rs describes the format.
"use strict";

const unpack = (() => {
  const MOST_INT = 2 ** 31 - 1;

  /** Reads a column of numbers: each value, or its difference from the one before; the sign is in the lowest bit. */
  const column = (bytes, from, rows, head) => {
    const fits = head.most <= MOST_INT && head.least >= -MOST_INT;
    const values = fits ? new Int32Array(rows) : new Float64Array(rows);
    const delta = head.coding === "delta";
    const { scale } = head;
    let at = from;
    let before = 0;
    for (let row = 0; row < rows; row += 1) {
      let byte = bytes[at];
      at += 1;
      let value;
      if (byte < 128) value = (byte >>> 1) ^ -(byte & 1);
      else {
        // Bitwise operators have 32 bits; a number may have more.
        let code = byte & 127;
        let unit = 128;
        do {
          byte = bytes[at];
          at += 1;
          code += (byte & 127) * unit;
          unit *= 128;
        } while (byte > 127);
        value = code % 2 ? -(code + 1) / 2 : code / 2;
      }
      if (delta) {
        value += before;
        before = value;
      }
      values[row] = scale === 1 ? value : value * scale;
    }
    return values;
  };

  /** Reads the head and all columns: {words, tables: {name: {rows, column…}}}. */
  const read = (bytes) => {
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    const tables = {};
    let at = 4 + length;
    for (const table of head.tables) {
      const columns = { rows: table.rows };
      for (const one of table.columns) {
        columns[one.name] = column(bytes, at, table.rows, one);
        at += one.bytes;
      }
      tables[table.name] = columns;
    }
    return { words: head.words, tables };
  };

  const bytesOf = (base64) => {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
    return bytes;
  };

  /** Decompresses and reads what a page has as text. */
  const open = async (base64) => {
    const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
    return read(new Uint8Array(await new Response(stream).arrayBuffer()));
  };

  return { open, read };
})();
