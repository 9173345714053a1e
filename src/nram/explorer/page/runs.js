import { el } from "./dom.js";

export class RunsView {
  constructor(app) {
    this.element = el("section", { class: "view" }, "runs");
  }

  async show() {}

  hide() {}
}
