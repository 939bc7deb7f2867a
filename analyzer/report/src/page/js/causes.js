// SPDX-License-Identifier: MIT OR Apache-2.0
// What a selection's bytes were written for, and as what: the sums that the flow draws, from causes to blocks.
"use strict";

const causes = (() => {
  const { partOf } = store;
  /** A cause in two lines, what was done and to what; and what was done in one word, for a narrow window. */
  const DEEDS = {
    write: ["write()", (file) => `into ${file}`, "write()"], read: ["read()", (file) => `of ${file}`, "read()"], allocate: ["the file grows", (file) => `blocks allocated to ${file}`, "grows"],
    create: ["a file is created", (file) => file, "create"], unlink: ["unlink()", (file) => `${file} is deleted`, "unlink()"], rename: ["rename()", (file) => file, "rename()"], truncate: ["truncate()", (file) => file, "truncate()"],
    time: ["timestamps", (file) => `times of ${file}`, "times"], xattr: ["attributes", (file) => `of ${file}`, "attributes"], fsync: ["fsync()", (file) => `of ${file}`, "fsync()"], discard: ["discard", (file) => `of ${file}`, "discard"],
  };
  /** Deeds whose second line says all. */
  const PLAIN = new Set(["allocate", "unlink", "time"]);
  const [CAUSES, BLOCKS] = [6, 12];
  /** A cause or a block below this share is drawn with others, unless it is the only one. */
  const LEAST = 0.02;

  /** Where the flow puts a node: its top, its height, where its next ribbon begins, the middle of its text.
   *  @typedef {{y?: number, h?: number, at?: number, middle?: number}} Placed */
  /** @typedef {Placed & {key: string, title: string, word: string, sub: string, line: string, file: string, value: number, rest?: boolean, terms: {dim: string, value: string|null}[]}} Cause
   *  @typedef {Placed & {key: string, name: string, layer: string, colour: number, value: number, rest?: boolean, terms: {dim: string, value: string|null}[]}} Block
   *  @typedef {{whole: number, causes: Cause[], blocks: Block[], links: {cause: Cause, block: Block, value: number}[]}} Flow */

  const nameOf = (path) => path.split("/").pop() || path;
  /** The names of files without their folders, but with them where two files are called the same. */
  const shortNames = (files) => {
    const seen = new Map();
    files.forEach((file) => file !== null && seen.set(nameOf(file), (seen.get(nameOf(file)) ?? 0) + 1));
    return (file) => (seen.get(nameOf(file)) > 1 ? file : nameOf(file));
  };

  /** Adds up a value of each cell: [{value, cells}] by key, the largest first. */
  const summed = (cells, value, key) => {
    const by = new Map();
    for (let c = 0; c < cells.rows; c += 1) {
      if (!value[c]) continue;
      const name = key(c);
      const one = by.get(name);
      if (one) one.value += value[c];
      else by.set(name, { key: name, value: value[c], cell: c });
    }
    return [...by.values()].sort((a, b) => b.value - a.value);
  };

  /** The second line, and the only one where there is room for one. */
  const only = (sub, line) => ({ sub, line: line ?? sub });
  const causeOf = (of, short, { key, value, cell }) => {
    const { words, cells } = of;
    const [why, file] = [words.whys[cells.why[cell]], words.files[cells.file[cell]]];
    const terms = [{ dim: "why", value: why }, { dim: "file", value: file }];
    const named = file === null ? "no known file" : short(file);
    if (why === null) {
      const who = words.whos[cells.who[cell]].name;
      return { key, value, title: "cause not known", word: "unknown", file: who === null ? named : who.replace(/ \(submitter\)$/, ""), ...only(who === null ? named : `handed over by ${who.replace(/ \(submitter\)$/, "")}`, who === null ? "cause not known" : null), terms };
    }
    const plain = why.replaceAll("_", " ");
    const [title, sub, word] = Object.hasOwn(DEEDS, why) ? DEEDS[why] : [plain, (text) => text, plain];
    return { key, value, title, word, file: named, ...only(sub(named), PLAIN.has(why) ? null : `${title} ${sub(named)}`), terms };
  };

  /** The flow of a value of each cell.
   * @returns {Flow} */
  const flow = (of, value) => {
    const { words, cells } = of;
    const whole = value.reduce((sum, one) => sum + one, 0);
    const few = (list, most) => list.filter((one, at) => at < most && (one.value >= whole * LEAST || at === 0));
    // A cause that nobody knows is told by its submitter, others by what was done to which file.
    const causeKey = (c) => (words.whys[cells.why[c]] === null ? `who ${cells.who[c]}` : `${cells.why[c]} ${cells.file[c]}`);
    const allCauses = summed(cells, value, causeKey);
    const short = shortNames(new Set(allCauses.map(({ cell }) => words.files[cells.file[cell]])));
    const causes = few(allCauses, CAUSES).map((one) => causeOf(of, short, one));
    const rest = { key: "rest", title: "", word: "other", file: "", ...only(allCauses.length - causes.length === 1 ? "one other cause" : "all other causes"), rest: true, terms: [], value: whole - causes.reduce((sum, one) => sum + one.value, 0) };
    const causeBy = new Map(causes.map((one) => [one.key, one]));

    const blockKey = (c) => String(cells.layer[c]);
    const allBlocks = summed(cells, value, blockKey);
    const blocks = few(allBlocks, BLOCKS).map(({ key, value: sum, cell }) => {
      const layer = words.layers[cells.layer[cell]];
      return { key, value: sum, name: layer.part ?? layer.name, layer: layer.name, colour: layer.colour, terms: [layer.part === null ? { dim: "layer", value: layer.name } : { dim: "part", value: partOf(layer) }] };
    });
    const blockBy = new Map(blocks.map((one) => [one.key, one]));
    // The rest of a layer stays in it.
    for (const { key, value: sum, cell } of allBlocks) {
      if (blockBy.has(key)) continue;
      const layer = words.layers[cells.layer[cell]];
      const is = blocks.some((one) => one.layer === layer.name);
      const group = is ? `rest of ${layer.name}` : "all other blocks";
      let one = blocks.find((other) => other.key === group);
      if (!one) blocks.push(one = { key: group, value: 0, name: is ? "other parts" : group, layer: is ? layer.name : group, colour: is ? layer.colour : 5, rest: true, terms: is ? [{ dim: "layer", value: layer.name }] : [] });
      one.value += sum;
      blockBy.set(key, one);
    }
    const links = new Map();
    for (let c = 0; c < cells.rows; c += 1) {
      if (!value[c]) continue;
      const [cause, block] = [causeBy.get(causeKey(c)) ?? rest, blockBy.get(blockKey(c))];
      const key = `${cause.key}|${block.key}`;
      const link = links.get(key);
      if (link) link.value += value[c];
      else links.set(key, { cause, block, value: value[c] });
    }
    const layers = new Map();
    blocks.forEach((one) => layers.set(one.layer, (layers.get(one.layer) ?? 0) + one.value));
    const order = (one) => (one.key === "all other blocks" ? 9 : one.colour);
    blocks.sort((a, b) => order(a) - order(b) || layers.get(b.layer) - layers.get(a.layer) || a.layer.localeCompare(b.layer) || (a.rest ? 1 : 0) - (b.rest ? 1 : 0) || b.value - a.value);
    return { whole, causes: rest.value > 0 ? [...causes, rest] : causes, blocks, links: [...links.values()] };
  };
  return { flow };
})();
