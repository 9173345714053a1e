import { el } from "./dom.js";

export class NetworkView {
  constructor(app) {
    this.element = el("section", { class: "view" }, "network");
  }

  async show() {}

  hide() {}
}
