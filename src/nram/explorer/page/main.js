// The page: its views, the way between them, and the keyboard.

import { Api } from "./api.js";
import { CompareView } from "./compare.js";
import { el, fill, setAttribute, setText } from "./dom.js";
import { EvidenceView } from "./evidence.js";
import { NetworkView } from "./heat.js";
import { HelpDialog } from "./help.js";
import { LearnView } from "./learn.js";
import { linkOf, readLink, writeLink } from "./link.js";
import { ProgramView } from "./program.js";
import { RunsView } from "./runs.js";
import { MachineView } from "./workbench.js";

const KEPT_PROGRAMS = 30;

class App {
  constructor() {
    this.api = new Api();
    this.views = new Map();
    this.programs = new Map();
    // what a view begins with if its link does not say it; `cells` is the size of the input's memory
    this.last = { program: null, task: null, network: false, input: {}, cells: 0 };
    this.kinds = [
      ["machine", "Machine", MachineView],
      ["program", "Program", ProgramView],
      ["evidence", "Evidence", EvidenceView],
      ["network", "Network", NetworkView],
      ["compare", "Compare", CompareView],
      ["learn", "Learn", LearnView],
      ["runs", "Runs", RunsView],
    ];
    this.main = document.querySelector("main");
    this.live = document.querySelector("#live");
    this.help = new HelpDialog();
    this.told = el("div", { class: "problem", role: "alert", hidden: true }); // what belongs to no view
  }

  async begin() {
    try {
      this.start = await this.api.post("/api/start", {});
    } catch (error) {
      this.fail(this.main, error);
      return;
    }
    this.buildTabs();
    document.addEventListener("keydown", (event) => this.handleKey(event));
    window.addEventListener("hashchange", () => this.attempt(this.follow()));
    document.querySelector("#copy").addEventListener("click", (event) => this.copyLink(event.target));
    document.querySelector("#skip").addEventListener("click", (event) => {
      event.preventDefault(); // the address says what is shown, not where the page is scrolled to
      this.main.focus();
    });
    document.querySelector("#help").addEventListener("click", () => this.help.open());
    setText(document.querySelector("#version"), this.start.version);
    fill(this.main, this.told);
    await this.attempt(this.follow());
  }

  /** Wait for work that a handler began. What goes wrong in it, and no view has told, is told above the view. */
  async attempt(work) {
    try {
      return await work;
    } catch (error) {
      this.fail(this.told, error);
      this.told.hidden = false;
      return undefined;
    }
  }

  buildTabs() {
    this.tabs = new Map(this.kinds.map(([name, title]) => [name, el("a", { href: `#${name}` }, title)]));
    fill(document.querySelector("nav ul"), [...this.tabs.values()].map((tab) => el("li", null, tab)));
  }

  /** Show what the address says. */
  async follow() {
    const { view, values } = readLink();
    const known = this.kinds.find(([one]) => one === view);
    const [name, title, Kind] = known ?? this.kinds[0];
    this.told.hidden = known !== undefined || view === "";
    if (!this.told.hidden) {
      this.fail(this.told, new Error(`There is no view “${view.slice(0, 40)}”. This is the view “${title}”.`));
    }
    if (this.shown !== name) {
      this.views.get(this.shown)?.hide();
    }
    this.shown = name;
    if (!this.views.has(name)) {
      this.views.set(name, new Kind(this));
      this.main.append(this.views.get(name).element);
    }
    for (const [other, one] of this.views) {
      one.element.hidden = other !== name;
    }
    for (const [other, tab] of this.tabs) {
      setAttribute(tab, "aria-current", other === name ? "page" : null);
      if (other === name && tab.offsetParent !== null) {
        tab.scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    }
    document.title = `nram: ${title}`;
    await this.views.get(name).show(values);
  }

  /** Go to a view and put it into the history. */
  go(view, values) {
    if (linkOf(view, values) !== location.hash) {
      writeLink(view, values, false);
    }
    return this.attempt(this.follow());
  }

  /** A program's info; asked for once, except for a job, whose program changes. */
  program(reference) {
    if ("job" in reference) {
      return this.api.post("/api/program", { program: reference });
    }
    const key = JSON.stringify(reference);
    if (!this.programs.has(key)) {
      const wanted = this.api.post("/api/program", { program: reference });
      wanted.catch(() => this.programs.delete(key));
      this.programs.set(key, wanted);
      if (this.programs.size > KEPT_PROGRAMS) {
        this.programs.delete(this.programs.keys().next().value);
      }
    }
    return this.programs.get(key);
  }

  /** Keep what a view shows, a program's info and an input, for the next one. The input stays as long as the program does. */
  remember({ program, task, network }, input = null) {
    const same = JSON.stringify(program) === JSON.stringify(this.last.program);
    const kept = same ? this.last : { input: {}, cells: 0 };
    const { input: values, cells } = input === null ? kept : { input: input.values, cells: input.size ?? input.memory.length };
    this.last = { program, task, network, input: values, cells };
  }

  /** The program that is shown when nothing was asked for: the last one; at first, a file of the command line. */
  firstProgram() {
    const { programs } = this.start;
    if (this.last.program !== null) {
      return this.last.program;
    }
    const zoo = programs.find(({ name }) => name === "reverse@searched");
    return { name: (programs[0].name.includes("@") && zoo ? zoo : programs[0]).name };
  }

  say(text) {
    setText(this.live, text);
  }

  /** Show an error in an element. */
  fail(element, error) {
    const lines = (error.lines ?? []).map(([line, words]) => el("li", null, line === null ? words : `Line ${line}: ${words}`));
    const words = lines.length > 0 ? "This program has problems:" : error.message;
    fill(element, el("p", { class: "problem-words" }, words), lines.length > 0 ? el("ul", null, lines) : null);
  }

  async copyLink(button) {
    try {
      await navigator.clipboard.writeText(location.href);
      this.say("The link is copied.");
      setText(button, "Copied");
    } catch {
      window.prompt("The link of what you see:", location.href);
      return;
    }
    setTimeout(() => setText(button, "Copy link"), 1500);
  }

  handleKey(event) {
    const { target } = event;
    const typing = target.matches("input:not([type=range], [type=checkbox]), textarea, select, [contenteditable]");
    const pressing = target.closest("button, a, summary, [type=checkbox]") !== null && (event.key === " " || event.key === "Enter");
    if (event.ctrlKey || event.metaKey || event.altKey || typing || pressing || this.help.isOpen()) {
      return;
    }
    if (event.key.length === 1 && event.key !== " " && !this.help.letters()) {
      return;
    }
    if (event.key === "?") {
      this.help.open();
    } else if (/^[1-9]$/.test(event.key) && Number(event.key) <= this.kinds.length) {
      this.go(this.kinds[Number(event.key) - 1][0], {});
    } else {
      this.views.get(this.shown).handleKey?.(event);
    }
  }
}

new App().begin();
