// The program view: its text, which can be edited, its circuits, its table, where it comes from, and files of it.

import { download } from "./api.js";
import { el, field, fill, setText, table } from "./dom.js";
import { CodeEditor } from "./editor.js";
import { FORMS, programOf, valuesOf, writeLink } from "./link.js";
import { ProgramPicker } from "./picker.js";
import { drawing } from "./shapes.js";
import { factsOf } from "./workbench.js";

const PAUSE = 400; // milliseconds after a key before the text is checked
const FILES = [["text", "Text"], ["json", "JSON"], ["c", "C"], ["python", "Python"], ["svg", "SVG"]];

export class ProgramView {
  constructor(app) {
    this.app = app;
    this.jobs = 0;
    this.origin = null; // the program as it was opened, to which "undo" goes back
    this.changed = false;
    this.pending = false; // whether the last change is not checked yet
    this.picker = new ProgramPicker(app, (program) => app.attempt(this.load(program)));
    this.form = el("select", { onchange: () => app.attempt(this.changeForm()) }, FORMS.map(([name, words]) => el("option", { value: name }, words)));
    this.formField = el("div", { class: "form-field" }, field("Form of the network's program", this.form));
    this.title = el("h2", null, "Program");
    this.facts = el("p", { class: "facts" });
    this.problem = el("div", { class: "problem", role: "alert", hidden: true });
    this.editor = new CodeEditor("Text of the program", (text) => this.edited(text));
    this.runButton = el("button", { type: "button", class: "primary", onclick: () => this.go("machine") }, "Run it");
    this.reset = el("button", { type: "button", onclick: () => app.attempt(this.load(this.origin)) }, "Undo all changes");
    this.state = el("p", { class: "hint", role: "status" });
    this.circuits = el("div", { class: "circuits" });
    this.table = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of the program" });
    this.card = el("dl", { class: "card" });
    const files = FILES.map(([form, name]) => el("button", { type: "button", "data-form": form, onclick: () => this.save(form) }, name));
    const evidence = el("button", { type: "button", onclick: () => this.go("evidence") }, "Evidence");
    const buttons = el("div", { class: "buttons" }, this.runButton, evidence, this.reset, this.state);
    this.element = el(
      "section",
      { class: "view program-view", "aria-label": "Program" },
      el("div", { class: "top-line" }, el("div", { class: "title-line" }, this.title, this.facts), this.formField, this.picker.element),
      this.problem,
      el(
        "div",
        { class: "halves" },
        el("section", { class: "panel" }, el("h3", null, "Text"), this.editor.element, buttons),
        el("section", { class: "panel" }, el("h3", null, "Circuits"), this.circuits),
      ),
      el("section", { class: "panel" }, el("h3", null, "Table"), this.table),
      el("section", { class: "panel" }, el("h3", null, "Where it comes from"), this.card),
      el("section", { class: "panel" }, el("h3", null, "Download as"), el("div", { class: "buttons files" }, files)),
    );
  }

  async show(values) {
    await this.load(programOf(values) ?? this.app.firstProgram());
  }

  async load(program) {
    this.jobs += 1;
    const job = this.jobs;
    clearTimeout(this.timer);
    this.problem.hidden = true;
    let [info, problem] = [null, null];
    try {
      info = await this.app.program(program);
    } catch (error) {
      problem = error;
    }
    if (job !== this.jobs) {
      return;
    }
    if (problem !== null && !("text" in program)) {
      this.app.fail(this.problem, problem);
      this.problem.hidden = false;
      return;
    }
    const kept = this.changed && program.text === this.editor.value; // back from another view
    if (!kept) {
      Object.assign(this, { origin: program, changed: false, info: undefined });
    }
    if (problem !== null) {
      this.refuse(program, problem);
      return;
    }
    this.info = info;
    this.editor.value = editable(program.text ?? this.info.text, this.info);
    this.opened = kept ? this.opened : this.editor.value;
    this.render();
    this.editor.scrollTo(this.editor.value.split("\n").findIndex((line) => line.startsWith("registers:")) + 1);
  }

  /** A text that is no program. It can be mended. */
  refuse(program, error) {
    this.editor.value = program.text;
    this.opened = this.changed ? this.opened : program.text;
    this.formField.hidden = true;
    if (this.info === undefined) {
      [this.circuits, this.table, this.card].forEach((place) => fill(place)); // what was there is another program's
    }
    const title = this.changed ? "Edited text" : "Text with problems";
    this.picker.set(program, title);
    setText(this.title, title);
    this.reset.hidden = !this.changed;
    this.problems(error);
  }

  /** Show another form of the program of a network. */
  changeForm() {
    const { form, ...base } = this.info.program;
    return this.load(this.form.value === "task" ? base : { ...base, form: this.form.value });
  }

  edited(text) {
    clearTimeout(this.timer);
    this.jobs += 1;
    const job = this.jobs;
    this.changed = text !== this.opened;
    this.pending = true;
    this.reset.hidden = !this.changed;
    setText(this.state, "");
    this.timer = setTimeout(async () => {
      try {
        const info = await this.app.program(this.changed ? { text } : this.origin);
        if (job === this.jobs) {
          this.info = info;
          this.render();
        }
      } catch (error) {
        if (job === this.jobs) {
          this.problems(error);
        }
      }
    }, PAUSE);
  }

  problems(error) {
    this.pending = false;
    this.runButton.disabled = true;
    this.element.classList.add("stale");
    fill(this.facts, el("span", { class: "tag bad" }, "✗ the text has problems"));
    setText(this.state, this.info === undefined ? "" : "The pictures are of the last text without problems.");
    this.editor.show(error.lines ?? [[null, error.message]]); // last: it looks how much room is left
    writeLink("program", valuesOf({ text: this.editor.value }), true);
  }

  render() {
    const { info } = this;
    this.pending = false;
    this.app.remember(info);
    this.editor.show([]);
    this.element.classList.remove("stale");
    this.runButton.disabled = false;
    const { changed } = this;
    const typed = "text" in info.program;
    this.formField.hidden = !info.network || typed;
    this.form.value = info.program.form ?? "task";
    this.reset.hidden = !changed;
    const left = info.evidence.rows.length > 0 ? "Without the records of verification: they hold for the unchanged text only." : "";
    const whole = typed ? "The link of this page has the whole text." : "";
    setText(this.state, [changed ? "Edited." : left, whole].filter(Boolean).join(" "));
    this.picker.set(info.program, info.title);
    setText(this.title, info.title);
    fill(this.facts, ...factsOf(info));
    fill(this.circuits, info.rows.map((row) => circuitOf(row)));
    fill(this.table, tableOf(info));
    const made = info.made.length > 0 ? info.made : [["origin", info.origin]];
    const card = [["task", info.task ?? "none"], ...made, ["fingerprint", info.fingerprint]];
    fill(this.card, card.map(([key, words]) => [el("dt", null, key), el("dd", null, words)]));
    writeLink("program", valuesOf(info.program), true);
  }

  /** The program of the text; the last one without problems, if there was one. */
  shown() {
    if (this.pending) {
      return { text: this.editor.value };
    }
    return this.info?.program ?? { text: this.editor.value };
  }

  go(view) {
    this.app.go(view, valuesOf(this.shown()));
  }

  async save(form) {
    this.problem.hidden = true;
    try {
      download(await this.app.api.post("/api/download", { program: this.shown(), form }));
      this.app.say("The file is saved.");
    } catch (error) {
      this.app.fail(this.problem, error);
      this.problem.hidden = false;
    }
  }

  hide() {
    this.jobs += 1;
    clearTimeout(this.timer);
    if (this.pending) {
      this.app.remember({ program: { text: this.editor.value }, task: this.info?.task ?? null, network: false });
    }
  }
}

/** What to edit: the text form, without records of verification, which a changed program must not have. */
function editable(text, info) {
  const form = text.trimStart().startsWith("{") ? info.text : text;
  return form.replace(/^verified:.*\n/gm, "");
}

function circuitOf(row) {
  if (row.circuit === null) {
    return el("p", { class: "pale" }, `${row.label}: too large for a picture (${row.operations.length} operations).`);
  }
  const label = `Circuit of ${row.label}`;
  const picture = drawing(row.circuit, `${label}: ${row.condition}`);
  return el("div", { class: "circuit", tabindex: 0, role: "group", "aria-label": label }, picture);
}

/** What every row does, in columns. */
function tableOf(info) {
  const head = ["row", "applies", "operations", "registers", "then"];
  const cells = (row) => {
    const rest = row.lines.slice(1 + row.operations.length).map((line) => line.trim());
    const operations = row.lines.slice(1, 1 + row.operations.length).map((line) => line.trim());
    const registers = rest.filter((line) => line.includes(":="));
    const then = rest.filter((line) => !line.includes(":="));
    const name = row.label.replace("row ", "").replace("state ", "");
    return [name, row.condition, operations.join("; "), registers.join(""), then.join(", ") || "goes on"];
  };
  return table(head, info.rows.map(cells));
}
