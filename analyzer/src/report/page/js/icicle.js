// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws where the bytes went: a column for each level, in which heights are in proportion to bytes.
"use strict";

const icicle = (() => {
  const { h, s, button, shorten } = dom;
  const HEIGHT = 400;
  const LEAST = 170;
  /** The levels: device, process, file, layer, and the part of the layer. */
  const LEVELS = 5;

  /** The meaning of the colours. */
  const ABOUT = [
    "pages of a SQLite database, written home",
    "SQLite's own journal or WAL, by which a transaction can be undone or redone after a crash",
    "contents of other files, and of directories",
    "the filesystem's own blocks, written to their place",
    "the filesystem's journal: copies of the metadata that changes touched, written before the metadata itself, with the blocks that begin and end a transaction",
    "blocks whose owner is not known: it was gone before the snapshot, or no probe saw it",
  ];
  const OPERATIONS = {
    create: "creating", unlink: "deleting", truncate: "truncating", rename: "renaming", allocate: "growing", write: "writing", time: "new times of",
    xattr: "attributes of", mkdir: "making", fsync: "syncing", read: "reading", checkpoint: "checkpoints of", gc: "moving blocks of", mount: "mounting", other: "other changes of",
  };

  const link = (node, parent = null, level = 0) => {
    node.parent = parent;
    node.level = level;
    (node.p ?? []).forEach((part) => link(part, node, level + 1));
    return node;
  };
  const path = (node) => (node ? [...path(node.parent), node] : []);

  /** Returns where columns begin, and their number. A narrow page has little room for the device and the process. */
  const lay = (width, focus) => {
    const deep = LEVELS - focus.level;
    const rest = width - 66;
    const widths = width < 560 && focus.level === 0 ? [10, 56, rest * 0.44, rest * 0.56]
      : new Array(Math.min(deep, Math.max(2, Math.floor(width / LEAST)))).fill(0).map((_, at, all) => width / all.length);
    let x = 0;
    return { xs: [0, ...widths.map((wide) => (x += wide))], columns: widths.length };
  };

  /** Returns all leaves as rows of a table. */
  const leaves = (root) => {
    const rows = [];
    const visit = (node) => {
      if (node.p) return node.p.forEach(visit);
      const [, process, file, layer, part] = path(node).map((n) => n.n);
      rows.push([process, file, layer, part ?? null, node.v]);
    };
    visit(root);
    return rows.sort((a, b) => b[4] - a[4]);
  };

  const draw = (sheet, direction) => {
    const root = link(sheet.icicle[direction]);
    let focus = root;
    let current = root;
    let width = 0;
    const box = h("div");
    const crumbs = h("div", { class: "row crumbs", "aria-label": "Zoomed into" });
    const readout = h("div", { class: "readout", "aria-live": "polite" });

    const explain = (node) => {
      const [, process, file] = path(node);
      const parts = [h("b", {}, node.n), ` – ${format.bytes(node.v)}, ${format.percent(node.v, root.v)} of all`];
      if (node.parent && node.parent !== root) parts.push(`, ${format.percent(node.v, node.parent.v)} of ${node.parent.n}`);
      parts.push(". ");
      const verb = sheet.icicle.basis === "caused" ? "Caused by" : "Submitted by";
      if (node.level >= 3) parts.push(`${verb} ${process.n}, for ${file.n}. `);
      else if (node.level === 2) parts.push(`${verb} ${process.n}. `);
      const operations = Object.entries(node.o ?? {}).sort((a, b) => b[1] - a[1]);
      if (operations.length && node.k >= 3) {
        const words = operations.map(([name, bytes]) => `${OPERATIONS[name] ?? name} it ${format.percent(bytes, node.v)}`);
        parts.push(`By ${words.join(", ")}. `);
      }
      if (node.k !== undefined) parts.push(h("span", { class: "soft" }, `${ABOUT[node.k][0].toUpperCase()}${ABOUT[node.k].slice(1)}.`));
      else if (node.level < 2) parts.push(h("span", { class: "soft" }, node === root
        ? "From left to right: application, file, layer, and what of the layer. Click, or Enter, looks closer; Escape goes back; arrows move."
        : "Its files are to the right."));
      readout.replaceChildren(...parts);
    };

    const zoom = (node) => {
      focus = node.p ? node : node.parent ?? node;
      current = node;
      paint();
    };
    const showCrumbs = () => {
      const nodes = path(focus);
      crumbs.hidden = nodes.length === 1;
      crumbs.replaceChildren(...nodes.flatMap((node, at) => {
        const last = at === nodes.length - 1;
        const crumb = last ? h("span", {}, node.n) : button(node.n, () => zoom(node));
        return last ? [crumb] : [crumb, h("span", { "aria-hidden": "true" }, "›")];
      }));
    };

    const place = (node, y, height, column, out) => {
      out.push({ node, y, height, column });
      let from = y;
      for (const part of node.p ?? []) {
        const size = (height * part.v) / node.v;
        if (size < 1) break;
        place(part, from, size, column + 1, out);
        from += size;
      }
    };

    const paint = () => {
      if (!width) return;
      const { xs, columns } = lay(width, focus);
      const placed = [];
      if (root.v > 0) place(focus, 0, HEIGHT, 0, placed);
      const shown = placed.filter(({ column }) => column < columns);
      if (!shown.some(({ node }) => node === current)) current = focus;
      const groups = new Map();
      // A screen reader gets the whole name, beside the groups.
      const names = [];
      const drawn = shown.map(({ node, y, height, column }) => {
        // Where the last column with parts ends shows that it has parts.
        const span = node.p || column === columns - 1 ? 1 : columns - column;
        const colour = node.k ?? (node.level % 2 ? "n" : "m");
        const [x, wide] = [xs[column], xs[column + span] - xs[column]];
        const room = wide - 12;
        const group = s("g", {
          class: "node", role: "treeitem", tabindex: node === current ? 0 : -1, "aria-level": node.level + 1,
          "aria-label": `${node.n} ${format.bytes(node.v)} · ${format.percent(node.v, root.v)}`, "aria-selected": String(node === current),
          onclick: () => zoom(node === focus && node.parent ? node.parent : node),
          onmouseenter: () => explain(node),
          onfocus: () => { current = node; explain(node); },
        }, s("rect", { class: `fill-${colour}`, x, y, width: wide, height }));
        if (height >= 15) {
          const [bytes, percent] = [format.bytes(node.v), format.percent(node.v, root.v)];
          const name = shorten(node.n, Math.floor(room / 6.9));
          const text = (words, below, end) => names.push(s("text", {
            class: `on-${colour}`, x: end ? x + wide - 6 : x + 7, y: y + below, "text-anchor": end ? "end" : "start",
          }, words));
          const below = height >= 34;
          const value = [`${bytes} · ${percent}`, percent, ""].find((value) => (below ? value.length * 6.4 : (name.length + value.length) * 6.6 + 12) < room);
          text(name, below ? 17 : height / 2 + 4);
          if (value) text(value, below ? 32 : height / 2 + 4, !below);
        }
        groups.set(node, group);
        return group;
      });
      const move = (node) => {
        const group = groups.get(node);
        if (!group) return;
        groups.forEach((other) => { other.setAttribute("tabindex", -1); other.setAttribute("aria-selected", "false"); });
        group.setAttribute("tabindex", 0);
        group.setAttribute("aria-selected", "true");
        group.focus();
      };
      // After a key, the element that is drawn anew gets the focus.
      const zoomFrom = (node) => {
        zoom(node);
        box.querySelector('[tabindex="0"]')?.focus();
      };
      const onkeydown = (event) => {
        const beside = (by) => {
          const siblings = current.parent?.p ?? [];
          return siblings[siblings.indexOf(current) + by];
        };
        const act = {
          ArrowLeft: () => (groups.has(current.parent) ? move(current.parent) : focus.parent && zoomFrom(focus.parent)),
          ArrowRight: () => move(current.p?.[0]),
          ArrowUp: () => move(beside(-1)),
          ArrowDown: () => move(beside(1)),
          Enter: () => zoomFrom(current),
          " ": () => zoomFrom(current),
          Escape: () => focus.parent && zoomFrom(focus.parent),
        }[event.key];
        if (!act) return;
        event.preventDefault();
        act();
      };
      box.replaceChildren(s("svg", {
        role: "tree", "aria-label": "Where the bytes went", viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, onkeydown, onmouseleave: () => explain(current),
      }, drawn, s("g", { class: "names", "aria-hidden": "true" }, names)));
      showCrumbs();
      explain(current);
    };
    dom.onWidth(box, (now) => { width = now; paint(); });
    const rows = leaves(root);
    const table = {
      title: "All parts", note: null, rows,
      columns: [["process", "text"], ["file", "text"], ["layer", "text"], ["of it", "text"], ["bytes", "bytes"]].map(([name, unit]) => ({ name, unit })),
    };
    return h("div", {}, crumbs, box, readout, h("details", { class: "more" }, h("summary", {}, "The same as a table"), grid.draw(table)));
  };

  /** Returns the bytes written, by colour. */
  const byColour = (root) => {
    const sums = new Array(6).fill(0);
    const visit = (node) => (node.p ? node.p.forEach(visit) : (sums[node.k ?? 5] += node.v));
    if (root.v > 0) visit(root);
    return sums;
  };
  return { draw, byColour };
})();
