// The exported page: the machine view of one program, in one file, without a server.

import { el, field, fill, setError } from "./dom.js";
import { Engine } from "./engine.js";
import { parseMemory } from "./inputs.js";
import { MachineStage } from "./machine.js";

const TYPED = "typed"; // the choice of the list that stands for a memory that was typed
const PAUSE_AFTER_KEY = 350; // milliseconds

class ExportedPage {
  /** `data` is what nram put into the page, `modules` the functions of the modules. */
  constructor(data, modules) {
    Object.assign(this, data);
    this.modules = modules;
    this.memory = el("textarea", { rows: 2, spellcheck: "false", class: "numbers", oninput: () => this.later() });
    const options = this.inputs.map((input, index) => el("option", { value: index }, labelOf(input, index)));
    this.choice = el("select", { onchange: () => this.choose() }, options, el("option", { value: TYPED }, "typed below"));
    const edit = { start: (cell) => this.input.input[cell] ?? 0, commit: (cell, word) => this.editCell(cell, word) };
    this.stage = new MachineStage(this.program, null, { edit, onMove: (frame) => this.remember(frame) });
  }

  async begin(page) {
    const proven = this.program.evidence.proven_for_every_length;
    const made = el("p", { class: "pale" }, `Made by nram ${this.version}. Left and right arrow step, Space plays.`);
    fill(
      page,
      el("h1", null, this.program.name),
      el("p", { class: "facts" }, el("span", { class: `tag ${proven ? "good" : ""}` }, proven ? "✓ proven for every length" : "not proven"), el("span", null, this.program.size)),
      el("div", { class: "export-inputs" }, field("Input", this.choice), field("Memory", this.memory)),
      this.stage.element,
      made,
    );
    document.addEventListener("keydown", (event) => this.handleKey(event));
    const [choice, step] = location.hash.slice(1).split(".").map(Number);
    this.choice.value = choice >= 0 && choice < this.inputs.length ? choice : 0;
    await this.choose(step > 0 ? step : 0);
  }

  choose(position = 0) {
    if (this.choice.value === TYPED) {
      return this.typed();
    }
    const input = this.inputs[Number(this.choice.value)];
    this.memory.value = input.input.join(" ");
    return this.run(input, position);
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.typed(), PAUSE_AFTER_KEY);
  }

  /** Run on the memory that was typed. A program that must be stopped has the limit of the last input. */
  typed() {
    this.choice.value = TYPED;
    let memory;
    try {
      memory = parseMemory(this.memory.value, null, this.limits.cells);
    } catch (error) {
      setError(this.memory, error.message);
      return null;
    }
    const steps = this.program.needs_limit ? this.input.steps : 64 * memory.length + 1024;
    return this.run({ input: memory, steps }, 0);
  }

  editCell(cell, word) {
    const memory = this.input.input.slice();
    memory[cell] = word;
    this.memory.value = memory.join(" ");
    this.typed();
  }

  run(input, position) {
    this.input = input;
    setError(this.memory, null);
    const source = new Engine(this.table, this.modules, input.input, Math.min(input.steps, this.limits.steps));
    return this.stage.open(source, { expected: input.output ? input : null, position });
  }

  /** The link says which input is shown, and where. */
  remember(frame) {
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => {
      if (this.choice.value !== TYPED) {
        history.replaceState(null, "", `#${this.choice.value}.${frame.position}`);
      }
    }, PAUSE_AFTER_KEY);
  }

  handleKey(event) {
    const used = event.target.closest("input, textarea, select, button, a, summary");
    const own = used?.matches("button") && event.key.startsWith("Arrow") && !used.matches(".value");
    if (event.ctrlKey || event.metaKey || event.altKey || (used !== null && !own)) {
      return;
    }
    this.stage.handleKey(event);
  }
}

function labelOf(input, index) {
  const size = input.complexity === undefined ? `${input.input.length} cells` : `n = ${input.complexity}`;
  return `${index + 1}: ${size}, T = ${input.steps}`;
}

const data = JSON.parse(document.getElementById("data").textContent);
new ExportedPage(data, MODULES).begin(document.getElementById("page"));
