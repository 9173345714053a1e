// Two programs side by side on one input, in lockstep.

import { counted, el, fill, grouped } from "./dom.js";
import { InputPanel } from "./inputs.js";
import { programOf, valuesOf, whole, writeLink } from "./link.js";
import { MachineStage } from "./machine.js";
import { ProgramPicker } from "./picker.js";
import { Player } from "./player.js";

const MOST_COMPARED = 20000; // steps that are searched for a difference
const MOST_NAMED = 8; // cells
const LINK_PAUSE = 250; // milliseconds

export class CompareView {
  constructor(app) {
    this.app = app;
    this.position = 0;
    this.jobs = 0; // runs so far: only the last one counts
    this.loads = 0; // the same of pairs of programs
    this.sides = ["program", "other"].map((key, index) => ({ key, index, place: el("div", { class: "compare-side" }) }));
    for (const side of this.sides) {
      const label = side.index === 0 ? "First program" : "Second program";
      side.picker = new ProgramPicker(app, (program) => this.pick(side, program), { label });
    }
    this.inputs = new InputPanel(app, (input) => this.run(input));
    this.inputs.onStale = (stale) => this.stage.classList.toggle("stale", stale);
    this.player = new Player((position) => this.seek(position));
    this.finding = el("div", { class: "finding", role: "status" });
    this.problem = el("div", { class: "problem", role: "alert", hidden: true });
    this.stage = el("div", { class: "stage" }, this.player.element, this.finding, el("div", { class: "compare" }, this.sides.map((side) => side.place)));
    const pickers = this.sides.map((side) => side.picker.element);
    this.element = el(
      "section",
      { class: "view machine-view", "aria-label": "Compare" },
      el("aside", { class: "input-side", "aria-label": "Programs and input" }, pickers, this.inputs.element),
      el(
        "div",
        { class: "main-side" },
        el("div", { class: "title-line" }, el("h2", null, "Two programs on one input")),
        this.problem,
        this.stage,
      ),
    );
  }

  async show(values) {
    const empty = Object.keys(values).length === 0;
    const wanted = JSON.stringify(this.app.firstProgram());
    const same = JSON.stringify(this.values) === JSON.stringify(this.app.last.input);
    if (empty && same && this.sides.some((side) => JSON.stringify(side.info.program) === wanted)) {
      return writeLink("compare", this.current(), true);
    }
    const first = programOf(values) ?? this.app.firstProgram();
    const second = programOf(values, "other") ?? this.partner(first);
    return this.load([first, second], empty ? this.app.last.input : values);
  }

  /** Another program for the same task, to begin with. */
  partner(program) {
    const { programs } = this.app.start;
    const task = programs.find(({ name }) => name === program.name)?.task ?? this.app.last.task;
    const other = programs.find((one) => one.task === task && one.name !== program.name) ?? programs[0];
    return { name: other.name };
  }

  async load(programs, values) {
    this.problem.hidden = true;
    this.loads += 1;
    const load = this.loads;
    let infos;
    try {
      infos = await Promise.all(programs.map((program) => this.app.program(program)));
    } catch (error) {
      if (load === this.loads) {
        this.app.fail(this.problem, error);
        this.problem.hidden = false;
      }
      return;
    }
    if (load !== this.loads) {
      return;
    }
    this.player.pause();
    this.jobs += 1; // a run of the programs before counts no more
    this.position = whole(values.step) ?? 0;
    this.sides.forEach((side, index) => {
      side.info = infos[index];
      side.stage = null;
      side.picker.set(side.info.program, side.info.title);
    });
    await this.inputs.begin(infos[0], values);
  }

  pick(side, program) {
    const programs = this.sides.map((one) => (one === side ? program : one.info?.program ?? this.app.firstProgram()));
    const { task, ...others } = this.sides.every((one) => one.info) ? this.current() : {};
    this.app.attempt(this.load(programs, side.index === 0 && task ? { size: others.size } : { ...others, task, step: 0 }));
  }

  async run(input) {
    this.values = input.values;
    this.app.remember(this.sides[0].info, input);
    this.jobs += 1;
    const job = this.jobs;
    for (const side of this.sides) {
      const source = this.app.api.source(side.info.program, input.memory, input.size, input.steps);
      side.stage ??= new MachineStage(side.info, source, { player: this.player, parts: ["registers", "listing"], heading: side.info.title });
      await side.stage.open(source, { expected: input.expected, position: this.position });
      if (job !== this.jobs) {
        return;
      }
      if (side.stage.element.parentNode !== side.place) {
        fill(side.place, side.stage.element);
      }
    }
    const total = Math.max(...this.sides.map((side) => side.stage.reader.total));
    await this.player.open(total, this.position);
    const found = await firstDifference(...this.sides.map((side) => side.stage.reader));
    if (job === this.jobs) {
      this.tell(found);
    }
  }

  async seek(position) {
    const stages = this.sides.map((side) => side.stage);
    if (stages.includes(null)) {
      return; // other programs are loading
    }
    await Promise.all(stages.map((stage) => stage.show(position)));
    if (stages.some((stage) => stage.frame === null)) {
      return; // it says why
    }
    const [a, b] = stages.map((stage) => stage.frame);
    const different = new Set(a.memory.map((_, cell) => cell).filter((cell) => a.memory[cell] !== b.memory[cell]));
    stages.forEach((stage) => stage.markDifferences(different));
    this.position = position;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (!this.element.hidden) {
        writeLink("compare", this.current(), true);
      }
    }, LINK_PAUSE);
  }

  /** Say where the runs part, and how they end. */
  tell(found) {
    const [a, b] = this.sides.map((side) => side.stage.reader);
    const cells = a.ending.memory.map((_, cell) => cell).filter((cell) => a.ending.memory[cell] !== b.ending.memory[cell]);
    const takes = `The first takes ${counted(a.total, "step")}, the second ${grouped(b.total)}.`;
    const lengths = a.total === b.total ? `Both take ${counted(a.total, "step")}.` : takes;
    const named = cells.slice(0, MOST_NAMED).join(", ") + (cells.length > MOST_NAMED ? ", …" : "");
    const some = cells.length === 1 ? `cell ${cells[0]} differs` : `${grouped(cells.length)} cells differ: ${named}`;
    const ends = cells.length === 0 ? "They end with the same memory." : `At the end ${some}.`;
    const parts = [el("p", null, el("strong", null, ends), ` ${lengths} ${this.verdict()}`)];
    if (found.cell === null) {
      const when = found.complete ? "after every step" : `in the first ${grouped(found.position)} steps`;
      parts.push(el("p", null, `Their memories are the same ${when}.`));
    } else {
      const [first, second] = found.values;
      const where = `cell ${found.cell} holds ${first} in the first run and ${second} in the second`;
      const words = `Their memories first differ after ${counted(found.position, "step")}: ${where}.`;
      parts.push(el("p", null, words, " ", el("button", { type: "button", onclick: () => this.player.go(found.position) }, "Go there")));
    }
    fill(this.finding, parts);
  }

  /** Which of the two are right, where it is known what is expected. */
  verdict() {
    const stages = this.sides.map((side) => side.stage);
    if (stages[0].expected === null) {
      return "";
    }
    const [first, second] = stages.map((stage) => stage.wrongCells(stage.reader.ending.memory).size === 0);
    if (first === second) {
      return first ? "Both are right in the output cells." : "Both are wrong in the output cells.";
    }
    return `Only the ${first ? "first" : "second"} is right in the output cells.`;
  }

  current() {
    const [first, second] = this.sides.map((side) => side.info.program);
    return { ...valuesOf(first), ...valuesOf(second, "other"), ...this.values, step: this.position || null };
  }

  hide() {
    this.player.pause();
    clearTimeout(this.timer);
  }

  handleKey(event) {
    return this.player.handleKey(event);
  }
}

/** The first position at which the memories differ, and a cell in which they do. */
async function firstDifference(a, b) {
  const memories = await Promise.all([a, b].map(async (reader) => (await reader.frame(0)).memory));
  const last = Math.max(a.total, b.total);
  const most = Math.min(last, MOST_COMPARED);
  for (let position = 1; position <= most; position += 1) {
    const written = new Set();
    for (const [index, reader] of [a, b].entries()) {
      for (const [pointer, value] of (await reader.step(position - 1))?.writes ?? []) {
        memories[index][pointer] = value;
        written.add(pointer);
      }
    }
    const cell = [...written].find((one) => memories[0][one] !== memories[1][one]);
    if (cell !== undefined) {
      return { position, cell, values: memories.map((memory) => memory[cell]), complete: true };
    }
  }
  return { position: most, cell: null, values: null, complete: most === last };
}
