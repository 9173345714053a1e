// What a program runs on: a memory that is typed or sampled, its size, and a step limit.

import { counted, el, field, grouped, setError, setText } from "./dom.js";
import { whole } from "./link.js";

const FEWEST_CELLS = 3;
const PAUSE = 350; // milliseconds after a key before the input is tried

/** The numbers of a memory, however they are separated; an Error names the first word that is not one. */
export function parseMemory(text, size, most) {
  const words = text.split(/[\s,;[\]()]+/).filter((word) => word !== "");
  if (words.length === 0) {
    throw new Error("Type the memory: whole numbers with spaces between them, one for every cell.");
  }
  const cells = size ?? words.length;
  if (words.length > most || cells > most) {
    throw new Error(`This is more than ${grouped(most)} cells, the most that is shown here.`);
  }
  if (cells < FEWEST_CELLS) {
    throw new Error(`A memory has at least ${FEWEST_CELLS} cells.`);
  }
  if (words.length > cells) {
    throw new Error(`These are ${words.length} values for ${cells} cells: give more cells or fewer values.`);
  }
  return words.map((word, index) => {
    if (!/^[0-9]+$/.test(word)) {
      throw new Error(`Cell ${index}: “${word.slice(0, 20)}” is not a whole number from 0 up.`);
    }
    if (Number(word) >= cells) {
      throw new Error(`Cell ${index} holds ${word.slice(0, 20)}, but with ${cells} cells the values are 0 to ${cells - 1}.`);
    }
    return Number(word);
  });
}

/** The memory with another value in a cell; an Error says why the word cannot be its value. */
export function withCell(memory, size, cell, word) {
  const value = whole(word);
  const cells = Math.max(size, memory.length, cell + 1);
  if (value === null || value >= cells) {
    throw new Error(`“${word.slice(0, 20)}” is not a value for cell ${cell}: with ${cells} cells the values are 0 to ${cells - 1}.`);
  }
  return Array.from({ length: Math.max(memory.length, cell + 1) }, (_, index) => (index === cell ? value : memory[index] ?? 0));
}

function sampleWords({ task, steps, cells }) {
  return `Example of ${task}: T(n) = ${counted(steps, "step")}, ${counted(cells.length, "output cell")}.`;
}

function wordsOf({ output, cells }) {
  return cells.map((cell) => `${cell}=${output[cell]}`).join(" ");
}

/** "5=3 6=4": what cells 5 and 6 should hold at the end. */
function expectedOf(words) {
  const pairs = words.split(" ").map((word) => word.split("=").map(whole));
  const known = pairs.filter((pair) => pair.length === 2 && !pair.includes(null));
  return { output: Object.fromEntries(known), cells: known.map(([cell]) => cell) };
}

/**
 * The fields. `onInput(input)` gets {memory, size, steps, expected, values}: expected is null for a memory that was typed,
 * values are those that restore the input from a link.
 */
export class InputPanel {
  constructor(app, onInput, hint = "Values of the cells from cell 0 on.") {
    this.app = app;
    this.onInput = onInput;
    this.sampled = null; // the example of a task that the memory is, until it is edited
    this.limits = app.start.limits;
    this.info = null; // the program; none while the first one cannot be shown
    this.given = null; // what a link says about the output of the memory in it
    this.onStale = () => {}; // told whether what is shown is of an earlier input, because this one cannot be used
    this.jobs = 0;
    this.runs = 0;
    const typed = () => this.later();
    this.memory = el("textarea", { rows: 3, spellcheck: "false", autocomplete: "off", class: "numbers", oninput: typed });
    this.size = el("input", { type: "number", min: FEWEST_CELLS, oninput: typed, placeholder: "as typed" });
    this.steps = el("input", { type: "number", min: 0, oninput: typed, placeholder: "default" });
    this.tasks = el("select", { onchange: () => this.changeTask() }, app.start.tasks.map(({ name }) => el("option", { value: name }, name)));
    this.n = el("input", { type: "number", min: 0, value: 5 });
    this.seed = el("input", { type: "number", min: 0, value: 0 });
    this.note = el("p", { class: "hint sample-note" });
    const draw = (event) => {
      event.preventDefault();
      this.drawn();
    };
    const again = el("button", { type: "button", onclick: () => this.another() }, "Next seed");
    this.element = el(
      "div",
      { class: "input-panel" },
      field("Memory", this.memory, hint),
      el("div", { class: "pair" }, field("Cells", this.size), field("Step limit", this.steps)),
      el(
        "form",
        { class: "sample", onsubmit: draw },
        el("h2", { class: "minor" }, "Sample"),
        field("Task", this.tasks),
        el("div", { class: "pair" }, field("n", this.n), field("Seed", this.seed)),
        el("div", { class: "buttons" }, el("button", { type: "submit" }, "Sample"), again),
        this.note,
      ),
    );
  }

  /** Begin with a program and what a link says about its input. */
  async begin(info, values) {
    this.info = info;
    this.size.value = values.size ?? "";
    this.steps.value = values.steps ?? "";
    this.memory.placeholder = "";
    if (values.task && this.hasTask(values.task)) {
      this.choose(values.task, whole(values.n), whole(values.seed));
    } else if (info.task !== null && this.hasTask(info.task)) {
      this.choose(info.task, whole(values.n), whole(values.seed));
    }
    this.given = null;
    if (values.memory) {
      this.sampled = null;
      this.given = values.expected ? { ...expectedOf(values.expected), memory: values.memory } : null;
      this.memory.value = values.memory;
      return this.run();
    }
    if (values.task || this.hasTask(info.task)) {
      return this.drawn();
    }
    this.sampled = null;
    this.memory.value = "3 1 4 1 5 2 6 0";
    return this.run();
  }

  /** There is no program to run. */
  forget() {
    clearTimeout(this.timer);
    this.jobs += 1;
    this.info = null;
    [this.memory, this.size, this.steps, this.n, this.seed].forEach((control) => setError(control, null));
    setText(this.note, "");
    this.onStale(false);
  }

  hasTask(name) {
    return this.app.start.tasks.some((task) => task.name === name);
  }

  choose(task, n, seed) {
    this.tasks.value = task;
    const least = this.app.start.tasks.find(({ name }) => name === task).min_complexity;
    this.n.min = least;
    this.n.value = n ?? Math.max(least, 5);
    this.seed.value = seed ?? 0;
  }

  changeTask() {
    this.choose(this.tasks.value, null, Number(this.seed.value));
    this.drawn();
  }

  another() {
    this.seed.value = (whole(this.seed.value) ?? -1) + 1;
    this.drawn();
  }

  /** Draw an example of the task and run on it. */
  async drawn() {
    clearTimeout(this.timer);
    this.jobs += 1;
    const job = this.jobs;
    const [task, n, seed, size] = [this.tasks.value, whole(this.n.value), whole(this.seed.value), whole(this.size.value)];
    const [least, most] = [Number(this.n.min), this.app.start.limits.cells];
    const wrong = n === null || n < least || n > most;
    setError(this.n, wrong ? `A whole number, ${least} to ${grouped(most)}.` : null);
    setError(this.seed, seed === null ? "A whole number from 0 up." : null);
    if (wrong || seed === null || this.info === null) {
      return;
    }
    let sample;
    try {
      sample = await this.app.api.post("/api/sample", { task, complexity: n, seed, memory_size: size });
    } catch (error) {
      setError(this.n, error.message);
      return;
    }
    if (job !== this.jobs) {
      return;
    }
    this.given = null;
    this.sampled = { ...sample, task, seed, size };
    this.memory.value = sample.input.join(" ");
    if (this.info.needs_limit) {
      this.steps.value = sample.steps;
    }
    await this.run();
  }

  later() {
    clearTimeout(this.timer);
    this.jobs += 1;
    this.timer = setTimeout(() => {
      if (this.memory.value.trim() !== this.sampled?.input.join(" ")) {
        this.sampled = null;
      }
      if (this.memory.value.trim() !== this.given?.memory) {
        this.given = null;
      }
      this.run();
    }, PAUSE);
  }

  /** Change one cell of the input. A word that is no value for it is told, and changes nothing. */
  editCell(cell, word) {
    try {
      this.memory.value = withCell(this.last.memory, this.last.cells, cell, word).join(" ");
    } catch (error) {
      setError(this.memory, error.message);
      return;
    }
    this.sampled = null;
    this.given = null;
    this.run();
  }

  startOf(cell) {
    return this.last.memory[cell] ?? 0;
  }

  /** Check the fields and hand the input on. */
  async run() {
    const input = this.checked();
    this.onStale(input === null);
    if (input === null) {
      return;
    }
    this.last = { memory: input.memory, cells: input.size ?? input.memory.length };
    const typed = this.given === null ? "The memory was typed: no output is expected." : "The output that is expected belongs to this memory.";
    setText(this.note, this.sampled === null ? typed : sampleWords(this.sampled));
    this.runs += 1;
    const run = this.runs;
    try {
      await this.onInput(input);
    } catch (error) {
      if (run === this.runs) {
        this.onStale(true);
        setError(this.memory, error.message);
      }
    }
  }

  checked() {
    const { cells, steps: mostSteps } = this.limits;
    const [size, steps] = [whole(this.size.value), whole(this.steps.value)];
    const wrongSize = this.size.value !== "" && (size === null || size < FEWEST_CELLS || size > cells);
    const wrongSteps = this.steps.value !== "" && (steps === null || steps > mostSteps);
    setError(this.size, wrongSize ? `${FEWEST_CELLS} to ${grouped(cells)} cells.` : null);
    const needed = this.info?.needs_limit && this.steps.value === "" ? "This program must be stopped at T(n): give the number of steps." : null;
    setError(this.steps, wrongSteps ? `0 to ${grouped(mostSteps)} steps.` : needed);
    setError(this.memory, null);
    if (this.info === null || wrongSize || wrongSteps || needed !== null) {
      return null;
    }
    let memory;
    try {
      memory = parseMemory(this.memory.value, size, cells);
    } catch (error) {
      setError(this.memory, error.message);
      return null;
    }
    const { sampled, given } = this;
    const expected = sampled === null ? given : { output: sampled.output, cells: sampled.cells };
    // with another number of cells the same seed would give another sample
    const again = sampled !== null && sampled.size === size;
    const origin = again
      ? { task: sampled.task, n: sampled.complexity, seed: sampled.seed }
      : { memory: memory.join(" "), expected: expected && wordsOf(expected) };
    return { memory, size, steps, expected, values: { ...origin, size, steps } };
  }
}
