// The memory as a strip of cells, with marks where READ and WRITE point.

import { el, fill, freshId, setAttribute, setClass, setText } from "./dom.js";

const ROOMY = 48; // cells; above this the marks are letters without names
const WIDE_WINDOW = 128; // cells that a large tape shows at once, besides those around pointers
const NARROW_WINDOW = 49; // the same on a phone
const AROUND = 3; // cells on each side of a pointer outside of the window

/** A tape. `edit` has `start(cell)`, the value before the first step, and `commit(cell, value)`; null if it is only looked at. */
export class Tape {
  constructor(edit = null) {
    this.edit = edit;
    this.size = 0;
    this.base = 0;
    this.span = matchMedia("(max-width: 600px)").matches ? NARROW_WINDOW : WIDE_WINDOW;
    this.cells = new Map();
    this.layout = "";
    this.lines = 0; // of marks under each cell
    this.wrapped = false; // whether the cells take several lines: then marks have one line, or there would be large gaps
    this.list = el("ol", { class: "cells", "aria-label": "Memory cells" });
    this.window = this.windowControls();
    this.element = el("div", { class: "tape" }, this.window, this.list);
    this.list.addEventListener("keydown", (event) => this.handleKey(event));
    this.list.addEventListener("click", (event) => this.handleClick(event));
    new ResizeObserver(() => requestAnimationFrame(() => this.wrap())).observe(this.list);
  }

  windowControls() {
    const id = freshId("from-cell");
    const move = (by) => this.moveTo(this.base + by);
    this.from = el("input", { type: "number", id, min: 0, value: 0, onchange: () => this.moveTo(Number(this.from.value)) });
    this.range = el("span", { class: "pale" });
    return el(
      "div",
      { class: "tape-window", hidden: true },
      el("label", { for: id }, "Show from cell"),
      this.from,
      el("button", { type: "button", onclick: () => move(-this.span) }, "Earlier"),
      el("button", { type: "button", onclick: () => move(this.span) }, "Later"),
      this.range,
    );
  }

  moveTo(cell) {
    this.base = Math.max(0, Math.min(Math.floor(cell) || 0, this.size - this.span));
    this.from.value = this.base;
    this.show(this.view);
  }

  /**
   * Show a memory. `view` has memory, reads and writes (each with pointer, value and name), changed (a Set of cells),
   * output (a Set), wrong (a Map from cell to the expected value), differs (a Set).
   */
  show(view) {
    this.view = view;
    this.measure(view.memory.length);
    const reads = byCell(view.reads);
    const writes = byCell(view.writes);
    this.arrange(segmentsOf(this.size, this.base, this.span, [...reads.keys(), ...writes.keys()]));
    for (const [cell, parts] of this.cells) {
      this.showCell(cell, parts, view, reads.get(cell) ?? [], writes.get(cell) ?? []);
    }
    setClass(this.list, `cells${this.size > ROOMY ? " close" : this.wrapped ? " wrapped" : ""}`);
    this.list.style.setProperty("--mark-lines", this.lines);
  }

  /** Look whether the cells take several lines. */
  wrap() {
    const [first, last] = [this.list.firstElementChild, this.list.lastElementChild];
    const wrapped = this.size <= ROOMY && first !== null && first.offsetTop !== last.offsetTop;
    if (wrapped !== this.wrapped) {
      this.wrapped = wrapped;
      this.lines = wrapped ? 1 : 2;
      this.show(this.view);
    }
  }

  measure(size) {
    if (size === this.size) {
      return;
    }
    this.size = size;
    this.base = 0;
    this.from.value = 0;
    this.from.max = Math.max(0, size - this.span);
    this.lines = size > ROOMY || this.wrapped ? 1 : 2;
    this.list.style.setProperty("--digits", String(size - 1).length);
    this.window.hidden = size <= this.span;
  }

  /** Make the cells of these segments, if others are there. */
  arrange(segments) {
    const layout = `${this.size}: ${segments.join(" ")}`;
    if (layout === this.layout) {
      return;
    }
    this.layout = layout;
    const kept = new Map();
    const items = [];
    segments.forEach(([low, high], index) => {
      if (index > 0) {
        items.push(el("li", { class: "gap", "aria-hidden": "true" }, "…"));
      }
      for (let cell = low; cell < high; cell += 1) {
        const parts = this.cells.get(cell) ?? this.newCell(cell);
        kept.set(cell, parts);
        items.push(parts.item);
      }
    });
    this.cells = kept;
    fill(this.list, items);
    if (![...kept.values()].some(({ box }) => box.tabIndex === 0)) {
      this.focusOn(kept.keys().next().value); // one cell can always be reached by the Tab key
    }
    const last = Math.min(this.base + this.span, this.size) - 1;
    setText(this.range, `cells ${this.base} to ${last} of ${this.size}, and those that are read or written`);
  }

  newCell(cell) {
    const value = el("span", { "aria-hidden": "true" });
    const words = el("span", { class: "sr" });
    const tag = this.edit === null ? "span" : "button";
    const tab = { class: "value", type: "button", tabindex: cell === 0 ? 0 : -1, title: "Edit the input" };
    const box = el(tag, this.edit === null ? { class: "value" } : tab, value, words);
    const marks = el("span", { class: "marks", "aria-hidden": "true" });
    const address = el("span", { class: "address", "aria-hidden": "true" }, String(cell));
    return { item: el("li", { "data-cell": cell }, address, box, marks), value, words, box, marks, shown: "" };
  }

  showCell(cell, parts, view, reads, writes) {
    const flags = [
      ["changed", view.changed.has(cell), "changed by the last step"],
      ["output", view.output.has(cell), "output cell"],
      ["wrong", view.wrong.has(cell), `wrong, expected ${view.wrong.get(cell)}`],
      ["differs", view.differs.has(cell), "differs from the other run"],
      ["read", reads.length > 0, `read through ${reads.map((one) => one.name).join(", ")}`],
      ["written", writes.length > 0, `next written: ${writes.map((one) => one.value).join(", ")}`],
    ].filter(([, on]) => on);
    setClass(parts.item, ["cell", ...flags.map(([name]) => name)].join(" "));
    setText(parts.value, String(view.memory[cell]));
    setText(parts.words, [`cell ${cell}: ${view.memory[cell]}`, ...flags.map(([, , words]) => words)].join(", "));
    const close = this.size > ROOMY;
    const short = close || this.wrapped;
    const both = reads.length > 0 && writes.length > 0;
    const [read, written] = short ? [reads.slice(-1), writes.slice(-1)] : [reads, writes];
    const marks = [
      ...read.map((one) => ["mark read", close || (short && both) ? "R" : `R ${one.name}`]),
      ...written.map((one) => ["mark written", close || (short && both) ? "W" : short ? `← ${one.value}` : `W ${one.name}`]),
      ...(short ? [] : writes.slice(-1).map((one) => ["becomes", `← ${one.value}`])),
      ...(view.wrong.has(cell) && !close ? [["expected", `≠ ${view.wrong.get(cell)}`]] : []),
    ];
    const shown = JSON.stringify(marks);
    if (shown !== parts.shown) {
      parts.shown = shown;
      fill(parts.marks, marks.map(([kind, words]) => el("span", { class: kind }, words)));
    }
    // lines only ever become more: a tape that jumps up and down at every step is hard to watch
    this.lines = Math.max(this.lines, short ? 1 : marks.length);
  }

  handleClick(event) {
    const item = event.target.closest("button.value")?.closest("li");
    if (item && this.edit !== null) {
      this.open(Number(item.dataset.cell));
    }
  }

  /** Edit what a cell holds before the first step. */
  open(cell) {
    const { item, box } = this.cells.get(cell);
    this.focusOn(cell);
    const label = `Start value of cell ${cell}`;
    const title = `${label}. Enter keeps it, Escape does not.`;
    const input = el("input", { class: "value-input", type: "text", inputmode: "numeric", "aria-label": label, title });
    input.value = this.edit.start(cell);
    let done = false;
    const close = (keep, focus) => {
      if (done) {
        return;
      }
      done = true;
      const words = input.value.trim();
      input.replaceWith(box);
      if (focus) {
        box.focus();
      }
      if (keep && words !== String(this.edit.start(cell))) {
        this.edit.commit(cell, words);
      }
    };
    input.addEventListener("keydown", (key) => {
      key.stopPropagation();
      if (key.key === "Enter" || key.key === "Escape") {
        key.preventDefault(); // or Enter would press the button that gets the focus
        close(key.key === "Enter", true);
      }
    });
    input.addEventListener("blur", () => close(true, false));
    box.replaceWith(input);
    item.scrollIntoView({ block: "nearest" });
    input.select();
  }

  focusOn(cell) {
    for (const [other, parts] of this.cells) {
      setAttribute(parts.box, "tabindex", other === cell ? 0 : -1);
    }
  }

  /** Arrow keys move between cells while one of them has the focus. */
  handleKey(event) {
    const item = event.target.closest("li");
    if (this.edit === null || !event.target.matches("button.value") || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const order = [...this.cells.keys()];
    const perLine = order.filter((cell) => this.cells.get(cell).item.offsetTop === item.offsetTop).length;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -perLine, ArrowDown: perLine }[event.key];
    if (by === undefined) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const next = order[order.indexOf(Number(item.dataset.cell)) + by];
    if (next !== undefined) {
      this.focusOn(next);
      this.cells.get(next).box.focus();
    }
  }
}

function byCell(accesses) {
  const found = new Map();
  for (const access of accesses) {
    found.set(access.pointer, [...(found.get(access.pointer) ?? []), access]);
  }
  return found;
}

/** The cells to show, as [first, one past the last] pieces in order: all of a small tape, a window of a large one. */
function segmentsOf(size, base, span, pointers) {
  if (size <= span) {
    return [[0, size]];
  }
  const pieces = [[base, Math.min(base + span, size)], ...pointers.map((cell) => [Math.max(0, cell - AROUND), Math.min(size, cell + AROUND + 1)])];
  pieces.sort((a, b) => a[0] - b[0]);
  const joined = [pieces[0]];
  for (const [low, high] of pieces.slice(1)) {
    const last = joined[joined.length - 1];
    if (low <= last[1]) {
      last[1] = Math.max(last[1], high);
    } else {
      joined.push([low, high]);
    }
  }
  return joined;
}
