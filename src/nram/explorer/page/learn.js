import { el } from "./dom.js";

export class LearnView {
  constructor(app) {
    this.element = el("section", { class: "view" }, "learn");
  }

  async show() {}

  hide() {}
}
