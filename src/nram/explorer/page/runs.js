// The runs view: all training runs and learn folders, one of them with its curves, and several of them compared.

import { Chart, clock, percent, short } from "./curves.js";
import { counted, el, fill, setText } from "./dom.js";
import { linkOf } from "./link.js";

const REFRESH = 2500; // milliseconds between two looks at the list
const DIAGNOSE = 10000; // milliseconds between two diagnoses of a running run
const REDRAW = 250; // milliseconds: rows may come quickly
const MOST_MEMBERS = 24; // that are offered
const SIGNS = { running: "▶", finished: "✓", stopped: "‖", new: "·", damaged: "✗" };
const BETWEEN = "|"; // of ids in a link
const MOST_STREAMS = 2; // of a comparison: a browser allows six connections to a server, for all its tabs
const LOOK = 4000; // milliseconds between two looks at a running run without a stream

/** The page's address of a run on the server. An id may have slashes. */
function addressOf(id) {
  if (id.split("/").some((part) => part === "." || part === "..")) {
    throw new Error(`“${id}” is not the name of a run: it has a part “.” or “..”.`); // a browser would change the address
  }
  return `/api/runs/${id.split("/").map(encodeURIComponent).join("/")}`;
}

function statusTag(status) {
  const kind = { finished: "good", damaged: "bad" }[status] ?? "";
  return el("span", { class: `tag ${kind}` }, `${SIGNS[status] ?? ""} ${status}`);
}

/** "3 min ago". */
function ago(seconds) {
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  const [unit, name] = [[86400, "day"], [3600, "hour"], [60, "minute"]].find(([one]) => passed >= one) ?? [1, "second"];
  return passed < 60 ? "just now" : `${counted(Math.floor(passed / unit), name)} ago`;
}

/** A run's curves and diagnosis, with what is added while it goes on. */
class RunData {
  /** `onChange()` is called after every change, `onFail(error)` when there is no news any more. */
  constructor(app, id, { onChange, onFail }) {
    Object.assign(this, { app, id, onChange, onFail, streaming: false, left: false });
    this.end = () => {};
  }

  async load() {
    const info = await this.app.api.get(addressOf(this.id));
    if (this.left) {
      return;
    }
    this.info = info;
    this.looked = Date.now();
    if (this.info.kind === "learn") {
      return;
    }
    this.index = Object.fromEntries(this.info.metrics.columns.map((name, index) => [name, index]));
    this.rows = this.info.metrics.rows;
    this.known = this.rows.length;
    this.status = this.info.status;
  }

  /** Listen to what a running run adds; without a stream, look at it from time to time. */
  follow(others = []) {
    this.pause();
    if (this.left || this.info.kind === "learn" || this.info.status !== "running") {
      return;
    }
    this.others = others;
    if (others.filter((run) => run !== this && run.streaming).length >= MOST_STREAMS) {
      const timer = setTimeout(() => document.hidden || this.reload(), LOOK); // a page that is seen again looks at once
      this.end = () => clearTimeout(timer);
      return;
    }
    this.streaming = true;
    this.end = this.app.api.events(`${addressOf(this.id)}/events/${this.info.lines}`, {
      begin: () => this.rows.splice(this.known), // after a broken connection they come again
      rows: ({ rows }) => this.add(rows),
      again: () => this.reload(),
      status: ({ status }) => status !== this.status && this.reload(),
      failed: ({ error }) => this.failed(new Error(error)),
    });
  }

  pause() {
    this.end();
    this.streaming = false;
  }

  /** The view was left: what still arrives is not for it. */
  close() {
    this.left = true;
    this.pause();
  }

  failed(error) {
    this.pause();
    if (!this.left) {
      this.onFail(error);
    }
  }

  add(rows) {
    this.rows.push(...rows);
    if (Date.now() - this.looked > DIAGNOSE) {
      this.reload();
    } else {
      this.onChange();
    }
  }

  async reload() {
    this.pause();
    try {
      await this.load();
    } catch (error) {
      this.failed(error); // what is shown stays
      return;
    }
    if (!this.left) {
      this.onChange();
      this.follow(this.others);
    }
  }

  get groups() {
    return this.info.groups.length > 0 ? this.info.groups : [""];
  }

  /** The points of a column, of one group or of all. */
  points(column, group = null) {
    const { index } = this;
    const rows = group === null ? this.rows : this.rows.filter((row) => row[index.group] === group);
    return rows.map((row) => [row[index.seconds], row[index[column]]]);
  }
}

/** The best value so far of a run's groups together. */
function bestSoFar(points, better) {
  let best = null;
  return points.map(([x, y]) => {
    best = y === null ? best : best === null ? y : better(best, y);
    return [x, best];
  });
}

function kindsOfCharts() {
  const share = { least: 0, most: 1, words: percent };
  return [
    ["error", new Chart({ title: "Error on training batches, soft", log: true, most: 1, hint: "Best and median member. The axis is logarithmic; 0 stands at its foot." }), [["best_error", "best"], ["median_error", "median"]], false],
    ["solved", new Chart({ title: "Solved", ...share, hint: "The best member as a program, on the validation set; and the share of members that solve everything." }), [["best_hard", "best as a program"], ["solved_hard", "members, hard"], ["solved_soft", "members, soft"]], false],
    ["level", new Chart({ title: "Level of the curriculum", hint: "The largest size that a member has reached, and the largest of the stage." }), [["level", "reached"], ["max_complexity", "of the stage"]], true],
    ["restarts", new Chart({ title: "Islands and attempts", hint: "Islands that restarted, perfect members, and returns to the first stage." }), [["restarts", "restarted islands"], ["perfect", "perfect members"], ["attempt", "returns"]], true],
  ];
}

/** One run. */
class RunDetail {
  constructor(app, onFail) {
    this.app = app;
    this.onFail = onFail;
    this.title = el("h2", { tabindex: -1 });
    this.facts = el("p", { class: "facts" });
    this.verdict = el("p", { class: "verdict" });
    this.words = el("ul", { class: "run-facts" });
    this.cures = el("div");
    this.command = el("p", { class: "run-command" });
    this.members = el("div", { class: "members" });
    this.filter = el("fieldset", { class: "group-filter" });
    this.charts = kindsOfCharts();
    this.curves = el("div", { class: "chart-grid" }, this.charts.map(([, chart]) => chart.element));
    const told = el("section", { class: "panel run-told", "aria-label": "Diagnosis" }, this.verdict, this.words, this.cures, this.command);
    const people = el("section", { class: "panel", "aria-label": "Members" }, this.membersTitle = el("h3", null, "Members"), this.members);
    this.element = el("section", { class: "run-detail" }, el("div", { class: "title-line" }, this.title, this.facts), el("div", { class: "run-top" }, told, people), this.filter, this.curves);
    this.left = new Set(); // groups that are not drawn
  }

  async open(id) {
    const run = new RunData(this.app, id, { onChange: () => this.later(), onFail: this.onFail });
    this.opening = run;
    await run.load();
    if (this.opening !== run) {
      return; // the view was left, or another run was asked for
    }
    if (this.run?.id !== id) {
      this.left.clear();
      fill(this.filter);
    }
    this.run = run;
    this.render();
    run.follow();
  }

  close() {
    this.opening?.close();
    this.opening = null;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  reload() {
    return this.run.reload();
  }

  later() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.render();
    }, REDRAW);
  }

  render() {
    const { info } = this.run;
    const learned = info.kind === "learn";
    setText(this.title, info.id);
    fill(this.facts, statusTag(info.status), info.task === null ? null : el("span", null, `task ${info.task}`), el("span", null, learned ? "nram learn" : info.machine), learned ? null : el("span", null, `seed ${info.seed}`), el("span", null, info.folder));
    setText(this.verdict, info.verdict);
    fill(this.words, [info.explanation, ...info.facts].filter(Boolean).map((words) => el("li", null, words)));
    const cures = info.cures.map(({ text, command }) => el("li", null, text, command === null ? null : el("code", null, command)));
    fill(this.cures, cures.length > 0 ? [el("h3", null, "What may help"), el("ol", { class: "cures" }, cures)] : null);
    fill(this.command, info.status === "running" ? (this.run.rows.length === 0 ? "The curves come with the first measurement." : null) : ["Go on with ", el("code", null, info.command)]);
    this.showMembers(info);
    this.filter.hidden = this.curves.hidden = learned;
    if (!learned) {
      this.showFilter();
      this.draw();
    }
  }

  showMembers({ id, kind, members }) {
    const learned = kind === "learn";
    setText(this.membersTitle, learned ? "Programs" : "Best members");
    const open = (view, member) => el("button", { type: "button", onclick: () => this.app.go(view, { run: id, member }) }, { machine: "Machine", network: "Network" }[view]);
    const items = members.slice(0, MOST_MEMBERS).map((member) => {
      const name = learned ? `Program ${member + 1}` : `Member ${member}`;
      const row = el("li", null, el("span", { class: "member-name" }, name, member === members[0] ? el("span", { class: "pale" }, learned ? " chosen" : " the best") : null), el("span", { class: "buttons" }, open("machine", member), learned ? null : open("network", member)));
      row.querySelectorAll("button").forEach((button) => button.setAttribute("aria-label", `${name}: ${button.textContent.toLowerCase()}`));
      return row;
    });
    const none = learned ? "No program was found yet." : "No member was saved yet. They are saved when the run ends.";
    fill(this.members, items.length > 0 ? el("ul", null, items) : el("p", { class: "pale" }, none));
    if (members.length > MOST_MEMBERS) {
      this.members.append(el("p", { class: "hint" }, `and ${members.length - MOST_MEMBERS} more`));
    }
  }

  showFilter() {
    const { groups, rows } = this.run;
    this.filter.hidden = groups.length < 2 || rows.length === 0;
    if (this.filter.childElementCount === groups.length + 1) {
      return;
    }
    const boxes = groups.map((name, group) => {
      const box = el("input", { type: "checkbox", checked: !this.left.has(group), onchange: () => this.choose(group, box.checked) });
      return el("label", { class: "check" }, box, name);
    });
    fill(this.filter, el("legend", null, "Groups"), boxes);
  }

  choose(group, drawn) {
    this.left[drawn ? "delete" : "add"](group);
    this.draw();
  }

  draw() {
    const { run } = this;
    const shown = run.groups.map((name, group) => [name, group]).filter(([, group]) => !this.left.has(group));
    for (const [kind, chart, columns, stepped] of this.charts) {
      const lines = shown.flatMap(([name, group]) => columns.map(([column, words], dash) => ({ name: name === "" ? words : `${name}: ${words}`, points: run.points(column, run.info.groups.length > 0 ? group : null), colour: name === "" ? dash : group, dash, stepped })));
      const drawn = lines.filter(({ points }) => points.length > 0 && (kind !== "restarts" || points.some(([, y]) => y > 0)));
      chart.element.hidden = drawn.length === 0;
      chart.show(drawn);
    }
  }
}

/** Several runs, with the best so far of each in the same charts. */
class RunComparison {
  constructor(app, onFail) {
    this.app = app;
    this.onFail = onFail;
    this.runs = [];
    const share = { least: 0, most: 1, words: percent };
    const [least, most] = [Math.min, Math.max];
    this.charts = [
      [new Chart({ title: "Least error so far, soft", log: true, most: 1, words: short }), "best_error", least],
      [new Chart({ title: "Best member as a program, so far", ...share }), "best_hard", most],
      [new Chart({ title: "Level so far" }), "level", most],
      [new Chart({ title: "Largest share of members solved hard, so far", ...share }), "solved_hard", most],
    ];
    this.table = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Runs that are compared" });
    this.element = el("section", { class: "run-comparison" }, el("h2", null, "Comparison"), el("section", { class: "panel" }, this.table), el("div", { class: "chart-grid" }, this.charts.map(([chart]) => chart.element)));
  }

  async open(ids) {
    this.close();
    const runs = ids.map((id) => new RunData(this.app, id, { onChange: () => this.later(), onFail: this.onFail }));
    this.opening = runs;
    await Promise.all(runs.map((run) => run.load()));
    if (this.opening !== runs) {
      return;
    }
    this.runs = runs.filter((run) => run.info.kind === "train");
    this.draw();
    this.runs.forEach((run) => run.follow(this.runs));
  }

  close() {
    this.opening?.forEach((run) => run.close());
    this.opening = null;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  reload() {
    return Promise.all(this.runs.map((run) => run.reload()));
  }

  later() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.draw();
    }, REDRAW);
  }

  draw() {
    for (const [chart, column, better] of this.charts) {
      chart.show(this.runs.map((run, index) => ({ name: run.id, points: bestSoFar(run.points(column), better), colour: index, dash: index, stepped: true })));
    }
    const rows = this.runs.map(({ id, info, rows, index }) => [id, info.task, info.seed, info.status, rows.length > 0 ? clock(rows.at(-1)[index.seconds]) : "–", info.verdict]);
    const cells = (one) => one.map((value, column) => el(column === 0 ? "th" : "td", column === 0 ? { scope: "row" } : null, String(value ?? "–")));
    const head = ["run", "task", "seed", "status", "time", "result"].map((name) => el("th", { scope: "col" }, name));
    fill(this.table, el("table", null, el("thead", null, el("tr", null, head)), el("tbody", null, rows.map((one) => el("tr", null, cells(one))))));
  }
}

export class RunsView {
  constructor(app) {
    this.app = app;
    this.chosen = new Set();
    this.jobs = 0; // links that were followed so far: only the last one counts
    this.opened = this.shown = null;
    document.addEventListener("visibilitychange", () => this.seen());
    this.list = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "List of runs" });
    this.compare = el("button", { type: "button", disabled: true, onclick: () => this.openComparison() }, "Compare");
    this.note = el("p", { class: "hint" }, "Choose two or more training runs to compare them.");
    this.problem = el("div", { class: "problem", role: "alert", hidden: true });
    this.back = el("p", { class: "back", hidden: true }, el("a", { href: "#runs" }, "← All runs"));
    this.all = el("section", { class: "panel" }, this.list, el("div", { class: "buttons run-buttons" }, this.compare, this.note));
    this.place = el("div");
    this.title = el("h2", null, "Runs");
    this.element = el("section", { class: "view runs-view", "aria-label": "Runs" }, this.back, this.title, this.problem, this.all, this.place);
  }

  async show(values) {
    this.hide();
    const job = this.jobs;
    this.problem.hidden = true;
    let ids;
    try {
      ids = [values.run, ...(values.other ?? "").split(BETWEEN).map(decodeURIComponent)].filter(Boolean);
    } catch {
      ids = [];
      fill(this.place);
      this.back.hidden = false;
      this.all.hidden = true;
      this.fail(new Error("This link is damaged: the names of its runs cannot be read."));
      return;
    }
    const several = ids.length > 1;
    this.back.hidden = ids.length === 0;
    this.all.hidden = this.title.hidden = ids.length > 0;
    if (ids.length === 0) {
      fill(this.place);
      await this.refresh();
      if (job === this.jobs) {
        this.timer = setInterval(() => document.hidden || this.refresh(), REFRESH);
      }
      return;
    }
    const onFail = (error) => this.fail(error);
    const shown = several ? (this.comparison ??= new RunComparison(this.app, onFail)) : (this.detail ??= new RunDetail(this.app, onFail));
    this.opened = shown;
    try {
      await shown.open(several ? ids : ids[0]);
      if (job === this.jobs) {
        this.shown = shown;
        fill(this.place, shown.element);
      }
    } catch (error) {
      if (job === this.jobs) {
        shown.close();
        fill(this.place);
        this.fail(error);
      }
    }
  }

  hide() {
    this.jobs += 1;
    clearInterval(this.timer);
    this.opened?.close();
    this.opened = this.shown = null;
  }

  /** The page is seen again: a run that was stopped may go on by now. */
  seen() {
    if (!document.hidden && this.shown !== null) {
      this.problem.hidden = true;
      this.shown.reload();
    }
  }

  fail(error) {
    this.app.fail(this.problem, error);
    this.problem.hidden = false;
  }

  async refresh() {
    const job = this.jobs;
    let found;
    try {
      found = (await this.app.api.get("/api/runs")).runs;
    } catch (error) {
      if (job === this.jobs) {
        this.fail(error);
      }
      return;
    }
    if (job !== this.jobs) {
      return;
    }
    this.problem.hidden = true;
    if (JSON.stringify(found) !== this.told) {
      this.told = JSON.stringify(found);
      this.render(found);
    }
  }

  render(runs) {
    this.compare.hidden = this.note.hidden = runs.filter(({ kind }) => kind === "train").length < 2;
    if (runs.length === 0) {
      fill(this.list, el("p", null, "There are no runs yet. ", el("code", null, "nram train copy"), " makes one, and so does the view “Learn”."));
      return;
    }
    const focused = document.activeElement?.dataset?.run;
    const head = ["", "run", "task", "status", "result", "changed"].map((name) => el("th", { scope: "col", class: name === "" ? null : name }, name === "" ? el("span", { class: "sr" }, "compare") : name));
    fill(this.list, el("table", { class: "runs" }, el("thead", null, el("tr", null, head)), el("tbody", null, runs.map((run) => this.row(run)))));
    [...this.list.querySelectorAll("[data-run]")].find((one) => one.dataset.run === focused)?.focus();
  }

  row({ id, kind, task, status, words, modified }) {
    const comparable = kind === "train" && status !== "damaged";
    const box = el("input", { type: "checkbox", "aria-label": `Compare ${id}`, "data-run": `box ${id}`, checked: this.chosen.has(id), onchange: () => this.choose(id, box.checked) });
    const link = status === "damaged" ? el("span", null, id) : el("a", { href: linkOf("runs", { run: id }), "data-run": id }, id);
    return el("tr", null, el("td", null, comparable ? box : null), el("th", { scope: "row" }, link, kind === "learn" ? el("span", { class: "pale" }, " learned") : null), el("td", { class: "task" }, task ?? "–"), el("td", null, statusTag(status)), el("td", { class: "words" }, words), el("td", { class: "changed" }, ago(modified)));
  }

  choose(id, chosen) {
    this.chosen[chosen ? "add" : "delete"](id);
    this.compare.disabled = this.chosen.size < 2;
    setText(this.compare, this.chosen.size < 2 ? "Compare" : `Compare ${this.chosen.size} runs`);
  }

  openComparison() {
    const [run, ...others] = this.chosen;
    this.app.go("runs", { run, other: others.map(encodeURIComponent).join(BETWEEN) });
  }
}
