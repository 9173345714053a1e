// The machine view: a program, an input, and the stage on which it runs.

import { el, fill, setText } from "./dom.js";
import { InputPanel } from "./inputs.js";
import { FORMS, programOf, valuesOf, whole, writeLink } from "./link.js";
import { MachineStage } from "./machine.js";
import { ProgramPicker } from "./picker.js";

const LINK_PAUSE = 250; // milliseconds: browsers limit how often a page may change its address

export class MachineView {
  constructor(app) {
    this.app = app;
    this.stage = null;
    this.position = 0;
    this.jobs = 0; // loads so far: only the last one counts
    this.picker = new ProgramPicker(app, (program) => this.pick(program));
    this.inputs = new InputPanel(app, (input) => this.run(input), "Values of the cells from cell 0 on. Click a cell of the tape to change it there.");
    this.inputs.onStale = (stale) => this.place.classList.toggle("stale", stale);
    const open = () => app.go("program", valuesOf(this.info?.program ?? app.firstProgram()));
    const edit = el("button", { type: "button", onclick: open }, "Show or edit");
    this.picker.element.querySelector(".buttons").append(edit);
    this.title = el("h2", null, "Machine");
    this.facts = el("p", { class: "facts" });
    this.problem = el("div", { class: "problem", role: "alert", hidden: true });
    this.place = el("div", { class: "stage-place" });
    const side = el("aside", { class: "input-side", "aria-label": "Program and input" }, this.picker.element, this.inputs.element);
    const main = el("div", { class: "main-side" }, el("div", { class: "title-line" }, this.title, this.facts), this.problem, this.place);
    this.element = el("section", { class: "view machine-view", "aria-label": "Machine" }, side, main);
  }

  /** Show what a link says; without one, what was shown before. */
  async show(values) {
    const program = programOf(values) ?? this.app.firstProgram();
    if (Object.keys(values).length > 0) {
      return this.load(program, values);
    }
    const { input } = this.app.last;
    const same = this.info !== undefined && JSON.stringify([this.info.program, this.values]) === JSON.stringify([program, input]);
    return this.load(program, same ? this.current() : input);
  }

  async load(program, values) {
    this.problem.hidden = true;
    this.position = whole(values.step) ?? 0;
    this.jobs += 1;
    const job = this.jobs;
    let info;
    try {
      info = await this.app.program(program);
    } catch (error) {
      if (job === this.jobs) {
        this.fail(error, program);
      }
      return;
    }
    if (job !== this.jobs) {
      return;
    }
    this.info = info;
    this.app.remember(info); // before its input is there: another view may be opened meanwhile
    this.picker.set(info.program, info.title);
    setText(this.title, info.title);
    fill(this.facts, ...factsOf(info));
    this.stage?.stop();
    this.stage = null;
    await this.inputs.begin(info, values);
    if (this.stage === null) {
      fill(this.place); // what was there is another program's
    }
  }

  fail(error, program) {
    this.stage?.stop();
    this.stage = null;
    this.info = undefined;
    fill(this.place); // what was there is another program's
    clearTimeout(this.timer);
    this.inputs.forget();
    this.picker.set(program, "text" in program ? "Text with problems" : program.name ?? program.run ?? "");
    setText(this.title, "Machine");
    fill(this.facts);
    this.app.fail(this.problem, error);
    if ("text" in program) {
      const open = () => this.app.go("program", valuesOf(program));
      this.problem.append(el("button", { type: "button", onclick: open }, "Mend the text"));
    }
    this.problem.hidden = false;
  }

  /** The user chose a program. An input of the same task stays. */
  pick(program) {
    const values = this.info ? this.current() : {};
    const task = this.info?.task;
    this.jobs += 1;
    const job = this.jobs;
    this.app.program(program).then(
      (info) => job === this.jobs && this.app.attempt(this.load(program, info.task === task ? { ...values, steps: null, step: 0 } : {})),
      (error) => job === this.jobs && this.fail(error, program),
    );
  }

  /** Run on this input. Called by the fields, and at the beginning. */
  async run(input) {
    const source = this.app.api.source(this.info.program, input.memory, input.size, input.steps);
    if (this.stage === null) {
      const edit = { start: (cell) => this.inputs.startOf(cell), commit: (cell, word) => this.inputs.editCell(cell, word) };
      this.stage = new MachineStage(this.info, source, { edit, onMove: (frame) => this.moved(frame) });
    }
    const { stage } = this;
    this.values = input.values;
    this.app.remember(this.info, input);
    await stage.open(source, { expected: input.expected, position: this.position });
    if (stage === this.stage && stage.element.parentNode !== this.place) {
      fill(this.place, stage.element);
    }
  }

  moved(frame) {
    this.position = frame.position;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (!this.element.hidden) {
        writeLink("machine", this.current(), true);
      }
    }, LINK_PAUSE);
  }

  /** The values of the link that restores this state. */
  current() {
    return { ...valuesOf(this.info.program), ...this.values, step: this.position || null };
  }

  hide() {
    this.stage?.stop();
    clearTimeout(this.timer);
  }

  handleKey(event) {
    if (event.key === "i") {
      event.preventDefault();
      this.inputs.memory.focus();
      return true;
    }
    return this.stage?.handleKey(event) ?? false;
  }
}

/** Short facts about a program, for the line under its title. */
export function factsOf(info) {
  const proven = info.evidence.proven_for_every_length;
  return [
    el("span", { class: `tag ${proven ? "good" : ""}` }, proven ? "✓ proven for every length" : "not proven"),
    el("span", null, info.origin),
    info.program.form ? el("span", { class: "tag" }, FORMS.find(([name]) => name === info.program.form)[1]) : null,
    el("span", null, info.size),
    info.limit === null ? null : el("span", null, `T(n) = ${info.limit}${info.needs_limit ? ", must be stopped there" : ""}`),
  ];
}
