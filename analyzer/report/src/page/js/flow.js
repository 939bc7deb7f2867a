// SPDX-License-Identifier: MIT OR Apache-2.0
// Why: which cause put which blocks on the disk. What is on the left was done by a program, what is on the right was written.
"use strict";

const flow = (() => {
  const { h, s } = dom;
  const SURE = { exact: "exact", shared: "shared exactly", first: "first", set: "one of several", proportional: "by share", unknown: "unknown" };
  /** The direction that is drawn, with its words. */
  const WAYS = { write: ["Writes", "written"], read: ["Reads", "read"], discard: ["Discards", "discarded"] };
  /** A direction with less of all bytes has no button; a selection of it shows it. */
  const LEAST = 0.01;
  const [TOP, LINE] = [4, 13];
  /** A layer's brace is at least so long; a shorter one would have no room for its words. */
  const LEAST_BRACE = 48;

  /** Gives nodes their place, one below the other: y, h, and the middle of their text. */
  const place = (nodes, height, gap, whole, lineOf) => {
    const scale = (height - 2 * TOP - gap * (nodes.length - 1)) / whole;
    let y = TOP;
    for (const node of nodes) {
      Object.assign(node, { y, h: Math.max(1, node.value * scale), at: y });
      y += node.h + gap;
    }
    // Texts keep their distance: down first, and up again from the bottom.
    const middle = nodes.map((node) => node.y + node.h / 2);
    nodes.forEach((node, at) => { if (at) middle[at] = Math.max(middle[at], middle[at - 1] + (lineOf(nodes[at - 1]) + lineOf(node)) / 2); });
    for (let at = nodes.length - 1, most = height - 6; at >= 0; at -= 1) {
      middle[at] = Math.min(middle[at], most - lineOf(nodes[at]) / 2 + 6);
      most = middle[at] - lineOf(nodes[at]) / 2 - 6;
    }
    nodes.forEach((node, at) => { node.middle = middle[at]; });
    return scale;
  };

  const make = (desk) => {
    const { store, sheet } = desk;
    const box = h("div", { class: "flow" });
    const said = h("span", { class: "soft" });
    const choose = h("span");
    let way = null;
    let width = 0;

    /** The value of each cell that is drawn, and how it is written. */
    const measured = () => {
      const { result } = desk;
      if (result.metric === "requests") return { value: result.value, word: "requests", tell: (value) => format.some(value, "request") };
      const sums = store.by(result, "op", result.bytes);
      const whole = Object.keys(WAYS).reduce((all, op) => all + sums[store.ops.of(op)], 0);
      const has = Object.keys(WAYS).filter((op) => sums[store.ops.of(op)] > whole * LEAST);
      const op = has.includes(way) ? way : has[0] ?? "write";
      const number = store.ops.of(op);
      const value = result.bytes.map((bytes, c) => (store.cells.op[c] === number ? bytes : 0));
      const { ladder } = sheet;
      const is = op === "write" && ladder.each > 1 && desk.selection.from === null && !desk.selection.terms.length;
      return { value, has, op, word: WAYS[op][1], each: is ? ladder.unit : null, tell: (bytes) => format.bytes(bytes / (is ? ladder.each : 1)) };
    };

    const sure = (value) => {
      const sums = store.by(desk.result, "known", value);
      const whole = sums.reduce((all, one) => all + one, 0);
      if (!whole) return null;
      const order = Object.keys(SURE);
      const parts = [...sums].map((sum, at) => [store.words.known[at], sum]).sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0])).filter(([, sum]) => sum >= whole / 200);
      return parts.map(([known, sum]) => `${format.rounded(sum, whole)} ${SURE[known] ?? known}`).join(", ");
    };

    const pick = (terms, event) => {
      if (!terms.length) return;
      const others = event.ctrlKey || event.metaKey || event.shiftKey ? desk.selection.terms : desk.selection.terms.filter((term) => !terms.some(({ dim }) => dim === term.dim));
      desk.set({ ...desk.selection, terms: [...others, ...terms.map((term) => ({ ...term, not: false }))] });
    };
    /** A part that can be chosen, by pointer and by keyboard. */
    const node = (terms, says, tip, ...children) => s("g", {
      class: terms.length ? "node" : "", tabindex: terms.length ? 0 : null, role: terms.length ? "button" : "img", "aria-label": says,
      onclick: (event) => pick(terms, event), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(terms, event); } },
      onpointermove: (event) => desk.tip(tip, event), onpointerleave: () => desk.tip(null),
    }, ...children);

    const svg = (w) => {
      const { value, tell, word } = measured();
      const made = causes.flow(store, value);
      if (!made.whole) return null;
      const narrow = w < 620;
      const height = window.innerWidth >= 1700 ? 440 : 290;
      const [thick, edge] = [narrow ? 6 : 9, 8];
      const share = (part) => format.rounded(part, made.whole);
      const small = (cause) => cause.rest || cause.value / made.whole < 0.09;
      // In a narrow window the words are fewer; the table and the notes have all of them.
      const isAlone = ({ word }) => made.causes.filter((other) => other.word === word).length === 1;
      const subOf = (cause) => (narrow ? (small(cause) && (cause.rest || isAlone(cause)) ? cause.word : cause.file) : small(cause) ? cause.line : cause.sub);
      const titleOf = (cause) => (narrow ? cause.word : cause.title);
      const causeText = (cause) => (small(cause) ? [`${subOf(cause)} ${share(cause.value)}`] : [`${titleOf(cause)} ${share(cause.value)}`, subOf(cause)]);
      const groups = new Map();
      made.blocks.forEach((block) => groups.set(block.layer, [...(groups.get(block.layer) ?? []), block]));
      const sumOf = (group) => group.reduce((all, block) => all + block.value, 0);
      const braced = narrow ? [] : [...groups.values()].filter((group) => group.length > 1 && (sumOf(group) / made.whole) * height >= LEAST_BRACE);
      const isBraced = (block) => braced.some((group) => group.includes(block));
      const wholeName = (block) => (isBraced(block) ? block.name : groups.get(block.layer).length > 1 ? `${block.layer}: ${block.name}` : block.layer);
      const blockName = (block) => (narrow ? chart.brief(groups.get(block.layer).length > 1 ? block.name : block.layer).replace(/^all other blocks$/, "others").replace(/^SQLite's /, "") : wholeName(block));
      const brace = braced.length ? 42 : 0;
      const widest = (texts, size) => Math.max(0, ...texts.map((text) => chart.measure(text, size, "bold")));
      const left = Math.min(w * (narrow ? 0.36 : 0.38), widest(made.causes.flatMap(causeText), 12) + edge + 2);
      const right = Math.min(w * (narrow ? 0.5 : 0.42), widest(made.blocks.map((block) => `${blockName(block)}  ${tell(block.value)}`), 12) + edge + 4 + brace);
      const [x0, x1] = [left + thick, w - right - thick];
      const middle = (x0 + x1) / 2;

      // Causes are in the order of their blocks, so that ribbons cross little.
      const at = new Map(made.blocks.map((block, nth) => [block, nth]));
      const mean = (cause) => made.links.reduce((sum, link) => sum + (link.cause === cause ? at.get(link.block) * link.value : 0), 0) / cause.value;
      made.causes.sort((a, b) => (a.rest ? 1 : 0) - (b.rest ? 1 : 0) || mean(a) - mean(b));
      const of = new Map(made.causes.map((cause, nth) => [cause, nth]));
      const scales = [place(made.causes, height, 12, made.whole, (cause) => (small(cause) ? LINE + 1 : 2 * LINE + 3)), place(made.blocks, height, 4, made.whole, () => LINE)];
      const links = [...made.links].sort((a, b) => at.get(a.block) - at.get(b.block)).map((link) => {
        const from = link.cause.at;
        link.cause.at += link.value * scales[0];
        return { ...link, from, to: 0 };
      });
      links.sort((a, b) => of.get(a.cause) - of.get(b.cause)).forEach((link) => { link.to = link.block.at; link.block.at += link.value * scales[1]; });
      const heaviest = made.causes.filter((cause) => !cause.rest).reduce((best, cause) => (best && best.value >= cause.value ? best : cause), null);

      const round = (number) => Math.round(number * 10) / 10;
      const ribbons = links.map(({ cause, block, value: sum, from, to }) => {
        const [a, b, c, d] = [from, from + sum * scales[0], to, to + sum * scales[1]].map(round);
        const says = `${cause.title || cause.sub} → ${wholeName(block)}`;
        return s("path", {
          class: `ribbon fill-${block.colour}${cause === heaviest ? " hot" : ""}`, d: `M${x0} ${a}C${middle} ${a} ${middle} ${c} ${x1} ${c}V${d}C${middle} ${d} ${middle} ${b} ${x0} ${b}Z`,
          onpointermove: (event) => desk.tip([h("b", {}, says), h("div", {}, cause.sub), h("div", {}, `${tell(sum)} · ${share(sum)}`)], event), onpointerleave: () => desk.tip(null),
          onclick: (event) => pick([...cause.terms, ...block.terms], event),
        });
      });
      // The names are beside the nodes, so that a node has one name for a screen reader.
      const names = s("g", { "aria-hidden": "true" });
      const fit = chart.fitter();
      const causeNodes = made.causes.map((cause) => {
        const lines = causeText(cause);
        const says = `${cause.title} ${cause.sub}: ${tell(cause.value)}, ${share(cause.value)}`;
        const x = left - edge;
        const words = lines.length === 1
          ? s("text", { x, y: cause.middle + 4, "text-anchor": "end", "data-name": cause.key }, [s("tspan", { class: "soft" }, `${fit(subOf(cause), left - edge - chart.measure(` ${share(cause.value)}`, 12, "bold"))} `), s("tspan", { class: "strong" }, share(cause.value))])
          : s("text", { x, y: cause.middle - 3, "text-anchor": "end", "data-name": cause.key }, [s("tspan", { class: "strong" }, fit(lines[0], left - edge, 12, "bold")), s("tspan", { class: "soft", x, dy: 15 }, fit(subOf(cause), left - edge))]);
        names.append(words);
        return node(cause.terms, says, [h("b", {}, cause.title || cause.sub), h("div", {}, cause.terms.find(({ dim }) => dim === "file")?.value ?? cause.sub), h("div", {}, `${tell(cause.value)} · ${share(cause.value)}`)],
          chart.rect(0, Math.min(cause.y, cause.middle - 8), left, Math.max(cause.h, 16), { class: "ground" }), s("rect", { x: left, y: cause.y, width: thick, height: cause.h, class: "ink" }));
      });
      // A part of a layer is not as strong as a layer.
      const strength = (block) => (isBraced(block) || (narrow && groups.get(block.layer).length > 1) ? "normal" : "bold");
      const fitBlock = chart.fitter();
      const blockNodes = made.blocks.map((block) => {
        const x = w - right + edge;
        const number = tell(block.value);
        const room = right - edge - brace - chart.measure(`  ${number}`, 12);
        names.append(s("text", { x, y: block.middle + 4 }, [s("tspan", { class: strength(block) === "bold" ? "strong" : "", "data-name": `${block.layer} ${block.name}` }, fitBlock(blockName(block), room, 12, strength(block))), s("tspan", { class: "soft", dx: 6 }, number)]));
        return node(block.terms, `${block.layer}${block.name === block.layer ? "" : `, ${block.name}`}: ${number}, ${share(block.value)}`, [h("b", {}, block.name), h("div", {}, block.layer), h("div", {}, `${number} · ${share(block.value)}`)],
          chart.rect(x1 + thick, block.y, right - brace, Math.max(block.h, 2), { class: "ground" }), s("rect", { x: x1, y: block.y, width: thick, height: block.h, class: `fill-${block.colour}` }));
      });
      const braces = braced.map((group) => {
        const [from, to] = [group[0].y, group[group.length - 1].y + group[group.length - 1].h];
        const sum = sumOf(group);
        const whole = [`${group[0].layer} ${tell(sum)} · ${share(sum)}`, `${group[0].layer} · ${share(sum)}`, group[0].layer, share(sum)].find((text) => chart.measure(text, 12, "bold") <= to - from + 8);
        return [s("path", { class: "brace", d: `M${w - 28} ${round(from)}h5V${round(to)}h-5` }), whole ? s("text", { class: "strong", transform: `translate(${w - 12} ${round((from + to) / 2)}) rotate(90)`, "text-anchor": "middle" }, whole) : null];
      });
      return chart.root(w, height, `From causes to blocks ${word}; the table has the same figures`, { role: "group" }, ribbons, causeNodes, blockNodes, names, braces);
    };

    const draw = () => {
      const { value, has = [], op, word, each } = measured();
      said.textContent = [each ? `${word} per ${each}` : word, sure(value)].filter(Boolean).join("; causes: ");
      choose.replaceChildren(has.length > 1 ? dom.options("Direction", has.map((name) => WAYS[name][0]), has.indexOf(op), (nth) => { way = has[nth]; draw(); }) : "");
      if (width) box.replaceChildren(svg(width) ?? h("p", { class: "note" }, "Nothing of this selection was written, read or discarded."));
    };
    dom.onWidth(box, (now) => { width = now; if (desk.result) draw(); });
    const table = () => {
      const { value } = measured();
      const { links } = causes.flow(store, value);
      const rows = links.sort((a, b) => b.value - a.value).map(({ cause, block, value: sum }) => [cause.rest ? cause.sub : cause.title, cause.rest ? null : cause.terms.find(({ dim }) => dim === "file")?.value ?? cause.sub, block.layer, block.name === block.layer ? null : block.name, sum]);
      return { title: "Causes and blocks", columns: [...["cause", "file", "layer", "part"].map((name) => ({ name, unit: "text" })), { name: desk.result.metric === "requests" ? "requests" : "bytes", unit: desk.result.metric === "requests" ? "count" : "bytes", bar: true, sum: true }], rows };
    };
    return {
      element: box, draw, light: draw, table, tools: [said, choose],
      chart: () => ({ title: `${sheet.name}: from causes to blocks`, note: `${said.textContent}; ${desk.words()}`, source: desk.source(), warnings: sheet.missing, node: () => box.querySelector("svg") }),
    };
  };
  return { make };
})();
