// The network view: the distributions of a trained network's machine, with the hard program beside them.

import { counted, el, fill, setText } from "./dom.js";
import { InputPanel } from "./inputs.js";
import { programOf, valuesOf, whole, writeLink } from "./link.js";
import { MachineStage } from "./machine.js";
import { ProgramPicker } from "./picker.js";
import { Player } from "./player.js";
import { SoftRun, drawHeat, haltingChart, heatWidth, wireRow } from "./soft.js";

const LINK_PAUSE = 250; // milliseconds
const PADDING = 34; // pixels of a panel beside its content
const GAP = 15; // pixels between panels
const HALTING = 290; // pixels that the panel on halting needs
const NARROWEST = 16; // pixels of a column of the tape that makes room for the other panels
const DECIDED = 250; // of 255: a wire with such a weight is as good as hard

export class NetworkView {
  constructor(app) {
    this.app = app;
    this.position = 0;
    this.jobs = 0; // runs so far: only the last one counts
    this.loads = 0; // the same of networks
    this.picker = new ProgramPicker(app, (program) => this.pick(program), { label: "Network", filter: (program) => program.network, files: false });
    this.inputs = new InputPanel(app, (input) => this.run(input));
    this.inputs.onStale = (stale) => {
      this.stage.classList.toggle("stale", stale);
      if (this.stage.hidden) {
        this.wait(stale ? "The network cannot run on this input: the fields say why." : "");
      }
    };
    this.player = new Player((position) => this.seek(position));
    this.title = el("h2", null, "Network");
    this.facts = el("p", { class: "facts" });
    this.problem = el("div", { class: "problem", role: "alert", hidden: true });
    this.compiled = new Set(); // networks with sizes of the memory
    this.waiting = el("p", { class: "waiting-words", role: "status", hidden: true });
    this.words = el("p", { class: "step-words", "aria-live": "polite" });
    this.player.onPlaying = (on) => this.words.setAttribute("aria-live", on ? "off" : "polite");
    this.tape = this.heatPanel("Soft tape", "Columns are cells, with the probability of every value. A square marks the value of the hard program.");
    this.registers = this.heatPanel("Soft registers", "");
    this.halting = el("div", { class: "halting" });
    this.wires = el("ul", { class: "wires" });
    const halting = el("section", { class: "panel grows" }, el("h3", null, "Halting"), this.halting);
    this.row = el("div", { class: "soft-row" }, this.tape.element, this.registers.element, halting);
    this.undecided = el("input", { type: "checkbox", id: "undecided", onchange: () => this.showWires() });
    this.hard = el("div", { class: "hard-place" });
    this.stage = el(
      "div",
      { class: "stage", hidden: true },
      this.player.element,
      this.words,
      this.row,
      el("section", { class: "panel" }, el("h3", null, "The program that was extracted from it"), this.hard),
      el(
        "section",
        { class: "panel" },
        el("h3", null, "Wires by weight"),
        el("p", { class: "check" }, this.undecided, el("label", { for: "undecided" }, "Only wires that are not decided in this step")),
        this.wires,
      ),
    );
    this.side = el("aside", { class: "input-side", "aria-label": "Network and input" }, this.picker.element, this.inputs.element);
    this.element = el(
      "section",
      { class: "view network-view", "aria-label": "Network" },
      this.side,
      el("div", { class: "main-side" }, el("div", { class: "title-line" }, this.title, this.facts), this.problem, this.waiting, this.stage),
    );
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.row);
  }

  heatPanel(title, hint) {
    const canvas = el("canvas", { role: "img", "aria-label": title });
    const place = el("div", { class: "heat" }, canvas);
    const under = el("p", { class: "hint readout" }, hint);
    canvas.addEventListener("pointermove", (event) => setText(under, this.readout(canvas, event) ?? hint));
    canvas.addEventListener("pointerleave", () => setText(under, hint));
    return { canvas, place, element: el("section", { class: "panel" }, el("h3", null, title), place, under) };
  }

  async show(values) {
    this.side.hidden = !this.app.start.programs.some((program) => program.network) && !values.run;
    if (this.side.hidden) {
      this.fail(new Error("Networks need the training library: install it with pip install 'nram[train]'."));
      return;
    }
    const empty = Object.keys(values).length === 0;
    const network = programOf(values) ?? this.firstNetwork();
    const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
    if (empty && this.values && same(network, this.network) && same(this.values, this.app.last.input)) {
      writeLink("network", this.current(), true);
      return;
    }
    await this.load(network, empty ? null : values);
  }

  /** The network of the program that was shown last, or one for its task. */
  firstNetwork() {
    const { program, task, network } = this.app.last;
    if (network) {
      const { form, ...base } = program;
      return base;
    }
    const known = this.app.start.programs.filter((one) => one.network);
    const found = known.find((one) => one.task === task) ?? known.find(({ name }) => name === "copy@trained") ?? known[0];
    return { name: found.name };
  }

  /** The last input, if it is one for this network; without it, an example is drawn. */
  lastInput() {
    const { input, task, cells } = this.app.last;
    const { most } = this.about;
    const fits = cells <= most.cells && (whole(input.steps) ?? 0) <= most.steps;
    return fits && task === this.about.task && (input.task ?? task) === task ? input : {};
  }

  fail(error) {
    this.app.fail(this.problem, error);
    this.problem.hidden = false;
    this.clear();
  }

  /** Show nothing: what was there is another network's. */
  clear() {
    this.player.pause();
    this.soft = null;
    this.stage.hidden = true;
    this.wait("");
  }

  /** Say what is being waited for. */
  wait(words) {
    setText(this.waiting, words);
    this.waiting.hidden = words === "";
  }

  async load(network, values) {
    this.problem.hidden = true;
    this.position = whole(values?.step) ?? 0;
    this.values = null;
    if (JSON.stringify(network) !== JSON.stringify(this.network)) {
      this.clear();
      setText(this.title, "Network");
    }
    setText(this.facts, "The network is loading …");
    this.loads += 1;
    const load = this.loads;
    let [about, info] = [null, null];
    try {
      about = await this.app.api.post("/api/network", { network });
      info = await this.app.program(about.network);
    } catch (error) {
      if (load === this.loads) {
        setText(this.facts, "");
        this.fail(error);
      }
      return;
    }
    if (load !== this.loads) {
      return;
    }
    this.player.pause();
    this.jobs += 1; // a run of the network before counts no more
    this.stage.classList.remove("waiting");
    Object.assign(this, { about, info, network: about.network });
    this.picker.set(about.network, about.title);
    setText(this.title, about.title);
    const facts = [
      about.task,
      `${about.controller}, ${counted(about.parameters, "parameter")}`,
      counted(about.registers, "register"),
      counted(about.modules.length, "module"),
      `trained up to n = ${about.trained_up_to}`,
    ];
    fill(this.facts, facts.map((words) => el("span", null, words)));
    this.inputs.limits = about.most;
    this.hardStage = new MachineStage(this.info, null, { player: this.player, parts: ["registers"] });
    fill(this.hard, this.hardStage.element);
    await this.inputs.begin(this.info, values ?? this.lastInput());
  }

  pick(network) {
    this.app.attempt(this.load(network, {}));
  }

  async run(input) {
    this.jobs += 1;
    const job = this.jobs;
    const source = this.app.api.source(this.info.program, input.memory, input.size, input.steps);
    const { hardStage, network, about } = this;
    this.app.remember(this.info, input);
    const shape = JSON.stringify([network, input.size ?? input.memory.length]);
    this.wait(this.compiled.has(shape) ? "" : "The network is being compiled for this number of cells …");
    this.stage.classList.add("waiting");
    try {
      await hardStage.open(source, { expected: input.expected, position: 0 });
      if (job !== this.jobs) {
        return;
      }
      // a few steps more than the program takes: what the network does after it should have halted is worth seeing
      const steps = input.steps ?? hardStage.reader.total + 2;
      const most = Math.max(1, Math.min(steps, about.most.steps));
      const answer = await this.app.api.post("/api/soft", { network, memory: input.memory, memory_size: input.size, max_steps: most });
      if (job !== this.jobs) {
        return;
      }
      this.soft = new SoftRun(answer, about);
      this.compiled.add(shape);
    } finally {
      if (job === this.jobs) {
        this.stage.classList.remove("waiting");
        this.wait("");
      }
    }
    this.values = input.values;
    this.stage.hidden = false;
    this.problem.hidden = true;
    await this.player.open(this.soft.steps, this.position);
  }

  async seek(position) {
    await this.hardStage.show(position);
    if (this.hardStage.frame === null) {
      return; // it says why
    }
    this.position = position;
    this.draw();
    this.showWires();
    fill(this.halting, haltingChart(this.soft, position));
    setText(this.words, this.soft.words(position, this.hardStage.frame.memory));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (!this.element.hidden) {
        writeLink("network", this.current(), true);
      }
    }, LINK_PAUSE);
  }

  draw() {
    if (!this.soft || this.element.hidden || this.stage.hidden || !this.hardStage.frame) {
      return;
    }
    const { soft, position } = this;
    const columns = Array.from({ length: soft.size }, (_, cell) => String(cell));
    const names = Array.from({ length: soft.registers }, (_, index) => `r${index + 1}`);
    const room = this.row.clientWidth - PADDING;
    // all three in a line, if the columns of the tape stay wide enough for it
    const others = heatWidth(room, soft.registers) + PADDING + HALTING + 2 * GAP;
    const beside = room - others;
    const width = beside >= NARROWEST * soft.size && heatWidth(beside, soft.size) <= beside ? beside : room;
    const tallest = drawHeat(this.tape.canvas, width, soft.tapeAt(position), columns, { marked: this.hardStage.frame.memory });
    drawHeat(this.registers.canvas, room, soft.registersAt(position), names, { tallest });
    this.tape.canvas.setAttribute("aria-label", `Likeliest values of the cells: ${soft.best.memory[position].join(" ")}`);
    this.registers.canvas.setAttribute("aria-label", `Likeliest values of the registers: ${soft.best.registers[position].join(" ")}`);
  }

  /** What is under the pointer, in words. */
  readout(canvas, event) {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const heat = canvas === this.tape.canvas ? this.soft.tapeAt(this.position) : this.soft.registersAt(this.position);
    const found = canvas.place?.((event.clientX - left) / width, (event.clientY - top) / height);
    if (!found) {
      return null;
    }
    const weight = heat[found.column * this.soft.size + found.value] / 255;
    const name = canvas === this.tape.canvas ? `cell ${found.column}` : `r${found.column + 1}`;
    return `${name} is ${found.value} with probability ${weight.toFixed(2)}`;
  }

  showWires() {
    const { soft, position } = this;
    if (position === soft.steps) {
      fill(this.wires, el("li", { class: "pale" }, "No step follows."));
      return;
    }
    const rows = this.about.wires.map((name, wire) => ({ name, choices: soft.choices(position, wire) }));
    const shown = this.undecided.checked ? rows.filter(({ choices }) => choices[0].weight < DECIDED) : rows;
    fill(this.wires, shown.length > 0 ? shown.map(wireRow) : el("li", { class: "pale" }, "Every wire is decided in this step."));
  }

  current() {
    return { ...valuesOf(this.network), ...this.values, step: this.position || null };
  }

  hide() {
    this.player.pause();
    clearTimeout(this.timer);
  }

  handleKey(event) {
    return this.soft ? this.player.handleKey(event) : false;
  }
}
