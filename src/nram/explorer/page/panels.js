// What stands beside the tape: the registers, why the row was chosen, the listing, the circuit.

import { el, fill, setAttribute, setClass, setText } from "./dom.js";
import { CircuitDrawing } from "./shapes.js";

const MANY_ROWS = 60; // above this the browser lays out only the rows that are seen

/** A row's conditions as [register's index, whether it must be 0]; null for a row that takes what the others leave. */
function conditionsOf(row, registers) {
  const found = /when (.*)$/.exec(row.condition);
  if (found === null) {
    return null;
  }
  return found[1].split(",").map((words) => {
    const [name, sign] = words.trim().split(" ");
    return [registers.indexOf(name), sign === "="];
  });
}

/** Why a row applies or not: "r1 = 3, not 0". */
function failure(row, registers, values) {
  const failing = (conditionsOf(row, registers) ?? []).find(([index, zero]) => (values[index] === 0) !== zero);
  return failing === undefined ? null : `${registers[failing[0]]} is ${values[failing[0]]}`;
}

/** The registers with their values, and what the step makes of them. */
export class RegistersPanel {
  constructor(info) {
    this.info = info;
    this.cells = info.registers.map(() => [el("span", { class: "register-value" }), el("span", { class: "becomes" })]);
    const items = info.registers.map((name, index) => el("li", null, el("span", { class: "register-name" }, name), this.cells[index]));
    this.list = el("ul", { class: "registers", "aria-label": "Registers" }, items);
    this.reason = el("p", { class: "reason" });
    this.element = el("section", { class: "panel" }, el("h3", null, "Registers"), this.list, this.reason);
  }

  show(frame, row) {
    const { registers } = this.info;
    const asked = new Set(row === null ? [] : (conditionsOf(row, registers) ?? []).map(([index]) => index));
    this.cells.forEach(([value, next], index) => {
      const [now, then] = [frame.registers[index], frame.step?.next[index] ?? frame.registers[index]];
      const changed = frame.last !== null && frame.last.registers[index] !== now;
      setText(value, String(now));
      setText(next, then === now ? "" : `→ ${then}`);
      setClass(this.list.children[index], [changed ? "changed" : "", asked.has(index) ? "asked" : ""].join(" ").trim());
    });
    setText(this.reason, row === null ? this.ended(frame) : this.why(frame, row));
  }

  ended(frame) {
    return frame.halted ? "The program has halted." : "The run was stopped at its step limit.";
  }

  why(frame, row) {
    const { registers } = this.info;
    const conditions = conditionsOf(row, registers);
    if (conditions === null) {
      return row.row === 0 ? `${capital(row.label)} always applies.` : `${capital(row.label)} applies because no row above it does.`;
    }
    const words = conditions.map(([index, zero]) => `${registers[index]} ${zero ? "= 0" : `= ${frame.registers[index]} > 0`}`);
    return `${capital(row.label)} is the first that applies: ${words.join(", ")}.`;
  }
}

/** "row 1" as the beginning of a sentence. */
export function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The program's rows, the one of this step lit, with the values of this step behind its lines. */
export class ListingPanel {
  constructor(info) {
    this.info = info;
    this.rows = new Map(info.rows.map((row) => [`${row.state}:${row.row}`, this.newRow(row)]));
    this.touched = [];
    const states = new Set(info.rows.map((row) => row.state)).size > 1;
    const items = [];
    let state = -1;
    for (const { row, item } of this.rows.values()) {
      if (states && row.state !== state) {
        items.push(el("li", { class: "state-name" }, `state ${row.state}:`));
      }
      state = row.state;
      items.push(item);
    }
    const long = this.rows.size > MANY_ROWS ? "listing long" : "listing";
    this.list = el("ol", { class: long, tabindex: 0, "aria-label": "Listing of the program" }, items);
    this.element = el("section", { class: "panel" }, el("h3", null, "Program"), this.list);
  }

  newRow(row) {
    const notes = row.lines.map(() => el("span", { class: "note" }));
    const kind = (index) => (index === 0 ? "line head" : "line");
    const lines = row.lines.map((line, index) => el("span", { class: kind(index) }, el("code", null, line.trim()), notes[index]));
    return { row, notes, item: el("li", { class: "listing-row" }, lines) };
  }

  show(frame, chosen) {
    for (const { item, notes } of this.touched) {
      setClass(item, "listing-row");
      setAttribute(item, "aria-current", null);
      notes.forEach((note) => setText(note, ""));
    }
    this.touched = [];
    if (chosen === null) {
      return;
    }
    for (let index = 0; index < chosen.row; index += 1) {
      const tried = this.rows.get(`${chosen.state}:${index}`);
      setClass(tried.item, "listing-row tried");
      setText(tried.notes[0], `✗ ${failure(tried.row, this.info.registers, frame.registers)}`);
      this.touched.push(tried);
    }
    const lit = this.rows.get(`${chosen.state}:${chosen.row}`);
    setClass(lit.item, "listing-row lit");
    setAttribute(lit.item, "aria-current", "step");
    setText(lit.notes[0], "✓");
    chosen.operations.forEach(({ module, line }, index) => {
      const [pointer, value] = frame.step.arguments[index];
      const output = frame.step.outputs[index];
      const words = { READ: `cell ${pointer} → ${output}`, WRITE: `cell ${pointer} ← ${value}` };
      setText(lit.notes[line], words[module] ?? `= ${output}`);
    });
    this.showUpdate(lit, frame.step.next);
    this.touched.push(lit);
    this.shownRow = lit.item;
    requestAnimationFrame(() => this.reveal(lit.item)); // after the other parts have changed: one layout for all
  }

  /** The values that the registers get, behind the line "r1, r2 := ...". */
  showUpdate(lit, next) {
    const line = lit.row.lines.findIndex((words) => words.includes(":="));
    if (line >= 0) {
      const names = lit.row.lines[line].split(":=")[0].split(",");
      setText(lit.notes[line], `= ${names.map((name) => next[this.info.registers.indexOf(name.trim())]).join(", ")}`);
    }
  }

  /** Scroll the listing, and only the listing, so that the row is seen. */
  reveal(item) {
    if (item !== this.shownRow) {
      return;
    }
    const [top, bottom] = [item.offsetTop, item.offsetTop + item.offsetHeight]; // in the listing
    if (top < this.list.scrollTop || item.offsetHeight > this.list.clientHeight) {
      this.list.scrollTop = top;
    } else if (bottom > this.list.scrollTop + this.list.clientHeight) {
      this.list.scrollTop = bottom - this.list.clientHeight;
    }
  }
}

/** The circuit of this step's row, with the values on its wires. */
export class CircuitPanel {
  constructor(info) {
    this.info = info;
    this.drawings = new Map();
    this.place = el("div", { class: "circuit", tabindex: 0, role: "group", "aria-label": "Circuit of this step" });
    this.element = el("section", { class: "panel" }, el("h3", null, "Circuit of this step"), this.place);
  }

  show(frame, row) {
    if (row === null) {
      fill(this.place, el("p", { class: "pale" }, "No step follows."));
      return;
    }
    if (row.circuit === null) {
      const many = `${capital(row.label)} has ${row.operations.length} operations, too many for a picture.`;
      fill(this.place, el("p", { class: "pale" }, `${many} The listing shows their values.`));
      return;
    }
    const fresh = !this.drawings.has(row);
    if (fresh) {
      this.drawings.set(row, new CircuitDrawing(row.circuit, `Circuit of ${row.label}: ${row.condition}`));
    }
    const drawn = this.drawings.get(row);
    if (this.place.firstChild !== drawn.element) {
      fill(this.place, drawn.element);
    }
    if (fresh) {
      // as high as the highest so far: what stands below should not jump at every step
      requestAnimationFrame(() => (this.place.style.minHeight = `${this.place.offsetHeight}px`));
    }
    const { registers, outputs, next } = frame.step;
    const values = { before: registers, module: outputs, after: next };
    // what WRITE gives back is not a value of the run: its wires show what was written
    drawn.show(row.circuit.parts.map(({ kind, index, name }) => (name === "WRITE" && kind === "module" ? null : values[kind][index])));
  }
}
