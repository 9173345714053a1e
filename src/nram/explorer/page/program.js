import { el } from "./dom.js";

export class ProgramView {
  constructor(app) {
    this.element = el("section", { class: "view" }, "program");
  }

  async show() {}

  hide() {}
}
