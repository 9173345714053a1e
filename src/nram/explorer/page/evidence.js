// The evidence view: what is proven, what was only tested, what nobody looked at; and a new verification.

import { download } from "./api.js";
import { el, field, fill, setError, setText, table } from "./dom.js";
import { programOf, valuesOf, whole, writeLink } from "./link.js";
import { capital } from "./panels.js";
import { ProgramPicker } from "./picker.js";
import { factsOf } from "./workbench.js";

const GROUPS = [
  ["proven", "Proven", "✓", "Nothing is proven."],
  ["tested", "Tested", "≈", "Nothing was tested on random inputs."],
  ["open", "Not looked at", "?", "Nothing is left open."],
];

export class EvidenceView {
  constructor(app) {
    this.app = app;
    this.jobs = 0; // loads so far: only the last one counts
    this.job = null; // the verification that is shown
    this.done = false; // whether it has ended
    this.close = () => {};
    this.picker = new ProgramPicker(app, (program) => app.attempt(this.load(program)));
    this.title = el("h2", null, "Evidence");
    this.facts = el("p", { class: "facts" });
    this.problem = el("div", { class: "problem", role: "alert", hidden: true });
    this.groups = el("div", { class: "thirds" });
    this.table = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of the evidence" });
    this.tasks = el("select", null, app.start.tasks.map(({ name }) => el("option", { value: name }, name)));
    this.budget = el("input", { type: "number", min: 1, max: 150, value: 10 });
    this.start = el("button", { type: "submit", class: "primary" }, "Verify now");
    this.stop = el("button", { type: "button", hidden: true, onclick: () => this.stopJob() }, "Stop");
    this.note = el("p", { class: "hint", role: "status" });
    this.result = el("div", { class: "verified" });
    const form = el(
      "form",
      { class: "verify", onsubmit: (event) => this.verify(event) },
      el("p", { class: "pale" }, "Run the checks again on this machine: all small inputs, proofs, random large inputs."),
      el(
        "div",
        { class: "verify-fields" },
        field("Task", this.tasks),
        field("Seconds for each part", this.budget),
        el("div", { class: "buttons" }, this.start, this.stop),
      ),
      this.note,
    );
    this.element = el(
      "section",
      { class: "view evidence-view", "aria-label": "Evidence" },
      el("div", { class: "top-line" }, el("div", { class: "title-line" }, this.title, this.facts), this.picker.element),
      this.problem,
      this.groups,
      el("section", { class: "panel" }, el("h3", null, "Verify now"), form, this.result),
      el("section", { class: "panel" }, el("h3", null, "All records"), this.table),
    );
  }

  async show(values) {
    // beside a program, `job` is a verification of it; alone, it is the job that made the program
    const { job, ...others } = values;
    const program = programOf(others);
    await this.load(program ?? programOf(values) ?? this.app.firstProgram(), program === null ? null : job ?? null);
  }

  async load(program, verification = null) {
    this.jobs += 1;
    const load = this.jobs;
    this.problem.hidden = true;
    let info;
    try {
      info = await this.app.program(program);
    } catch (error) {
      if (load === this.jobs) {
        this.app.fail(this.problem, error);
        this.problem.hidden = false;
      }
      return;
    }
    if (load !== this.jobs) {
      return;
    }
    if (info.fingerprint !== this.info?.fingerprint) {
      this.forget();
    }
    this.info = info;
    this.app.remember(info);
    this.picker.set(info.program, info.title);
    setText(this.title, info.title);
    fill(this.facts, ...factsOf(info));
    const { evidence } = info;
    fill(this.groups, GROUPS.map(([name, title, sign, nothing]) => group(name, title, sign, evidence[name], nothing)));
    const nothing = el("p", { class: "pale" }, "There are no records: this program was not verified.");
    fill(this.table, evidence.rows.length > 0 ? table(evidence.columns, evidence.rows) : nothing);
    if (info.task !== null) {
      this.tasks.value = info.task;
    }
    if (verification !== null && verification !== this.job) {
      this.forget();
      this.job = verification;
    }
    this.link();
    if (this.job !== null && !this.done) {
      this.follow();
    }
  }

  link() {
    const { program } = this.info;
    // a link has one job: the program of another one is in it as text
    const named = this.job !== null && "job" in program ? { text: this.info.text } : program;
    writeLink("evidence", { ...valuesOf(named), job: this.job ?? program.job }, true);
  }

  /** Listen to a verification. A server tells its events from the beginning. */
  follow() {
    this.close();
    this.start.disabled = true;
    this.stop.hidden = false;
    this.close = this.app.api.events(`/api/jobs/${encodeURIComponent(this.job)}/events`, {
      begin: ({ kind }) => kind === "verify" || this.failed("The job of this link is no verification."),
      note: ({ text }) => setText(this.note, text),
      result: (result) => this.tell(result),
      failed: ({ error }) => this.failed(error),
      end: () => this.finish(),
    });
  }

  /** Leave the verification of another program. Its process ends by itself. */
  forget() {
    this.close();
    this.ended();
    this.job = null;
    this.done = false;
    fill(this.result);
    setText(this.note, "");
  }

  ended() {
    this.start.disabled = false;
    this.stop.hidden = true;
  }

  async verify(event) {
    event.preventDefault();
    const budget = whole(this.budget.value);
    setError(this.budget, budget === null || budget < 1 || budget > 150 ? "1 to 150 seconds." : null);
    if (this.budget.hasAttribute("aria-invalid")) {
      return;
    }
    this.forget();
    this.start.disabled = true;
    this.stop.hidden = false;
    setText(this.note, "The checks begin …");
    try {
      const { job } = await this.app.api.post("/api/verify", { program: this.info.program, task: this.tasks.value, budget });
      this.job = job;
      if (!this.element.hidden) {
        this.link();
        this.follow();
      }
    } catch (error) {
      this.failed(error.message);
    }
  }

  async stopJob() {
    try {
      await this.app.api.post(`/api/jobs/${this.job}/stop`, {});
    } catch (error) {
      this.failed(error.message);
    }
  }

  finish() {
    this.ended();
    this.done = true;
    if (this.result.childElementCount === 0) {
      setText(this.note, "Stopped without a result.");
    }
  }

  failed(error) {
    this.close();
    this.ended();
    this.done = true;
    setText(this.note, "");
    fill(this.result, el("p", { class: "problem", role: "alert" }, error));
  }

  tell(result) {
    this.ended();
    setText(this.note, `Done in ${result.seconds} seconds.`);
    const { counterexample } = result;
    const words = result.right ? `✓ ${capital(result.verdict)}.` : `✗ Wrong. ${counterexample?.words ?? result.verdict}`;
    const head = el("p", { class: `verdict ${result.right ? "good" : "bad"}` }, words);
    const watch = () => this.showCounterexample(counterexample);
    const open = counterexample && el("button", { type: "button", class: "primary", onclick: watch }, "Watch it go wrong");
    const parts = [["proven", "Proven", "✓"], ["tested", "Tested", "≈"], ["undecided", "Not decided", "?"]];
    const lists = parts.filter(([name]) => result[name].length > 0).map(([name, title, sign]) => group(name, title, sign, result[name], ""));
    const save = () => download({ name: `${this.info.name}.nram`, type: "text/plain", content: result.program });
    const keep = result.program && el("button", { type: "button", onclick: save }, "Save with this evidence");
    fill(this.result, head, el("div", { class: "buttons" }, open, keep), el("div", { class: "thirds" }, lists));
  }

  showCounterexample({ memory, expected, cells, steps }) {
    const output = cells.map((cell) => `${cell}=${expected[cell]}`).join(" ");
    this.app.go("machine", { ...valuesOf(this.info.program), memory: memory.join(" "), expected: output, steps });
  }

  /** The verification goes on; its events are told again when the view is shown again. */
  hide() {
    this.jobs += 1;
    this.close();
  }
}

function group(name, title, sign, sentences, nothing) {
  const items = sentences.map((words) => el("li", null, el("span", { class: "sign", "aria-hidden": "true" }, sign), words));
  const content = items.length > 0 ? el("ul", { class: "sentences" }, items) : el("p", { class: "pale" }, nothing);
  return el("section", { class: `panel group-${name}` }, el("h3", null, title), content);
}
