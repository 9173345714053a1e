// The learn view: examples in, a program out. A job goes on when the page is closed; a link finds it again.

import { download } from "./api.js";
import { Chart, clock, percent, short } from "./curves.js";
import { el, field, fill, grouped, setError, setText } from "./dom.js";
import { valuesOf, whole, writeLink } from "./link.js";

const MOST_NOTES = 200;
const MOST_SECONDS = 600;
const REDRAW = 250; // milliseconds
const REFRESH = 2000; // milliseconds between two looks at the jobs, while one is running
const METHODS = [["both", "Both"], ["search", "Search"], ["train", "Train"]];
const STATUS = { running: "▶ running", done: "✓ done", stopped: "‖ stopped", failed: "✗ failed" };

/** Examples to try: what they are called, the name of the file, and its lines. */
const SAMPLES = [
  ["The largest value", "maximum.csv", "values,result", (list) => [list.join(" "), Math.max(...list)]],
  ["How often x occurs", "count.csv", "values,x,result", (list) => [list.join(" "), list[0], list.filter((one) => one === list[0]).length]],
  ["The last value", "last.csv", "values,result", (list) => [list.join(" "), list.at(-1)]],
];

const FORMS = `values,x,result                                 a table: lists, numbers, and the result
3 1 2,1,1

{"values": [3, 1, 2], "x": 1, "result": 1}      the same as JSON, one example a line

{"input": [3, 1, 2, 0], "output": [3, 3, 2, 0]} the whole memory before and after`;

/** Lists of the sizes 1 to 8, always the same ones. */
function sampleText(header, rule) {
  let state = 7;
  const draw = (most) => {
    state = (state * 48271) % 2147483647;
    return 1 + (state % most);
  };
  const lines = [header];
  for (let size = 1; size <= 8; size += 1) {
    for (let number = 0; number < 8; number += 1) {
      lines.push(rule(Array.from({ length: size }, () => draw(9))).join(","));
    }
  }
  return `${[...new Set(lines)].join("\n")}\n`;
}

export class LearnView {
  constructor(app) {
    this.app = app;
    this.job = null;
    this.shows = 0; // links that were followed so far: only the last one counts
    this.close = () => {};
    this.buildForm();
    this.buildLive();
    this.jobs = el("div", { class: "job-list" });
    const side = el("div", { class: "learn-side" }, this.form, el("section", { class: "panel", "aria-label": "Jobs" }, el("h2", { class: "minor" }, "Jobs of this server"), this.jobs));
    this.begin = el("section", { class: "panel learn-begin" }, el("h2", null, "Learn a program from examples"), el("p", null, "Each line says what goes in and what must come out. nram searches for a program that is right on all of them, and tests it on the largest examples, which it has not learned from."), el("p", null, "Paste a table, drop a file, or try one of the samples, and press Start. These forms are understood:"), el("pre", { class: "code-block", tabindex: 0, role: "region", "aria-label": "Forms of examples" }, FORMS));
    this.element = el("section", { class: "view learn-view", "aria-label": "Learn" }, side, el("div", { class: "learn-main" }, this.begin, this.live));
  }

  buildForm() {
    const { limits } = this.app.start;
    this.content = el("textarea", { rows: 12, spellcheck: "false", autocomplete: "off", class: "numbers", placeholder: "values,x,result\n3 1 2,1,1\n…" });
    this.name = el("input", { type: "text", value: "examples.csv", autocomplete: "off", spellcheck: "false" });
    this.file = el("input", { type: "file", class: "sr", tabindex: -1, "aria-label": "File of examples", accept: ".csv,.jsonl,.json,.txt", onchange: () => this.app.attempt(this.open(this.file.files[0])) });
    this.budget = el("input", { type: "number", min: 1, max: MOST_SECONDS, value: 60 });
    this.method = el("select", null, METHODS.map(([value, words]) => el("option", { value }, words)));
    this.seed = el("input", { type: "number", min: 0, value: 0 });
    this.results = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    this.cells = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    this.layout = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    this.refusal = el("p", { class: "error", role: "alert", hidden: true });
    this.startButton = el("button", { type: "submit", class: "primary" }, "Start");
    const pick = el("button", { type: "button", onclick: () => this.file.click() }, "Open file");
    const sample = el("select", { "aria-label": "Try a sample", onchange: () => this.takeSample(sample) }, el("option", { value: "" }, "Try a sample …"), SAMPLES.map(([words], index) => el("option", { value: index }, words)));
    this.most = limits.examples;
    this.form = el(
      "form",
      { class: "panel learn-form", novalidate: true, onsubmit: (event) => this.app.attempt(this.start(event)) },
      field("Examples", this.content, "CSV with named columns, or JSON objects, one a line. A file can be dropped here."),
      el("div", { class: "buttons" }, pick, this.file, sample),
      field("Name", this.name, "The name of the program and of its folder."),
      el("div", { class: "pair" }, field("Seconds", this.budget), field("Method", this.method)),
      el("p", { class: "hint" }, "Both: search first, then train if nothing was found, in 90 seconds or more."),
      el(
        "details",
        null,
        el("summary", null, "More options"),
        field("Seed", this.seed),
        field("Result columns", this.results, "As in: result, or low,high. Default: by their names, or the last one."),
        field("Cells that count", this.cells, "For whole memories: all, changed, or addresses as in 0 3..5."),
        field("Layout in memory", this.layout, "As in: x ->result values[] 0. Default: nram chooses."),
      ),
      el("div", { class: "buttons" }, this.startButton),
      this.refusal,
    );
    this.acceptDrops();
  }

  buildLive() {
    this.title = el("h2", { tabindex: -1 });
    this.status = el("span", { class: "tag" });
    this.stopButton = el("button", { type: "button", onclick: () => this.stop() }, "Stop and keep the best");
    this.problem = el("div", { class: "problem", role: "alert", hidden: true });
    this.numbers = el("dl", { class: "numbers-line" });
    this.activity = el("p", { class: "hint" });
    this.wrong = new Chart({ title: "Examples that the best program gets wrong", of: (x) => `${short(x)} s`, along: "seconds" });
    this.trained = new Chart({ title: "Error of the training run, soft", log: true, most: 1 });
    this.exact = new Chart({ title: "Best member as a program", least: 0, most: 1, words: percent });
    this.training = el("div", { class: "chart-grid", hidden: true }, this.trained.element, this.exact.element);
    this.bestWords = el("p", { class: "best-words" });
    this.bestText = el("pre", { class: "code-block", tabindex: 0, role: "region", "aria-label": "Text of the best program so far" });
    this.watchBest = el("button", { type: "button", onclick: () => this.showFailure() }, "See it in the machine");
    this.best = el("section", { class: "panel", hidden: true, "aria-label": "The best program so far" }, el("h3", null, "The best program so far"), this.bestWords, el("div", { class: "buttons" }, this.watchBest), this.bestText);
    this.notes = el("ul", { class: "notes" });
    this.log = el("details", { class: "panel" }, el("summary", null, "What happened"), this.notes);
    this.result = el("section", { class: "panel learn-result", hidden: true, "aria-label": "Result" });
    const head = el("div", { class: "top-line" }, el("div", { class: "title-line" }, this.title, el("p", { class: "facts" }, this.status)), this.stopButton);
    this.live = el("div", { class: "learn-live", hidden: true }, head, this.problem, this.result, this.numbers, this.activity, el("div", { class: "learn-halves" }, this.best, this.wrong.element), this.training, this.log);
  }

  // ---- the form

  acceptDrops() {
    const { form } = this;
    form.addEventListener("dragover", (event) => {
      event.preventDefault();
      form.classList.add("dropping");
    });
    form.addEventListener("dragleave", () => form.classList.remove("dropping"));
    form.addEventListener("drop", (event) => {
      event.preventDefault();
      form.classList.remove("dropping");
      this.app.attempt(this.open(event.dataTransfer.files[0]));
    });
  }

  async open(file) {
    if (!file) {
      return;
    }
    if (file.size > this.most) {
      setError(this.content, `${file.name} has ${grouped(file.size)} bytes: the most is ${grouped(this.most)}.`);
      return;
    }
    this.content.value = await file.text();
    this.name.value = file.name;
    this.file.value = "";
    setError(this.content, null);
  }

  takeSample(select) {
    if (select.value !== "") {
      const [, name, header, rule] = SAMPLES[Number(select.value)];
      this.content.value = sampleText(header, rule);
      this.name.value = name;
      setError(this.content, null);
      select.value = "";
    }
  }

  /** The request that the fields say, or null; what is wrong is told beside them. */
  request() {
    const [budget, seed] = [whole(this.budget.value), whole(this.seed.value)];
    const content = this.content.value;
    setError(this.content, content.trim() === "" ? "Paste examples, open a file, or try a sample." : content.length > this.most ? `This is more than ${grouped(this.most)} characters.` : null);
    setError(this.budget, budget === null || budget < 1 || budget > MOST_SECONDS ? `1 to ${MOST_SECONDS}.` : null);
    setError(this.seed, seed === null || seed > 4294967295 ? "A whole number, 0 or more." : null);
    const wrong = [this.content, this.budget, this.seed].find((control) => control.hasAttribute("aria-invalid"));
    if (wrong !== undefined) {
      wrong.closest("details")?.setAttribute("open", "");
      wrong.focus();
      return null;
    }
    const word = (control) => (control.value.trim() === "" ? null : control.value.trim());
    const more = { cells: word(this.cells), result: word(this.results), layout: word(this.layout) };
    return { name: this.name.value.slice(0, 200), content, budget, method: this.method.value, seed, ...more };
  }

  async start(event) {
    event.preventDefault();
    const request = this.request();
    if (request === null) {
      return;
    }
    this.startButton.disabled = true;
    this.refusal.hidden = true;
    try {
      const { job } = await this.app.api.post("/api/learn", request);
      await this.app.go("learn", { job });
      this.title.focus();
    } catch (error) {
      setText(this.refusal, error.message);
      this.refusal.hidden = false;
    } finally {
      this.startButton.disabled = false;
    }
  }

  // ---- jobs

  async show(values) {
    this.shows += 1;
    const show = this.shows;
    const known = await this.listJobs();
    if (show !== this.shows) {
      return; // the view was left, or another job was asked for
    }
    const job = values.job ?? this.job;
    if (!job) {
      return;
    }
    writeLink("learn", { job }, true);
    this.begin.hidden = true;
    this.live.hidden = false;
    if (known !== null && !known.some((one) => one.job === job && one.kind === "learn")) {
      this.forget();
      setText(this.title, "This job is not known any more");
      this.fail("The server was started again, or the job ended long ago. What it found is in the list of runs.");
      return;
    }
    this.follow(job);
  }

  hide() {
    this.shows += 1;
    this.close();
    clearTimeout(this.looking);
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** List the jobs; null if the server does not say them. */
  async listJobs() {
    let jobs;
    try {
      ({ jobs } = await this.app.api.get("/api/jobs"));
    } catch (error) {
      this.app.fail(this.jobs, error);
      return null;
    }
    const rows = jobs.filter(({ kind }) => kind === "learn").reverse().map(({ job, name, status, seconds }) => {
      const open = el("button", { type: "button", "aria-label": `Watch ${name}`, "data-job": job, onclick: () => this.app.go("learn", { job }) }, "Watch");
      return el("li", null, el("span", { class: "job-name" }, name), el("span", { class: "pale" }, `${STATUS[status]}, ${clock(seconds)}`), open);
    });
    const focused = document.activeElement?.dataset?.job;
    fill(this.jobs, rows.length > 0 ? el("ul", null, rows) : el("p", { class: "pale" }, "Nothing was learned yet since the server started."));
    [...this.jobs.querySelectorAll("[data-job]")].find((one) => one.dataset.job === focused)?.focus();
    clearTimeout(this.looking);
    if (!this.element.hidden && jobs.some(({ kind, status }) => kind === "learn" && status === "running")) {
      this.looking = setTimeout(() => this.listJobs(), REFRESH);
    }
    return jobs;
  }

  /** Begin to show a job from its first event. */
  forget() {
    this.close();
    Object.assign(this, { points: [], bestFound: null, found: null, now: 0, runs: new Map() });
    this.problem.hidden = this.best.hidden = this.result.hidden = this.training.hidden = true;
    this.wrong.element.hidden = true;
    this.stopButton.hidden = true;
    this.log.hidden = true; // until there are notes
    fill(this.notes);
    fill(this.numbers);
    setText(this.activity, "");
    setText(this.status, "");
  }

  follow(job) {
    this.forget();
    this.job = job;
    this.close = this.app.api.events(`/api/jobs/${encodeURIComponent(job)}/events`, {
      begin: ({ name }) => this.started(name),
      note: ({ text }) => this.note(text),
      activity: ({ text }) => setText(this.activity, text),
      report: (report) => this.report(report),
      best: (best) => this.better(best),
      training: (report) => this.train(report),
      result: (result) => this.finish(result),
      failed: ({ error }) => this.failed(error),
      end: ({ status }) => this.ended(status),
    });
  }

  started(name) {
    // After a broken connection everything comes again.
    Object.assign(this, { points: [], now: 0, runs: new Map() });
    fill(this.notes);
    this.problem.hidden = true;
    setText(this.title, name);
    this.setStatus("running");
    this.stopButton.hidden = false;
    this.stopButton.disabled = false;
  }

  setStatus(status) {
    setText(this.status, STATUS[status] ?? status);
    this.status.setAttribute("class", `tag ${{ done: "good", failed: "bad" }[status] ?? ""}`);
  }

  async stop() {
    this.stopButton.disabled = true;
    setText(this.activity, "Stopping: what was found is being saved.");
    try {
      await this.app.api.post(`/api/jobs/${encodeURIComponent(this.job)}/stop`, {});
    } catch (error) {
      this.fail(error.message);
    }
  }

  note(text) {
    this.notes.append(el("li", null, text));
    this.log.hidden = false;
    if (this.notes.childElementCount > MOST_NOTES) {
      this.notes.firstElementChild.remove();
    }
    setText(this.activity, text);
  }

  report(report) {
    const words = [
      ["candidates", grouped(report.candidates)],
      ["a second", grouped(Math.round(report.per_second))],
      ["seconds", report.seconds.toFixed(1)],
      ["rounds", grouped(report.rounds)],
      ["counterexamples", grouped(report.counterexamples)],
      ["refused by held-out examples", grouped(report.refused)],
    ];
    if (this.numbers.childElementCount !== words.length) {
      fill(this.numbers, words.map(([name]) => el("div", null, el("dt", null, name), el("dd"))));
    }
    words.forEach(([, value], index) => setText(this.numbers.children[index].lastChild, value));
    this.now = report.seconds;
    this.later();
  }

  better(best) {
    this.bestFound = best;
    this.points.push([best.seconds, best.wrong]);
    this.now = Math.max(this.now ?? 0, best.seconds);
    setText(this.bestWords, `After ${best.seconds.toFixed(1)} s, ${best.text}.`);
    const long = best.program === null; // too long to be sent
    setText(this.bestText, long ? "" : tableOf(best.program));
    this.watchBest.hidden = this.bestText.hidden = long;
    this.best.hidden = false;
    this.later();
  }

  train(report) {
    const name = report.group_name ?? "members";
    const points = this.runs.get(name) ?? { error: [], exact: [] };
    this.runs.set(name, points);
    points.error.push([report.seconds, report.best_error]);
    points.exact.push([report.seconds, report.best_hard]);
    setText(this.activity, `Training: level ${report.level} of ${report.max_complexity}, error ${short(report.best_error)}.`);
    this.later();
  }

  later() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.draw();
    }, REDRAW);
  }

  draw() {
    const { points } = this;
    this.wrong.element.hidden = points.length === 0;
    if (points.length > 0) {
      const found = this.found?.found === true;
      const last = [Math.max(this.now ?? 0, points.at(-1)[0]), found ? 0 : points.at(-1)[1]];
      this.wrong.show([{ name: "wrong examples", points: [...points, last], colour: 0, dash: 0, stepped: true }]);
    }
    this.training.hidden = this.runs.size === 0;
    const lines = (column) => [...this.runs].map(([name, found], index) => ({ name, points: found[column], colour: index, dash: index, stepped: false }));
    this.trained.show(lines("error"));
    this.exact.show(lines("exact"));
  }

  showFailure() {
    const { input, expected, cells, steps, program } = this.bestFound;
    const output = cells.map((cell) => `${cell}=${expected[cell]}`).join(" ");
    this.app.go("machine", { ...valuesOf({ text: program }), memory: input.join(" "), expected: output, steps });
  }

  // ---- the end

  fail(error) {
    this.problem.hidden = false;
    const [first, ...more] = error.split("\n");
    fill(this.problem, el("p", null, first), more.length > 0 ? el("ul", null, more.map((line) => el("li", null, line.replace(/^ *- /, "")))) : null);
  }

  /** The job has failed, or cannot be listened to any more. */
  async failed(error) {
    const { job } = this;
    this.fail(error);
    const known = await this.listJobs();
    const status = known?.find((one) => one.job === job)?.status;
    if (job === this.job && status !== undefined && status !== "running") {
      this.setStatus(status);
      this.stopButton.hidden = true;
    }
  }

  ended(status) {
    this.setStatus(status);
    this.stopButton.hidden = true;
    setText(this.activity, "");
    this.listJobs();
  }

  finish(result) {
    this.found = result;
    const { found, json, program, folder, interrupted } = result;
    const words = found ? "✓ Found: a program that is right on every example, held-out ones included." : interrupted ? "✗ Stopped before a program was right on every example. The best is kept." : "✗ Not found in this time. The best is kept.";
    const buttons = program === null ? null : el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", class: "primary", onclick: () => this.app.attempt(this.goTo("machine", result)) }, "Run it in the machine"),
      el("button", { type: "button", onclick: () => this.app.attempt(this.goTo("program", result)) }, "Show the program"),
      el("button", { type: "button", onclick: () => download({ name: `${folder.split("/").at(-1)}.nram`, type: "text/plain", content: program }) }, "Download program"),
      el("button", { type: "button", onclick: () => download({ name: "report.json", type: "application/json", content: JSON.stringify(json, null, 1) }) }, "Download report"),
    );
    fill(
      this.result,
      el("p", { class: `verdict ${found ? "good" : "bad"}` }, words),
      buttons,
      question(json.question),
      advice(found ? [] : json.advice),
      this.alternatives(json.programs),
      el("details", { open: true }, el("summary", null, "Report"), el("pre", { class: "code-block", tabindex: 0, role: "region", "aria-label": "Report" }, result.report)),
      el("p", { class: "hint" }, `All of it is in ${folder}.`),
    );
    this.result.hidden = false;
    this.best.hidden = true;
    this.draw();
    this.app.say(words);
  }

  /** Show the result in another view. The link names its folder: a job is forgotten when the server ends. */
  async goTo(view, result) {
    const more = view === "machine" ? exampleOf(result) : {};
    const run = await this.runOf(result.folder);
    await this.app.go(view, run === null ? { job: this.job, ...more } : { run, member: 0, ...more });
  }

  /** The id of a folder in the list of runs; null if it is not there. */
  async runOf(folder) {
    const name = folder.split("/").at(-1);
    const { runs } = await this.app.api.get("/api/runs");
    const found = runs.filter(({ id, kind }) => kind === "learn" && id.split("/").at(-1) === name);
    return found.length === 1 ? found[0].id : null;
  }

  /** A table of the programs that were kept. */
  alternatives(programs) {
    if (programs.length < 2) {
      return null;
    }
    const head = ["", "fits", "rows", "operations", "training", "held out", "halts", ""].map((name) => el("th", { scope: "col" }, name === "" ? el("span", { class: "sr" }, "program") : name));
    const rows = programs.map((one) => {
      const open = el("button", { type: "button", "aria-label": `Open program ${one.number}`, onclick: () => this.app.go("machine", valuesOf({ text: JSON.stringify(one.program) })) }, "Open");
      const cells = [one.exact ? "✓ yes" : "nearly", one.rows, one.operations, one.training_exact, one.held_out_exact, one.halts ? "yes" : "not always"];
      return el("tr", null, el("th", { scope: "row" }, `${one.number}${one.chosen ? " chosen" : ""}`), cells.map((value) => el("td", null, String(value))), el("td", null, open));
    });
    return el("div", null, el("h3", null, "Programs that were kept"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Programs that were kept" }, el("table", null, el("thead", null, el("tr", null, head)), el("tbody", null, rows))));
  }
}

/** The table of a program's text, without its header. */
function tableOf(text) {
  const cut = text.indexOf("\n\n");
  return (cut < 0 ? text : text.slice(cut + 2)).trimEnd();
}

/** The values of a link that runs the result on a small example. */
function exampleOf({ example }) {
  const output = example.cells.map((cell) => `${cell}=${example.expected[cell]}`).join(" ");
  return { memory: example.memory.join(" "), expected: output, steps: example.steps };
}

/** An input on which programs that fit disagree. */
function question(found) {
  if (!found) {
    return null;
  }
  const one = (value) => (Array.isArray(value) ? value.join(" ") || "(empty)" : String(value));
  const inWords = (values) => (values !== null && typeof values === "object" && !Array.isArray(values) ? Object.entries(values).map(([name, value]) => `${name} = ${one(value)}`).join(", ") : one(values));
  const answers = found.answers.map(({ programs, results }) => el("li", null, `${programs.length === 1 ? "Program" : "Programs"} ${programs.join(", ")}: ${inWords(results)}`));
  return el("div", { class: "finding" }, el("p", null, `Programs that fit disagree on this input: ${found.columns ? inWords(found.columns) : found.input.join(" ")}. Which answer is right?`), el("ul", { class: "answers" }, answers), el("p", { class: "hint" }, "Add it to the examples with its right result, and learn again."));
}

function advice(lines) {
  return lines.length === 0 ? null : el("div", null, el("h3", null, "What may help"), el("ul", { class: "answers" }, lines.map((line) => el("li", null, line))));
}
