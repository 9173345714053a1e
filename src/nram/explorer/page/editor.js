// A text field for programs: line numbers, and problems at their lines.

import { el, fill } from "./dom.js";

const MOST_SHOWN = 50; // problems

export class CodeEditor {
  constructor(label, onChange) {
    this.gutter = el("div", { class: "gutter", "aria-hidden": "true" });
    this.marks = el("div", { class: "line-marks", "aria-hidden": "true" });
    this.area = el("textarea", { class: "code", wrap: "off", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-label": label });
    this.problems = el("ul", { class: "problems", "aria-live": "polite" });
    this.lines = 0;
    const place = el("div", { class: "code-place" }, this.gutter, el("div", { class: "code-scroll" }, this.marks, this.area));
    this.element = el("div", { class: "editor" }, place, this.problems);
    this.area.addEventListener("input", () => {
      this.number();
      onChange(this.area.value);
    });
    this.area.addEventListener("scroll", () => this.follow());
  }

  get value() {
    return this.area.value;
  }

  set value(text) {
    this.area.value = text;
    this.number();
    this.show([]);
  }

  number() {
    const lines = this.area.value.split("\n").length;
    if (lines !== this.lines) {
      this.lines = lines;
      this.gutter.textContent = Array.from({ length: lines }, (_, index) => index + 1).join("\n");
    }
    this.follow();
  }

  follow() {
    this.gutter.scrollTop = this.area.scrollTop;
    this.marks.style.transform = `translateY(${-this.area.scrollTop}px)`;
  }

  /** Show problems as [line or null, words]. */
  show(problems) {
    const shown = problems.slice(0, MOST_SHOWN);
    const item = ([line, words]) => {
      const go = line === null ? null : el("button", { type: "button", onclick: () => this.goTo(line) }, `Line ${line}`);
      return el("li", null, go, words);
    };
    fill(this.problems, shown.map(item), problems.length > MOST_SHOWN ? el("li", null, `and ${problems.length - MOST_SHOWN} more`) : null);
    const mark = ([line, words]) => {
      const one = el("div", { class: "line-mark" }, el("span", null, `✗ ${words}`));
      one.style.top = `calc(var(--code-line) * ${line - 1})`;
      return one;
    };
    fill(this.marks, shown.filter(([line]) => line !== null).map(mark));
    this.area.setAttribute("aria-invalid", problems.length > 0);
    if (document.activeElement === this.area) {
      this.revealCursor(); // the list of problems takes room from the text
    }
  }

  get lineHeight() {
    return Number.parseFloat(getComputedStyle(this.area).lineHeight);
  }

  revealCursor() {
    const line = this.area.value.slice(0, this.area.selectionEnd).split("\n").length;
    const bottom = (line + 1) * this.lineHeight; // with half a line of air above and below
    this.area.scrollTop = Math.max(Math.min(this.area.scrollTop, (line - 1) * this.lineHeight), bottom - this.area.clientHeight);
    this.follow();
  }

  /** Scroll so that this line is the first that is seen. */
  scrollTo(line) {
    this.area.scrollTop = (line - 1) * this.lineHeight;
    this.follow();
  }

  /** Put the cursor at the beginning of a line. */
  goTo(line) {
    const before = this.area.value.split("\n").slice(0, line - 1).join("\n").length;
    const at = line === 1 ? 0 : before + 1;
    const end = this.area.value.indexOf("\n", at);
    this.area.focus();
    this.area.setSelectionRange(at, end < 0 ? this.area.value.length : end);
  }
}
