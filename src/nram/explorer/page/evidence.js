// The evidence view: what is proven, what was only tested, what nobody looked at; and a new verification.

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
    this.close = null;
    this.picker = new ProgramPicker(app, (program) => this.load(program));
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
    await this.load(programOf(values) ?? this.app.firstProgram());
  }

  async load(program) {
    this.problem.hidden = true;
    let info;
    try {
      info = await this.app.program(program);
    } catch (error) {
      this.app.fail(this.problem, error);
      this.problem.hidden = false;
      return;
    }
    if (info.fingerprint !== this.info?.fingerprint) {
      this.forget();
    }
    this.info = info;
    this.app.remember(info.program);
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
    writeLink("evidence", valuesOf(info.program), true);
  }

  /** Leave the verification of another program. Its process ends by itself. */
  forget() {
    this.close?.();
    this.ended();
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
      this.close = this.app.api.events(`/api/jobs/${job}/events`, {
        note: ({ text }) => setText(this.note, text),
        result: (result) => this.tell(result),
        failed: ({ error }) => this.failed(error),
        end: () => this.finish(),
      });
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
    if (this.result.childElementCount === 0) {
      setText(this.note, "Stopped without a result.");
    }
  }

  failed(error) {
    this.ended();
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
    fill(this.result, head, open, el("div", { class: "thirds" }, lists));
  }

  showCounterexample({ memory, expected, cells, steps }) {
    const output = cells.map((cell) => `${cell}=${expected[cell]}`).join(" ");
    this.app.go("machine", { ...valuesOf(this.info.program), memory: memory.join(" "), expected: output, steps });
  }

  hide() {}
}

function group(name, title, sign, sentences, nothing) {
  const items = sentences.map((words) => el("li", null, el("span", { class: "sign", "aria-hidden": "true" }, sign), words));
  const content = items.length > 0 ? el("ul", { class: "sentences" }, items) : el("p", { class: "pale" }, nothing);
  return el("section", { class: `panel group-${name}` }, el("h3", null, title), content);
}
