// Choosing a program: one of the zoo, a file, or a text that was edited.

import { el, fill, field, freshId, setError } from "./dom.js";

/** `onPick(reference)` is called when the user chooses. `filter(program)` says which programs of the list to offer. */
export class ProgramPicker {
  constructor(app, onPick, { label = "Program", filter = () => true, files = true } = {}) {
    this.app = app;
    this.onPick = onPick;
    this.filter = filter;
    this.select = el("select", { onchange: () => this.picked() });
    const kind = { type: "file", class: "sr", tabindex: -1, "aria-label": "Program file", accept: ".nram,.json,.txt" };
    this.file = el("input", { ...kind, onchange: () => app.attempt(this.open(this.file.files[0])) });
    const hint = "A program in the text form or as JSON; a file can also be dropped here";
    const button = el("button", { type: "button", title: hint, onclick: () => this.file.click() }, "Open file");
    this.id = freshId("program");
    this.select.id = this.id;
    this.element = el("div", { class: "picker" }, field(label, this.select), files ? el("div", { class: "buttons" }, button, this.file) : null);
    this.list();
    if (files) {
      this.acceptDrops();
    }
  }

  list() {
    const groups = new Map();
    for (const program of this.app.start.programs.filter(this.filter)) {
      const task = program.task ?? "other";
      groups.set(task, [...(groups.get(task) ?? []), program]);
    }
    const options = (programs) => programs.map((program) => el("option", { value: program.name }, program.name + (program.proven ? " ✓" : "")));
    this.other = el("option", { value: "", hidden: true });
    fill(this.select, this.other, [...groups].map(([task, programs]) => el("optgroup", { label: task }, options(programs))));
  }

  /** Show which program is chosen, without telling anybody. */
  set(reference, title) {
    const known = "name" in reference && [...this.select.options].some((option) => option.value === reference.name);
    this.other.textContent = known ? "" : title;
    this.other.hidden = known;
    this.select.value = known ? reference.name : "";
    setError(this.select, null);
  }

  picked() {
    if (this.select.value !== "") {
      this.onPick({ name: this.select.value });
    }
  }

  async open(file) {
    if (!file) {
      return;
    }
    const most = this.app.start.limits.text;
    if (file.size > most) {
      setError(this.select, `${file.name} has ${file.size} bytes: the most is ${most}.`);
      return;
    }
    const text = await file.text();
    this.file.value = "";
    this.onPick({ text });
  }

  acceptDrops() {
    this.element.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.element.classList.add("dropping");
    });
    this.element.addEventListener("dragleave", () => this.element.classList.remove("dropping"));
    this.element.addEventListener("drop", (event) => {
      event.preventDefault();
      this.element.classList.remove("dropping");
      this.app.attempt(this.open(event.dataTransfer.files[0]));
    });
  }
}
