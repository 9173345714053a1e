// The help on keys, in a dialog.

import { el } from "./dom.js";

const KEYS = [
  ["← →", "one step back, one step on"],
  ["Home End", "to the start, to the end"],
  ["Page up, Page down", "ten steps"],
  ["Space", "play or pause"],
  ["+ −", "faster, slower"],
  ["g", "go to a position"],
  ["i", "edit the input"],
  ["1 to 7", "change the view"],
  ["Tab, then arrows", "move between cells; Enter edits a cell"],
  ["?", "this help"],
];

const LETTERS = "nram-letter-keys"; // in the browser's storage

export class HelpDialog {
  constructor() {
    this.box = el("input", { type: "checkbox", onchange: () => this.keep() });
    try {
      this.box.checked = localStorage.getItem(LETTERS) !== "off";
    } catch {
      this.box.checked = true; // a browser may forbid to store anything
    }
    const rows = KEYS.map(([keys, words]) => [el("dt", null, el("kbd", null, keys)), el("dd", null, words)]);
    const close = el("button", { type: "button", class: "primary", onclick: () => this.dialog.close() }, "Close");
    this.dialog = el("dialog", { "aria-labelledby": "help-title" }, el("h2", { id: "help-title" }, "Keys"), el("dl", { class: "keys" }, rows), el("p", null, el("label", { class: "check" }, this.box, " Single-key shortcuts such as g and 1 (turn them off if a screen reader or speech input uses these keys)")), close);
    document.body.append(this.dialog);
  }

  keep() {
    try {
      localStorage.setItem(LETTERS, this.box.checked ? "on" : "off");
    } catch {
      // it holds until the page is closed
    }
  }

  /** Whether keys of one character do something. Space always plays. */
  letters() {
    return this.box.checked;
  }

  open() {
    this.dialog.showModal();
  }

  isOpen() {
    return this.dialog.open;
  }
}
