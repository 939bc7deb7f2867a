// SPDX-License-Identifier: MIT OR Apache-2.0
// A selection: an interval of time, and terms that name what is shown or left out. It is written into the page's address,
// into the words of its chips, and into the condition of a command.
"use strict";

const choice = (() => {
  /** What a term may be about, with its name on chips. */
  const DIMS = {
    app: "program", proc: "process", file: "file", match: "files with", layer: "layer", part: "part", colour: "kind", op: "operation", why: "done by", known: "cause is",
  };
  const ALL = { from: null, to: null, terms: [] };

  const same = (a, b) => a.dim === b.dim && a.value === b.value;
  const has = (selection, dim, value, not = false) => selection.terms.some((term) => term.dim === dim && term.value === value && term.not === not);

  /** Replaces the terms of a dimension by one, or removes that one if it is the only one. */
  const only = (selection, dim, value) => {
    const mine = selection.terms.filter((term) => term.dim === dim && !term.not);
    const others = selection.terms.filter((term) => term.dim !== dim);
    const alone = mine.length === 1 && mine[0].value === value;
    return { ...selection, terms: alone ? others : [...others, { dim, value, not: false }] };
  };
  /** Adds or removes a term, beside others of its dimension. */
  const toggle = (selection, dim, value, not = false) => {
    const term = { dim, value, not };
    const others = selection.terms.filter((other) => !same(other, term));
    return { ...selection, terms: has(selection, dim, value, not) ? others : [...others, term] };
  };
  const without = (selection, term) => ({ ...selection, terms: selection.terms.filter((other) => other !== term) });
  const during = (selection, from, to) => ({ ...selection, from, to });

  /** Writes a selection for the page's address. */
  const toHash = (selection, more = {}) => {
    const hash = new URLSearchParams();
    for (const [name, value] of Object.entries(more)) if (value !== null && value !== undefined && value !== "") hash.append(name, value);
    if (selection.from !== null) hash.append("t", `${selection.from}-${selection.to}`);
    for (const { dim, value, not } of selection.terms) hash.append(not ? `not.${dim}` : dim, value ?? "");
    return hash.toString();
  };

  /** Reads what `toHash` wrote; what it does not know is left out, because anybody may write an address. */
  const ofHash = (text) => {
    const selection = { from: null, to: null, terms: [] };
    const more = {};
    for (const [name, value] of new URLSearchParams(text.replace(/^#/, ""))) {
      const not = name.startsWith("not.");
      const dim = not ? name.slice(4) : name;
      if (name === "t") {
        const times = /^(\d+)-(\d+)$/.exec(value);
        if (times && Number(times[1]) < Number(times[2])) [selection.from, selection.to] = [Number(times[1]), Number(times[2])];
      } else if (Object.hasOwn(DIMS, dim)) selection.terms.push({ dim, value: value === "" ? null : value, not });
      else more[name] = value;
    }
    return { selection, more };
  };

  const quote = (text) => `'${text.replaceAll("'", "''")}'`;
  const is = (column, value) => (value === null ? `${column} IS NULL` : `${column} = ${quote(value)}`);
  /** One of several values, of which null is not a value for SQL. */
  const among = (column, values) => {
    const known = values.filter((value) => value !== null);
    const parts = [];
    if (known.length === 1) parts.push(is(column, known[0]));
    if (known.length > 1) parts.push(`${column} IN (${known.map(quote).join(", ")})`);
    if (known.length < values.length) parts.push(`${column} IS NULL`);
    return parts.length > 1 ? `(${parts.join(" OR ")})` : parts[0] ?? "1 = 0";
  };
  const layerSql = (layer) => {
    if (layer.op) return is("op", layer.op);
    const parts = [is("kind", layer.kind)];
    if (layer.kind === "regular") parts.push(is("role", layer.role));
    if (layer.class === "journal") parts.push(is("home_kind", layer.home_kind));
    return parts.length > 1 ? `(${parts.join(" AND ")})` : parts[0];
  };
  const any = (parts) => (parts.length === 1 ? parts[0] : `(${parts.join(" OR ")})`);

  /** The condition of one dimension's values, over the columns of `analyze --where`. */
  const condition = (words, dim, values) => {
    const layers = (is) => any([...new Set(words.layers.filter(is).map(layerSql))]);
    switch (dim) {
      case "app": return among("cause_or_submitter", words.whos.filter((who) => values.includes(who.group)).map((who) => who.name));
      case "proc": return among("cause_or_submitter", values);
      case "file": return among("cause_or_file", values);
      case "match": return any(values.map((value) => `cause_or_file ILIKE ${quote(`%${value}%`)}`));
      case "layer": return layers((layer) => values.includes(layer.name));
      case "part": return layers((layer) => values.includes(layer.part === null ? layer.name : `${layer.name} › ${layer.part}`));
      case "colour": return layers((layer) => values.includes(words.colours[layer.colour]));
      case "op": return among("op", values);
      case "why": return among("cause_op", values);
      case "known": return among("cause_known", values);
      default: return "1 = 0";
    }
  };

  /** The condition of a whole selection; empty for all rows. */
  const toSql = (selection, words) => {
    const parts = [];
    if (selection.from !== null) {
      const at = (us) => (BigInt(words.start_ns) + BigInt(us) * 1000n).toString();
      parts.push(`time_ns >= ${at(selection.from)}`, `time_ns < ${at(selection.to)}`);
    }
    for (const dim of Object.keys(DIMS)) {
      for (const not of [false, true]) {
        const values = selection.terms.filter((term) => term.dim === dim && term.not === not).map((term) => term.value);
        if (!values.length) continue;
        const text = condition(words, dim, values);
        // An unknown value is not equal to any, and so it is not left out.
        parts.push(not ? `NOT coalesce(${text}, 1 = 0)` : text);
      }
    }
    return parts.join(" AND ");
  };

  /** Quotes a word for a shell. */
  const shell = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  return { DIMS, ALL, has, only, toggle, without, during, toHash, ofHash, toSql, shell };
})();
