import { el } from "./dom.js";

export class CompareView {
  constructor(app) {
    this.element = el("section", { class: "view" }, "compare");
  }

  async show() {}

  hide() {}
}
