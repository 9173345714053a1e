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

export class HelpDialog {
  constructor() {
    const rows = KEYS.map(([keys, words]) => [el("dt", null, el("kbd", null, keys)), el("dd", null, words)]);
    const close = el("button", { type: "button", class: "primary", onclick: () => this.dialog.close() }, "Close");
    this.dialog = el("dialog", { "aria-labelledby": "help-title" }, el("h2", { id: "help-title" }, "Keys"), el("dl", { class: "keys" }, rows), close);
    document.body.append(this.dialog);
  }

  open() {
    this.dialog.showModal();
  }

  isOpen() {
    return this.dialog.open;
  }
}
