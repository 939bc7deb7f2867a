// SPDX-License-Identifier: MIT OR Apache-2.0
// Tables that sort, filter and are copied as CSV.
"use strict";

const grid = (() => {
  const { h, button } = dom;
  const ROWS = 100;
  /** Names of columns; the first one that the table has gets bars. */
  const MEASURED = ["write bytes", "bytes", "calls", "requests", "writes"];

  const compare = (a, b) => {
    if (a === b) return 0;
    // Unknown values come last in either direction.
    if (a === null || a === undefined) return Infinity;
    if (b === null || b === undefined) return -Infinity;
    return typeof a === "number" ? a - b : String(a).localeCompare(String(b));
  };

  const quoted = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    // A spreadsheet must not take a name for a formula.
    if (typeof value === "string" && /^[=+\-@\t]/.test(text)) text = `'${text}`;
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (table) => [table.columns.map((column) => column.name.replaceAll(" ", "_")), ...table.rows]
    .map((row) => row.map(quoted).join(",")).join("\n");

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages from files may not use the clipboard API in every browser.
      const area = h("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };

  /** `table`: {title, note, columns: [{name, unit}], rows}. */
  const draw = (table, heading = "h3") => {
    const isNumber = (column) => column.unit !== "text";
    const measured = MEASURED.map((name) => table.columns.findIndex((column) => column.name === name)).find((at) => at >= 0) ?? -1;
    const most = measured < 0 ? 0 : Math.max(...table.rows.map((row) => row[measured] ?? 0));
    let sorted = -1;
    let up = false;
    let all = false;
    let words = "";

    const body = h("tbody");
    const status = h("span", { class: "soft", role: "status" });
    const more = button("", () => { all = true; fill(); });
    const td = (value, at) => {
      const column = table.columns[at];
      const text = format.cell(value, column.unit);
      const cell = h("td", { class: isNumber(column) ? "number" : "text" });
      if (at === measured && most > 0) {
        const bar = h("span", { class: "measure", "aria-hidden": "true" });
        bar.style.width = `${((value ?? 0) * 100) / most}%`;
        cell.append(bar, h("span", {}, text));
      } else cell.append(text);
      return cell;
    };
    const fill = () => {
      let rows = table.rows;
      if (words) rows = rows.filter((row) => row.some((value) => String(value ?? "").toLowerCase().includes(words)));
      if (sorted >= 0) {
        rows = [...rows].sort((a, b) => {
          const order = compare(a[sorted], b[sorted]);
          return Math.abs(order) === Infinity ? Math.sign(order) : up ? order : -order;
        });
      }
      const shown = all ? rows : rows.slice(0, ROWS);
      body.replaceChildren(...shown.map((row) => h("tr", {}, row.map(td))));
      more.hidden = shown.length === rows.length;
      more.textContent = `Show all ${format.count(rows.length)}`;
      status.textContent = words ? `${format.count(rows.length)} of ${format.count(table.rows.length)} rows` : "";
    };
    const heads = table.columns.map((column, at) => {
      const head = h("th", { scope: "col", class: isNumber(column) ? "number" : "text" });
      head.append(button(column.name, () => {
        up = sorted === at ? !up : !isNumber(column);
        sorted = at;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        marks.forEach((mark, nth) => { mark.textContent = nth === at ? (up ? " ↑" : " ↓") : ""; });
        fill();
      }));
      return head;
    });
    const marks = heads.map((head) => head.firstChild.appendChild(h("span", { "aria-hidden": "true" })));
    const filter = h("input", {
      type: "search", placeholder: "Filter", "aria-label": `Filter: ${table.title}`,
      oninput: (event) => { words = event.target.value.toLowerCase(); fill(); },
    });
    const copied = button("Copy as CSV", async () => {
      await copy(csv(table));
      copied.textContent = "Copied";
      setTimeout(() => { copied.textContent = "Copy as CSV"; }, 1500);
    });
    fill();
    return h("div", { class: "grid" },
      h(heading, {}, table.title),
      table.note ? h("p", { class: "note" }, table.note) : null,
      h("div", { class: "grid-tools" }, table.rows.length > 6 ? filter : null, copied, more, status),
      h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `${table.title}: rows` },
        h("table", {}, h("thead", {}, h("tr", {}, heads)), body)));
  };
  return { draw };
})();
