// Reading a run in pieces, and the controls that move through it.
//
// A source is an object with `async piece(start, count)`, which answers like POST /api/trace. Its program may run for
// millions of steps, so only a few pieces are kept, and the next one is fetched before it is needed.

import { counted, el, freshId, grouped, icon, setAttribute, setIcon, setText } from "./dom.js";

const PIECE = 500; // steps that are fetched at once
const KEPT_PIECES = 5;
const NEAR = 120; // steps before the end of a piece at which the next one is fetched

/** The states of one run, by position: 0 is before the first step, `total` is the end. */
export class RunReader {
  constructor(source) {
    this.source = source;
    this.pieces = new Map(); // by number; the one used last is at the end
    this.total = 0;
  }

  /** Read the beginning: after this the length of the run is known. */
  async open() {
    const piece = await this.piece(0);
    this.total = piece.total;
    this.halted = piece.halted;
    this.limit = piece.limit;
    this.size = piece.memory_size;
    this.ending = piece.ending;
  }

  /** Piece k has the steps k * PIECE to (k + 1) * PIECE, and the one before, to see what it changed. */
  async piece(number) {
    const known = this.pieces.get(number);
    this.pieces.delete(number);
    const start = Math.max(0, number * PIECE - 1);
    const wanted = known ?? this.source.piece(start, (number + 1) * PIECE - start);
    this.pieces.set(number, wanted);
    while (this.pieces.size > KEPT_PIECES) {
      this.pieces.delete(this.pieces.keys().next().value);
    }
    try {
      return await wanted;
    } catch (error) {
      this.pieces.delete(number);
      throw error;
    }
  }

  /** What the machine looks like at this position. */
  async frame(position) {
    const steps = Math.max(this.total - 1, 0);
    const number = Math.floor(Math.min(position, steps) / PIECE);
    const piece = await this.piece(number);
    this.prefetch(position, number);
    return this.replayed(piece, position);
  }

  /** The step from this position on; null at the end of the run. */
  async step(position) {
    if (position >= this.total) {
      return null;
    }
    const piece = await this.piece(Math.floor(position / PIECE));
    return piece.steps[position - piece.start];
  }

  prefetch(position, number) {
    const within = position - number * PIECE;
    const next = within > PIECE - NEAR ? number + 1 : within < NEAR ? number - 1 : -1;
    if (next >= 0 && next * PIECE < this.total && !this.pieces.has(next)) {
      this.piece(next).catch(() => {}); // who needs it will ask again and get the error
    }
  }

  replayed(piece, position) {
    const memory = piece.memory.slice();
    const before = new Map(); // cells that the last step wrote, and what they held
    for (let step = piece.start; step < position; step += 1) {
      before.clear();
      for (const [pointer, value] of piece.steps[step - piece.start].writes) {
        if (!before.has(pointer)) {
          before.set(pointer, memory[pointer]);
        }
        memory[pointer] = value;
      }
    }
    const step = piece.steps[position - piece.start] ?? null;
    const last = piece.steps[position - piece.start - 1] ?? null;
    const registers = step?.registers ?? last?.next ?? piece.registers;
    const changed = new Set([...before].filter(([cell, value]) => memory[cell] !== value).map(([cell]) => cell));
    return { piece, position, total: this.total, halted: this.halted, size: this.size, step, last, memory, registers, changed };
  }
}

const SPEEDS = [0.5, 1, 2, 5, 10, 30, 100, 1000];

/** Buttons, time line and clock. `onSeek(position)` shows a position, and the clock waits for it. */
export class Player {
  constructor(onSeek) {
    this.onSeek = onSeek;
    this.total = 0;
    this.position = 0;
    this.playing = false;
    this.wishes = 0; // positions that were asked for so far
    this.showing = null; // the work of showing them
    this.build();
  }

  build() {
    const button = (name, label, keys, action) =>
      el("button", { type: "button", class: "control", "aria-label": label, title: `${label} (${keys})`, onclick: action }, icon(name));
    this.first = button("first", "To the start", "Home", () => this.go(0));
    this.back = button("back", "One step back", "Left arrow", () => this.go(this.position - 1));
    this.toggle = button("play", "Play", "Space", () => this.playPause());
    this.toggle.classList.add("main");
    this.forward = button("forward", "One step on", "Right arrow", () => this.go(this.position + 1));
    this.end = button("last", "To the end", "End", () => this.go(this.total));
    const seek = (event) => this.go(Number(event.target.value));
    this.line = el("input", { type: "range", class: "time-line", min: 0, max: 0, value: 0, "aria-label": "Time line", oninput: seek });
    const [box, speed] = [freshId("position"), freshId("speed")];
    this.box = el("input", { type: "number", id: box, class: "position", min: 0, value: 0, onchange: seek, onkeydown: (event) => event.key === "Enter" && this.line.focus() });
    this.of = el("span", { class: "of" });
    const option = (value) => el("option", { value, selected: value === 2 }, value === 0.5 ? "½ / s" : `${value} / s`);
    this.speed = el("select", { id: speed }, SPEEDS.map(option));
    this.element = el(
      "div",
      { class: "player", role: "group", "aria-label": "Player" },
      el("div", { class: "controls" }, this.first, this.back, this.toggle, this.forward, this.end),
      this.line,
      el("div", { class: "jump" }, el("label", { for: box }, "After"), this.box, this.of),
      el("div", { class: "speed" }, el("label", { for: speed }, "Speed"), this.speed),
    );
  }

  /** A new run of so many steps. */
  open(total, position) {
    this.pause();
    this.total = total;
    this.line.max = total;
    this.box.max = total;
    const digits = String(total).length;
    this.box.style.width = `${digits + 4}ch`;
    setText(this.of, `of ${counted(total, "step")}`);
    return this.seek(Math.min(Math.max(position, 0), total));
  }

  /** Show a position, at the user's wish: the clock stops. */
  go(position) {
    this.pause();
    return this.seek(Math.min(Math.max(Math.round(position) || 0, 0), this.total));
  }

  /** While a position is fetched only the last wish is kept: a time line that is dragged asks for many. */
  seek(position) {
    this.position = position;
    this.wishes += 1;
    this.refresh();
    this.showing ??= this.showLast();
    return this.showing;
  }

  async showLast() {
    try {
      let wish;
      do {
        wish = this.wishes;
        await this.onSeek(this.position);
      } while (wish !== this.wishes);
    } finally {
      this.showing = null;
    }
  }

  refresh() {
    const { position, total } = this;
    this.line.value = position;
    setAttribute(this.line, "aria-valuetext", `position ${grouped(position)} of ${grouped(total)}`);
    if (document.activeElement !== this.box || this.box.value === "") {
      this.box.value = position;
    }
    // aria-disabled keeps the focus where it is: a button that disappears from the keyboard's order loses it
    const disable = (off) => (button) => setAttribute(button, "aria-disabled", off ? "true" : null);
    [this.first, this.back].forEach(disable(position === 0));
    [this.forward, this.end].forEach(disable(position === total));
  }

  playPause() {
    return this.playing ? this.pause() : this.play();
  }

  pause() {
    if (this.playing) {
      this.playing = false;
      this.showToggle();
      this.onPlaying?.(false);
    }
  }

  showToggle() {
    setIcon(this.toggle, this.playing ? "pause" : "play");
    this.toggle.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.toggle.title = `${this.playing ? "Pause" : "Play"} (Space)`;
  }

  async play() {
    if (this.total === 0) {
      return;
    }
    this.playing = true;
    this.showToggle();
    this.onPlaying?.(true);
    if (this.position === this.total) {
      await this.seek(0);
    }
    let [began, from] = [performance.now(), this.position];
    let speed = this.speed.value;
    while (this.playing && this.position < this.total) {
      const now = await new Promise(requestAnimationFrame);
      if (this.speed.value !== speed) {
        [began, from, speed] = [now, this.position, this.speed.value];
      }
      const due = Math.min(from + Math.floor(((now - began) / 1000) * Number(speed)), this.total);
      if (this.playing && due > this.position) {
        await this.seek(due);
      }
    }
    this.pause();
  }

  faster(by) {
    const index = this.speed.selectedIndex + by;
    this.speed.selectedIndex = Math.min(Math.max(index, 0), SPEEDS.length - 1);
  }

  /** Whether the key was one of the player's. */
  handleKey(event) {
    const actions = {
      ArrowLeft: () => this.go(this.position - 1),
      ArrowRight: () => this.go(this.position + 1),
      PageUp: () => this.go(this.position - 10),
      PageDown: () => this.go(this.position + 10),
      Home: () => this.go(0),
      End: () => this.go(this.total),
      " ": () => this.playPause(),
      "+": () => this.faster(1),
      "-": () => this.faster(-1),
      g: () => this.box.select(),
    };
    const action = actions[event.key];
    if (action === undefined) {
      return false;
    }
    event.preventDefault();
    action();
    return true;
  }
}
