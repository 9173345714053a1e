// The exported page: the machine view of one program, in one file, without a server.

import { el, field, fill, setError, setText } from "./dom.js";
import { Engine } from "./engine.js";
import { parseMemory, withCell } from "./inputs.js";
import { whole } from "./link.js";
import { MachineStage } from "./machine.js";

const TYPED = "typed"; // the choice of the list that stands for a memory that was typed
const PAUSE_AFTER_KEY = 350; // milliseconds
const PATIENCE = 300; // milliseconds of a run after which the page says that it takes long

class ExportedPage {
  /** `data` is what nram put into the page, `modules` the functions of the modules. */
  constructor(data, modules) {
    Object.assign(this, data);
    this.modules = modules;
    this.memory = el("textarea", { rows: 2, spellcheck: "false", class: "numbers", oninput: () => this.later() });
    const options = this.inputs.map((input, index) => el("option", { value: index }, labelOf(input, index)));
    this.choice = el("select", { onchange: () => this.attempt(this.choose()) }, options, el("option", { value: TYPED }, "typed below"));
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
    await this.attempt(this.follow(location.hash.slice(1)));
  }

  /** Show what the address says: "3.2" is the fourth input after two steps, "m=1,2,3&step=4" a memory that was typed. */
  async follow(words) {
    if (words.startsWith("m=")) {
      const values = Object.fromEntries(new URLSearchParams(words));
      this.memory.value = values.m.split(",").join(" ");
      this.input = { ...this.inputs[0], steps: whole(values.steps) ?? this.inputs[0].steps };
      await this.typed(whole(values.step) ?? 0);
      if (this.engine === undefined) {
        await this.instead();
      }
      return undefined;
    }
    const [choice, step] = words.split(".").map(whole);
    this.choice.value = choice !== null && choice < this.inputs.length ? choice : 0;
    return this.choose(step ?? 0);
  }

  /** The memory of the link cannot be used: the first input is run, and the field says what is wrong with the other. */
  async instead() {
    const typed = this.memory.value;
    this.choice.value = 0;
    await this.choose();
    this.memory.value = typed;
    this.choice.value = TYPED;
    await this.typed();
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
    this.timer = setTimeout(() => this.attempt(this.typed()), PAUSE_AFTER_KEY);
  }

  /** Run on the memory that was typed. A program that must be stopped has the limit of the last input. */
  typed(position = 0) {
    this.choice.value = TYPED;
    let memory;
    try {
      memory = parseMemory(this.memory.value, null, this.limits.cells);
    } catch (error) {
      setError(this.memory, error.message);
      this.stage.element.classList.add("stale");
      return null;
    }
    const steps = this.program.needs_limit ? this.input.steps : 64 * memory.length + 1024;
    return this.run({ input: memory, steps }, position);
  }

  editCell(cell, word) {
    try {
      this.memory.value = withCell(this.input.input, this.input.input.length, cell, word).join(" ");
    } catch (error) {
      setError(this.memory, error.message);
      return;
    }
    this.attempt(this.typed());
  }

  async run(input, position) {
    this.input = input;
    setError(this.memory, null);
    this.stage.element.classList.remove("stale");
    this.engine?.stop();
    const engine = new Engine(this.table, this.modules, input.input, Math.min(input.steps, this.limits.steps));
    this.engine = engine;
    const patience = setTimeout(() => setText(this.stage.words, "The run is being computed …"), PATIENCE);
    try {
      await this.stage.open(engine, { expected: input.output ? input : null, position });
    } catch (error) {
      if (engine === this.engine) {
        throw error;
      }
    } finally {
      clearTimeout(patience);
    }
  }

  /** Wait for work that a handler began, and tell what goes wrong. */
  async attempt(work) {
    try {
      await work;
    } catch (error) {
      setError(this.memory, error.message);
    }
  }

  /** The link says which input is shown, and where. */
  remember(frame) {
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => {
      const { input, steps } = this.input;
      const limit = this.program.needs_limit ? `&steps=${steps}` : "";
      const typed = this.choice.value === TYPED;
      history.replaceState(null, "", typed ? `#m=${input.join(",")}&step=${frame.position}${limit}` : `#${this.choice.value}.${frame.position}`);
    }, PAUSE_AFTER_KEY);
  }

  handleKey(event) {
    const used = event.target.closest("input, textarea, select, button, a, summary");
    const slider = used?.matches("[type=range]");
    const own = slider || (used?.matches("button") && event.key.startsWith("Arrow") && !used.matches(".value"));
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
