// SPDX-License-Identifier: MIT OR Apache-2.0
// What all views of one trace share: the selection, the window of time, the pointer, and when each view is drawn.
"use strict";

const desk = (() => {
  const { h } = dom;
  /** A window is not shorter than this, µs. */
  const LEAST = 20;

  const make = (sheet, data, host) => {
    const theStore = store.make(data);
    const views = [];
    const resting = [];
    let heavy = null;
    let frame = 0;
    let timer = 0;
    let whole = null;
    let wholeKey = "";

    const self = {
      sheet, store: theStore, axes: [], selection: choice.ALL, result: null, details: null,
      /** The numbers of the transaction and of the request that are open; the address has them. */
      opened: { tx: null, request: null },

      window: () => (self.selection.from === null ? [0, theStore.span] : [self.selection.from, self.selection.to]),
      keyOfTerms: () => JSON.stringify(self.selection.terms),
      /** The sums of the selection without its interval. */
      wholeTime: () => {
        const key = self.keyOfTerms();
        if (key !== wholeKey || !whole) [whole, wholeKey] = [theStore.ask({ ...self.selection, from: null, to: null }), key];
        return whole;
      },
      tip: host.tip,
      add: (view) => { views.push(view); return view; },
      /** Adds a view that is drawn when the selection rests, because it takes a pass over the rows of its own. */
      addResting: (view) => { resting.push(view); return view; },
      /** The view that is drawn when the selection rests. */
      setHeavy: (view) => {
        heavy = view;
        if (self.result) heavy?.draw();
      },

      /** Changes the selection. A live change is one of many, while something is dragged. */
      set: (selection, live = false) => {
        self.selection = selection;
        // What the pointer showed is somewhere else now.
        if (!live) self.point(null);
        if (!frame) frame = requestAnimationFrame(() => { frame = 0; self.drawLight(); });
        clearTimeout(timer);
        timer = setTimeout(self.drawHeavy, live ? 120 : 0);
        if (!live) host.write();
      },
      commit: () => self.set(self.selection),
      redraw: () => self.set(self.selection, true),
      drawLight: () => {
        const start = performance.now();
        self.result = theStore.ask(self.selection);
        views.forEach((view) => view.light());
        performance.measure("mostrace:draw", { start });
      },
      drawHeavy: () => {
        if (!self.result || self.result.selection !== self.selection) self.drawLight();
        const start = performance.now();
        resting.forEach((view) => view.light());
        heavy?.draw();
        performance.measure("mostrace:tab", { start });
      },

      during: (from, to, live = false) => {
        const all = from === null || (from <= 0 && to >= theStore.span);
        if (all) return self.set(choice.during(self.selection, null, null), live);
        const least = Math.max(LEAST, theStore.words.bin_us ?? 0);
        const end = Math.min(theStore.span, Math.max(to, from + least));
        return self.set(choice.during(self.selection, theStore.snap(Math.max(0, Math.min(from, end - least))), theStore.snap(end)), live);
      },
      /** Makes the window shorter or longer around a moment. */
      zoom: (factor, around = null, live = false) => {
        const [from, to] = self.window();
        const middle = around ?? (from + to) / 2;
        self.during(middle - (middle - from) * factor, middle + (to - middle) * factor, live);
      },
      pan: (part) => {
        const [from, to] = self.window();
        const step = Math.min(Math.max((to - from) * part, -from), theStore.span - to);
        self.during(from + step, to + step);
      },
      wheel: (event, us) => {
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          const [from, to] = self.window();
          const step = Math.min(Math.max(((to - from) * event.deltaX) / 800, -from), theStore.span - to);
          self.during(from + step, to + step, true);
        } else self.zoom(1.0015 ** event.deltaY, us, true);
        clearTimeout(self.wheeling);
        self.wheeling = setTimeout(self.commit, 250);
      },

      /** A click selects, one with Ctrl or Shift adds, one with Alt leaves out. */
      pick: (dim, value, event = {}) => {
        if (event.altKey) self.leaveOut(dim, value);
        else if (event.ctrlKey || event.metaKey || event.shiftKey) self.set(choice.toggle(self.selection, dim, value));
        else self.set(choice.only(self.selection, dim, value));
      },
      leaveOut: (dim, value) => self.set(choice.toggle(self.selection, dim, value, true)),
      openTransaction: (at) => {
        self.opened.tx = at;
        self.transactions?.show(at);
        host.write();
      },
      openRequest: (row) => {
        self.opened.request = row;
        self.details.request(row);
        host.write();
      },
      closeOne: () => {
        self.opened.request = null;
        self.details.clear();
        host.write();
      },

      /** Shows one moment in all charts, and a note at the pointer. `range` is the axis that the pointer is on. */
      point: (us, range, note, event) => {
        for (const { cross, range: mine, width, left = 0 } of self.axes) {
          const [from, to] = mine();
          const is = us !== null && us >= from && us <= to;
          cross.hidden = !is;
          if (is) cross.style.transform = `translateX(${left + ((us - from) / (to - from)) * width()}px)`;
        }
        host.tip(us === null ? null : note ?? [h("b", {}, format.moment(us, (range[1] - range[0]) / 1000))], event);
      },

      /** Gives a chart on the window's axis its pointer: a note, a drag that selects, a wheel that zooms, a click. */
      timed: (plot, { tell, click, cross }) => {
        const width = () => plot.clientWidth;
        self.axes.push({ cross, range: self.window, width });
        const at = (event) => event.clientX - plot.getBoundingClientRect().left;
        const us = (event) => {
          const [from, to] = self.window();
          return from + (Math.min(width(), Math.max(0, at(event))) / width()) * (to - from);
        };
        const band = h("div", { class: "band", hidden: true });
        plot.append(band);
        let drag = null;
        plot.addEventListener("pointerdown", (event) => {
          if (event.button === 0 && event.pointerType !== "touch") drag = { x: at(event), us: us(event), moved: false };
        });
        plot.addEventListener("pointermove", (event) => {
          self.point(us(event), self.window(), tell(event, us(event)), event);
          if (!drag || (!drag.moved && Math.abs(at(event) - drag.x) < 4)) return;
          if (!drag.moved) plot.setPointerCapture(event.pointerId);
          drag.moved = true;
          band.hidden = false;
          const [a, b] = [Math.min(drag.x, at(event)), Math.max(drag.x, at(event))];
          band.style.left = `${a}px`;
          band.style.width = `${b - a}px`;
        });
        plot.addEventListener("pointerup", (event) => {
          if (drag?.moved) self.during(Math.min(drag.us, us(event)), Math.max(drag.us, us(event)));
          else if (click && event.button === 0) click(event, us(event));
          drag = null;
          band.hidden = true;
        });
        plot.addEventListener("pointerleave", () => self.point(null));
        plot.addEventListener("dblclick", () => self.during(null, null));
        plot.addEventListener("wheel", (event) => {
          if (!event.ctrlKey && !event.metaKey) return;
          event.preventDefault();
          self.point(null);
          self.wheel(event, us(event));
        }, { passive: false });
      },

      /** The selection in words, for the titles of what is saved. */
      words: () => {
        const [from, to] = self.window();
        const parts = self.selection.terms.map(({ dim, value, not }) => `${not ? "without " : ""}${choice.DIMS[dim]} ${value ?? "not known"}`);
        return [self.selection.from === null ? `all ${format.us(theStore.span)}` : `${format.moment(from, to - from)} to ${format.moment(to, to - from)}`, ...parts].join(", ");
      },
      source: () => `${sheet.name} · mostrace report`,
      /** The command that prints the view's figures. */
      command: (by = "cause_or_submitter") => {
        const where = choice.toSql(self.selection, theStore.words);
        return ["mostrace", "analyze", choice.shell(sheet.path), "--by", by, ...(where ? ["--where", choice.shell(where)] : [])].join(" ");
      },
    };
    return self;
  };
  return { make };
})();
