import { el } from "./dom.js";

export class EvidenceView {
  constructor(app) {
    this.element = el("section", { class: "view" }, "evidence");
  }

  async show() {}

  hide() {}
}
