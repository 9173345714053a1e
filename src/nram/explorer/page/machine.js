// All that shows one run of a program: player, tape, registers, circuit, listing. It needs no server.

import { counted, el, grouped, setAttribute, setText } from "./dom.js";
import { CircuitPanel, ListingPanel, RegistersPanel } from "./panels.js";
import { PathsPanel } from "./paths.js";
import { Player, RunReader } from "./player.js";
import { Tape } from "./tape.js";

/**
 * `info` is a program as POST /api/program gives it, `source` a run of it (see player.js). Options:
 *   player     a Player that several stages share; without it the stage has its own
 *   parts      which of "registers", "circuit", "listing" and "paths" to show; all unless given
 *   edit       see tape.js; null if the input cannot be changed here
 *   heading    words above the tape
 *   onMove     called with every frame that is shown
 */
export class MachineStage {
  constructor(info, source, options = {}) {
    this.info = info;
    this.source = source;
    this.options = options;
    this.expected = null;
    this.differs = new Set();
    this.frame = null;
    this.rows = new Map(info.rows.map((row) => [`${row.state}:${row.row}`, row]));
    this.player = options.player ?? new Player((position) => this.show(position));
    this.words = el("p", { class: "step-words", "aria-live": "polite" });
    this.tape = new Tape(options.edit ?? null);
    const parts = options.parts ?? ["registers", "circuit", "listing", "paths"];
    const kinds = { registers: RegistersPanel, circuit: CircuitPanel, listing: ListingPanel };
    this.paths = parts.includes("paths") ? new PathsPanel((position) => this.player.go(position)) : null;
    this.panels = parts.filter((name) => name in kinds).map((name) => [name, new kinds[name](info)]);
    const side = (...names) => {
      const shown = this.panels.filter(([name]) => names.includes(name));
      return el("div", { class: "side" }, shown.map(([, panel]) => panel.element));
    };
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.element = el(
      "div",
      { class: "stage" },
      options.heading ? el("h3", { class: "stage-heading" }, options.heading) : null,
      options.player ? null : this.player.element,
      this.words,
      this.problem,
      el("div", { class: "panel tape-panel" }, this.tape.element, legend()),
      el("div", { class: "below" }, side("registers", "circuit"), parts.includes("listing") ? side("listing") : null),
      this.paths?.element,
    );
    if (!options.player) {
      this.player.onPlaying = (on) => this.words.setAttribute("aria-live", on ? "off" : "polite");
    }
  }

  /** Show a run from this position on. `expected` has the output and the output cells of a task's example, if it is one. */
  async open(source = this.source, { expected = null, position = 0 } = {}) {
    const reader = new RunReader(source);
    this.opening = reader;
    await reader.open();
    if (this.opening !== reader) {
      return; // a later run was asked for in the meantime
    }
    this.source = source;
    this.reader = reader;
    this.expected = expected;
    await (this.options.player ? this.show(position) : this.player.open(reader.total, position));
  }

  /** Show a position of the run, unless another run was opened in the meantime. */
  async show(position) {
    const reader = this.reader;
    if (reader === undefined) {
      return; // no run was opened yet
    }
    try {
      const frame = await reader.frame(Math.min(position, reader.total));
      if (reader === this.reader) {
        this.problem.hidden = true;
        this.render(frame);
      }
    } catch (error) {
      this.player.pause();
      setText(this.problem, error.message);
      this.problem.hidden = false;
    }
  }

  render(frame) {
    this.frame = frame;
    const row = frame.step === null ? null : this.rows.get(`${frame.step.state}:${frame.step.row}`);
    const { reads, writes } = accessesOf(frame.step, row);
    const ended = frame.step === null;
    const output = new Set(this.expected?.cells ?? []);
    const wrong = ended ? this.wrongCells(frame.memory) : new Map();
    this.tape.show({ memory: frame.memory, reads, writes, changed: frame.changed, output, wrong, differs: this.differs });
    setText(this.words, ended ? this.endWords(frame, wrong) : stepWords(this.info, frame, row));
    setAttribute(this.words, "data-outcome", ended && this.expected !== null ? (wrong.size > 0 ? "wrong" : "right") : null);
    for (const [, panel] of this.panels) {
      panel.show(frame, row);
    }
    this.paths?.show(frame);
    this.options.onMove?.(frame);
  }

  wrongCells(memory) {
    const cells = this.expected?.cells ?? [];
    return new Map(cells.filter((cell) => memory[cell] !== this.expected.output[cell]).map((cell) => [cell, this.expected.output[cell]]));
  }

  endWords(frame, wrong) {
    const end = `${frame.halted ? "The program halted after" : "Stopped at the limit of"} ${counted(frame.total, "step")}.`;
    const cells = this.expected?.cells.length ?? 0;
    if (cells === 0) {
      return `End. ${end}`;
    }
    if (wrong.size === 0) {
      return `End. ${end} Right: ${cells === 1 ? "the output cell is" : `all ${cells} output cells are`} as expected.`;
    }
    const [cell, value] = [...wrong][0];
    return `End. ${end} Wrong in ${wrong.size} of ${counted(cells, "output cell")}: cell ${cell} holds ${frame.memory[cell]}, not ${value}.`;
  }

  /** Mark cells in which this run differs from another one. */
  markDifferences(cells) {
    this.differs = cells;
    this.render(this.frame);
  }

  stop() {
    this.player.pause();
  }

  handleKey(event) {
    return this.player.handleKey(event);
  }
}

/** Where a step reads and writes, with the names by which the program knows the pointers. */
function accessesOf(step, row) {
  const found = { reads: [], writes: [] };
  if (step === null) {
    return found;
  }
  const names = { READ: [], WRITE: [] };
  for (const { module, words } of row.operations) {
    names[module]?.push(/\(([^,)]*)/.exec(words)[1]);
  }
  found.reads = step.reads.map(([pointer, value], index) => ({ pointer, value, name: names.READ[index] }));
  found.writes = step.writes.map(([pointer, value], index) => ({ pointer, value, name: names.WRITE[index] }));
  return found;
}

/** "Step 4 of 9: row 2, reads cell 5 = 7, writes 7 to cell 9, r1 becomes 3" */
function stepWords(info, frame, row) {
  const { position, total, step } = frame;
  const news = info.registers.map((name, index) => [name, step.registers[index], step.next[index]]).filter(([, now, then]) => now !== then);
  const parts = [
    ...step.reads.map(([pointer, value]) => `reads cell ${pointer} = ${value}`),
    ...step.writes.map(([pointer, value]) => `writes ${value} to cell ${pointer}`),
    ...news.map(([name, , then]) => `${name} becomes ${then}`),
    ...(step.halt ? ["halts"] : []),
  ];
  return `Step ${grouped(position + 1)} of ${grouped(total)}: ${[row.label, ...(parts.length > 0 ? parts : ["changes nothing"])].join(", ")}.`;
}

function legend() {
  const entry = (kind, sign, words) => el("li", null, el("span", { class: `key ${kind}`, "aria-hidden": "true" }, sign), words);
  return el(
    "ul",
    { class: "legend", "aria-label": "Marks" },
    entry("mark read", "R", "is read in this step"),
    entry("mark written", "W", "is written in this step"),
    entry("key-changed", "•", "changed by the last step"),
    entry("key-output", "", "output cell"),
    entry("key-wrong", "≠", "wrong: not the expected value"),
  );
}
