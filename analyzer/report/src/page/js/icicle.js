// SPDX-License-Identifier: MIT OR Apache-2.0
// Where the bytes of the selection went, from the application down: program, file, layer, part of the layer.
"use strict";

const icicle = (() => {
  const { h, s } = dom;
  const ROW = 46;
  /** A node narrower than this has no box of its own, but is part of the box of the rest. */
  const NARROW = 3;
  const WAYS = { write: ["Writes", "written"], read: ["Reads", "read"], discard: ["Discards", "discarded"] };
  const LEVELS = [["app", "program"], ["file", "file"], ["layer", "layer"], ["part", "part of the layer"]];

  /** Builds the tree: {name, bytes, parts, dim, value, colour}. */
  const tree = (desk, op) => {
    const { store, result } = desk;
    const { cells, words } = store;
    const codes = LEVELS.map(([dim]) => store.codes(dim));
    const root = { name: `${WAYS[op][1]} on the device`, bytes: 0, parts: new Map() };
    const number = store.ops.of(op);
    for (let c = 0; c < cells.rows; c += 1) {
      const bytes = result.bytes[c];
      if (!bytes || cells.op[c] !== number || !result.ok[c]) continue;
      root.bytes += bytes;
      let node = root;
      LEVELS.forEach(([dim], level) => {
        if (dim === "part" && words.layers[cells.layer[c]].part === null) return;
        const code = codes[level][c];
        let next = node.parts.get(code);
        if (!next) {
          const value = store.dims[dim].labels[code];
          const layer = words.layers[cells.layer[c]];
          const name = dim === "part" ? layer.part : value ?? { app: "nobody known", file: layer.class === "journal" || layer.class === "metadata" ? "the filesystem itself" : "no known file" }[dim] ?? "not known";
          next = { name, bytes: 0, parts: new Map(), dim, value, colour: level > 1 ? layer.colour : null, level };
          node.parts.set(code, next);
        }
        next.bytes += bytes;
        node = next;
      });
    }
    return root;
  };

  const make = (desk) => {
    let op = "write";
    const box = h("div", { class: "icicle" });
    const note = h("p", { class: "note" });
    const choose = h("div");
    const legend = h("ul", { class: "legend" });
    let boxes = [];
    let width = 0;

    /** Several nodes as one, whose parts are theirs: the rest keeps its layers. */
    const joined = (nodes, name) => {
      const one = { name, bytes: 0, parts: new Map(), rest: true, level: nodes[0].level };
      const below = new Map();
      for (const node of nodes) {
        one.bytes += node.bytes;
        for (const [code, part] of node.parts) below.set(code, [...(below.get(code) ?? []), part]);
      }
      for (const [code, parts] of below) one.parts.set(code, parts.length > 1 ? { ...joined(parts, parts[0].name), rest: false, dim: parts[0].dim, value: parts[0].value, colour: parts[0].colour } : parts[0]);
      return one;
    };
    /** Places the boxes of a tree: {node, x, y, w, path}. */
    const layout = (root, w) => {
      const out = [];
      const visit = (node, x, path, level) => {
        const parts = [...node.parts.values()].sort((a, b) => b.bytes - a.bytes);
        const wideOf = (part) => (part.bytes / root.bytes) * w;
        const shown = parts.filter((part) => wideOf(part) >= NARROW);
        const rest = parts.filter((part) => wideOf(part) < NARROW);
        if (rest.length) shown.push(joined(rest, `${format.count(rest.length)} more`));
        let left = x;
        for (const part of shown) {
          out.push({ node: part, x: left, y: level * ROW, w: wideOf(part), path: [...path, part] });
          if (part.parts.size && wideOf(part) >= 1) visit(part, left, [...path, part], level + 1);
          left += wideOf(part);
        }
      };
      visit(root, 0, [], 0);
      return out;
    };
    const fillOf = (node) => (node.rest ? "m" : node.colour === null ? (node.level === 0 ? "n" : "m") : node.colour);

    const drawAt = (w) => {
      const root = tree(desk, op);
      const placed = root.bytes ? layout(root, w) : [];
      const depth = Math.max(1, ...placed.map((one) => one.y / ROW + 1));
      boxes = placed;
      // The names are beside the boxes, so that a box has one name for a screen reader.
      const names = s("g", { "aria-hidden": "true" });
      const fit = chart.fitter();
      const groups = placed.map((one, at) => {
        const { node, x, y, w: wide, path } = one;
        const says = `${path.map((part) => part.name).join(" › ")}: ${format.bytes(node.bytes)}, ${format.percent(node.bytes, root.bytes)}`;
        const pick = (event) => !node.rest && desk.pick(node.dim, node.value, event);
        if (wide > 34) {
          // A number is whole, or it is not there.
          const number = format.bytes(node.bytes);
          names.append(s("g", { class: `on-${fillOf(node)}` }, s("text", { x: x + 6, y: y + 19, class: "strong", "data-name": node.name }, fit(node.name, wide - 10, 12, "bold")), chart.measure(number) <= wide - 10 ? s("text", { x: x + 6, y: y + 36 }, number) : null));
        }
        return s("g", {
          class: "node", tabindex: at === 0 ? 0 : -1, role: "treeitem", "aria-level": node.level + 1, "aria-label": says, "data-at": at,
          onclick: pick, onpointermove: (event) => desk.tip([h("b", {}, node.name), h("div", {}, `${format.bytes(node.bytes)} · ${format.percent(node.bytes, root.bytes)}`), h("div", { class: "soft" }, path.slice(0, -1).map((part) => part.name).join(" › "))], event), onpointerleave: () => desk.tip(null),
        }, s("rect", { class: `fill-${fillOf(node)}`, x, y, width: Math.max(0.5, wide - 1), height: ROW - 1, rx: 2 }));
      });
      const move = (event) => {
        const now = Number(document.activeElement?.getAttribute("data-at") ?? 0);
        const { x, y, w: wide } = boxes[now];
        const find = {
          ArrowRight: () => boxes.findIndex((one) => one.y === y && one.x > x), ArrowLeft: () => boxes.findLastIndex((one) => one.y === y && one.x < x),
          ArrowDown: () => boxes.findIndex((one) => one.y === y + ROW && one.x >= x - 0.01 && one.x < x + wide), ArrowUp: () => boxes.findLastIndex((one) => one.y === y - ROW && one.x <= x + 0.01),
        }[event.key];
        if (event.key === "Enter" || event.key === " " || event.key === "x") {
          event.preventDefault();
          event.stopPropagation();
          const { node } = boxes[now];
          if (!node.rest) (event.key === "x" ? desk.leaveOut(node.dim, node.value) : desk.pick(node.dim, node.value, event));
          return;
        }
        const next = find ? find() : -1;
        if (next < 0) return;
        event.preventDefault();
        event.stopPropagation();
        groups.forEach((group, at) => group.setAttribute("tabindex", at === next ? 0 : -1));
        groups[next].focus();
      };
      box.replaceChildren(root.bytes ? s("svg", { role: "tree", "aria-label": root.name, viewBox: `0 0 ${w} ${depth * ROW}`, width: w, height: depth * ROW, onkeydown: move }, groups, names) : h("p", { class: "note" }, `Nothing of this selection was ${WAYS[op][1]}.`));
      note.textContent = "Every byte once, by who caused it; if several did, each has a share. A process marked “submitter” handed it to the disk, and its cause is not known.";
      const sums = desk.store.by(desk.result, "colour", desk.result.bytes.map((value, c) => (desk.store.cells.op[c] === desk.store.ops.of(op) ? value : 0)));
      legend.replaceChildren(...[...sums].map((bytes, colour) => (bytes > 0 ? h("li", {}, dom.button([dom.swatch(colour), ` ${desk.store.words.colours[colour]} `, h("span", { class: "soft" }, `${format.bytes(bytes)} · ${format.percent(bytes, root.bytes)}`)], (event) => desk.pick("colour", desk.store.words.colours[colour], event), { class: "link" })) : null)).filter(Boolean));
      return depth * ROW;
    };
    const draw = () => {
      const sums = desk.store.by(desk.result, "op", desk.result.bytes);
      const has = Object.keys(WAYS).filter((name) => sums[desk.store.ops.of(name)] > 0);
      if (has.length && !has.includes(op)) [op] = has;
      choose.replaceChildren(has.length > 1 ? dom.options("Direction", has.map((name) => WAYS[name][0]), has.indexOf(op), (at) => { op = has[at]; draw(); }) : "");
      if (width) drawAt(width);
    };
    dom.onWidth(box, (now) => { width = now; if (desk.result) drawAt(now); });
    const table = () => {
      const rows = [];
      const visit = (node, path) => {
        for (const part of node.parts.values()) {
          const names = [...path, part.name];
          if (part.parts.size) visit(part, names);
          else rows.push([names[0], names[1] ?? "", names[2] ?? "", names[3] ?? "", part.bytes]);
        }
      };
      visit(tree(desk, op), []);
      rows.sort((a, b) => b[4] - a[4]);
      return { title: `Bytes ${WAYS[op][1]}`, columns: [...["program", "file", "layer", "part"].map((name) => ({ name, unit: "text" })), { name: "bytes", unit: "bytes", bar: true, sum: true }], rows };
    };
    return {
      name: "Bytes", title: "Where the bytes went", element: h("div", {}, choose, note, box, legend), draw, table,
      chart: () => ({ title: `${desk.sheet.name}: where the bytes went`, note: `program, file, layer, part of the layer; ${desk.words()}`, source: desk.source(), warnings: desk.sheet.missing, legend: desk.store.words.colours.slice(0, 6).map((name, k) => [`--k${k}`, name]), node: () => box.querySelector("svg") }),
      by: "cause_or_submitter,cause_or_file,class,kind",
    };
  };
  return { make };
})();
