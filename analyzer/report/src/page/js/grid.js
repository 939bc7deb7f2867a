// SPDX-License-Identifier: MIT OR Apache-2.0
// Tables that sort and filter over all rows, show some of them, and say what the rest adds up to.
"use strict";

const grid = (() => {
  const { h, button } = dom;
  const ROWS = 50;
  const MORE = 500;
  /** The most characters of a text. */
  const LONG = 90;

  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  const isNone = (value) => value === null || value === undefined;
  const isNumber = (column) => column.unit !== "text";

  /** `table`: {title, note, columns: [{name, unit, sum, bar}], rows}. A column with `bar` is drawn; one with `sum` is added up in
   * the line of the rest. `strips` gives a row's bytes by colour. `pick(row, event)` is called for a click on a row. Without
   * `saves`, what is around it has the button. */
  const draw = (table, { heading = "h3", pick = null, picked = null, strips = null, saves = true } = {}) => {
    const { columns } = table;
    const measured = columns.findIndex((column) => column.bar);
    const most = measured < 0 ? 0 : table.rows.reduce((all, row) => Math.max(all, row[measured] ?? 0), 0);
    let sorted = -1;
    let up = false;
    let shown = ROWS;
    let words = "";

    const body = h("tbody");
    const foot = h("tfoot");
    const status = h("span", { class: "soft", role: "status" });
    const more = button("", () => { shown += MORE; fill(); });
    const bar = (row) => {
      const box = h("span", { class: "measure", "aria-hidden": "true" });
      const parts = strips ? strips(row) : null;
      if (parts) {
        const whole = parts.reduce((all, value) => all + value, 0) || 1;
        parts.forEach((value, k) => {
          if (value <= 0) return;
          const part = h("span", { class: `back-${k}` });
          part.style.width = `${(value / whole) * 100}%`;
          box.append(part);
        });
      } else box.append(h("span", { class: "back-bar" }));
      box.style.width = `${((row[measured] ?? 0) * 100) / most}%`;
      return box;
    };
    const td = (row, at) => {
      const column = columns[at];
      const whole = format.cell(row[at], column.unit);
      // A long path is some lines high, and whole in its note.
      const text = isNumber(column) ? whole : dom.shorten(whole, LONG);
      const exact = column.unit === "bytes" && row[at] >= 1000 ? `${format.count(row[at])} bytes` : null;
      const cell = h("td", { class: `${isNumber(column) ? "number" : "text"}${row[at] === 0 ? " zero" : ""}`, title: exact ?? (text === whole ? null : whole) });
      if (at === 0 && pick) cell.append(button(text, (event) => pick(row, event), { class: "link", title: whole }));
      else if (at === 0) cell.append(h("span", { title: whole }, text));
      else cell.append(text);
      if (at === measured && most > 0) cell.append(bar(row));
      return cell;
    };
    const chosen = () => {
      let { rows } = table;
      if (words) rows = rows.filter((row) => row.some((value) => typeof value === "string" && value.toLowerCase().includes(words)));
      if (sorted < 0) return rows;
      return [...rows].sort((a, b) => {
        const [x, y] = [a[sorted], b[sorted]];
        // Unknown values come last in either direction.
        if (isNone(x) || isNone(y)) return Number(isNone(x)) - Number(isNone(y));
        return up ? compare(x, y) : compare(y, x);
      });
    };
    const fill = () => {
      const rows = chosen();
      const some = rows.slice(0, shown);
      body.replaceChildren(...some.map((row) => h("tr", { class: picked?.(row) ? "picked" : null }, columns.map((_, at) => td(row, at)))));
      const rest = rows.slice(shown);
      foot.replaceChildren();
      if (rest.length) {
        const total = (column, at) => (column.sum ? format.cell(rest.reduce((all, row) => all + (row[at] ?? 0), 0), column.unit) : "");
        foot.append(h("tr", {}, columns.map((column, at) => h("td", { class: isNumber(column) ? "number" : "text" }, at === 0 ? `and ${format.count(rest.length)} more` : total(column, at)))));
      }
      more.hidden = !rest.length;
      more.textContent = `Show ${format.count(Math.min(MORE, rest.length))} more`;
      status.textContent = words ? `${format.count(rows.length)} of ${format.some(table.rows.length, "row")}` : format.some(rows.length, "row");
    };
    const heads = columns.map((column, at) => {
      const head = h("th", { scope: "col", class: isNumber(column) ? "number" : "text" });
      head.append(button(column.name, () => {
        up = sorted === at ? !up : !isNumber(column);
        sorted = at;
        heads.forEach((other, nth) => {
          other.removeAttribute("aria-sort");
          marks[nth].textContent = nth === at ? (up ? " ↑" : " ↓") : "";
        });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        fill();
      }, { title: column.note }));
      return head;
    });
    const marks = heads.map((head) => head.firstChild.appendChild(h("span", { "aria-hidden": "true" })));
    const filter = h("input", { type: "search", placeholder: "Filter the rows", "aria-label": `Filter: ${table.title}`, oninput: (event) => { words = event.target.value.toLowerCase(); shown = ROWS; fill(); } });
    fill();
    const menu = save.menu(table.title, { table: () => ({ ...table, rows: chosen() }) });
    return h("div", { class: "grid" },
      heading ? h(heading, {}, table.title) : null,
      table.note ? h("p", { class: "note" }, table.note) : null,
      h("div", { class: "grid-tools" }, table.rows.length > 8 ? filter : null, saves ? menu : null, status, more),
      h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `${table.title}: rows` }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body, foot)));
  };

  /** A table that was made when the page was, in the form of `draw`. */
  const ofPage = (table) => ({ ...table, columns: table.columns.map((column) => ({ ...column, bar: false })) });

  return { draw, ofPage };
})();
