// Where READ and WRITE point in every step: the run at a glance. Time goes to the right, cell 0 is at the bottom.

import { el, grouped, setText, svgEl } from "./dom.js";

const LEFT = 44; // pixels for the cells' numbers
const ABOVE = 6;
const UNDER = 34; // for the rows and the steps
const HIGHEST = 150;
const WIDEST_STEP = 26;
const CELL = 13; // pixels of a cell in a small memory

// One listener for all panels, also those to come: one of each panel would keep its whole stage for ever.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.querySelectorAll(".paths canvas").forEach((canvas) => canvas.draw()));

/** The paths of the pointers. `onJump(position)` is called when a step is clicked. */
export class PathsPanel {
  constructor(onJump) {
    this.onJump = onJump;
    this.piece = null;
    this.canvas = el("canvas", { role: "img", "aria-label": "Cells that the steps read and write, over time", onclick: (event) => this.jump(event) });
    this.marker = el("div", { class: "paths-now" });
    this.place = el("div", { class: "paths" }, this.canvas, this.marker);
    this.range = el("p", { class: "hint" });
    this.element = el("section", { class: "panel" }, el("h3", null, "Where it reads and writes"), this.place, this.range, key());
    new ResizeObserver(() => this.draw()).observe(this.place);
    this.canvas.draw = () => this.draw();
  }

  show(frame) {
    this.position = frame.position;
    if (frame.piece !== this.piece) {
      this.piece = frame.piece;
      this.size = frame.size;
      this.draw();
    }
    this.mark();
  }

  draw() {
    const wide = this.place.clientWidth;
    if (this.piece === null || wide === 0) {
      return;
    }
    const { steps, start } = this.piece;
    const tall = Math.max(60, Math.min(HIGHEST, this.size * CELL));
    this.step = Math.min(WIDEST_STEP, (wide - LEFT - 4) / Math.max(steps.length, 1));
    const brush = cleared(this.canvas, wide, ABOVE + tall + UNDER);
    const colours = getComputedStyle(this.canvas);
    const colour = (name) => colours.getPropertyValue(`--${name}`).trim();
    const middle = (cell) => ABOVE + tall - ((cell + 0.5) * tall) / this.size;
    brush.fillStyle = colour("band");
    brush.fillRect(LEFT, ABOVE, steps.length * this.step, tall);
    const dot = Math.max(2, Math.min(7, this.step - 1, Math.max(4, tall / this.size - 2)));
    steps.forEach((step, index) => {
      const x = LEFT + (index + 0.5) * this.step;
      brush.strokeStyle = colour("read");
      brush.lineWidth = 1.6;
      for (const [pointer] of step.reads) {
        brush.beginPath();
        brush.arc(x, middle(pointer), dot / 2 + 1, 0, 7);
        brush.stroke();
      }
      brush.fillStyle = colour("written");
      for (const [pointer] of step.writes) {
        brush.fillRect(x - dot / 2, middle(pointer) - dot / 2, dot, dot);
      }
    });
    this.label(brush, colour, middle);
    const last = start + steps.length;
    setText(this.range, steps.length === this.piece.total ? "" : `Steps ${grouped(start + 1)} to ${grouped(last)}.`);
    this.canvas.setAttribute("aria-label", `Cells that steps ${grouped(start + 1)} to ${grouped(last)} read and write, over time`);
    this.mark();
  }

  label(brush, colour, middle) {
    const { steps, start } = this.piece;
    const under = middle(-0.5);
    brush.fillStyle = colour("pale");
    brush.font = `11px ${colour("mono")}`;
    brush.textBaseline = "middle";
    brush.textAlign = "right";
    const every = Math.ceil((14 * this.size) / (under - ABOVE));
    for (let cell = 0; cell < this.size; cell += every) {
      brush.fillText(String(cell), LEFT - 6, middle(cell));
    }
    const rows = this.step >= 10; // wide enough for their numbers
    const low = under + (rows ? 25 : 10);
    if (rows) {
      brush.fillText("row", LEFT - 6, under + 10);
    }
    brush.fillText("step", LEFT - 6, low);
    brush.textAlign = "center";
    const wide = brush.measureText(grouped(start + steps.length)).width;
    const each = Math.ceil((wide + 8) / this.step);
    const end = LEFT + Math.max(steps.length * this.step, wide);
    let free = LEFT; // from here on there is no number yet
    steps.forEach((step, index) => {
      const x = LEFT + (index + 0.5) * this.step;
      if (rows) {
        brush.fillText(String(step.row + 1), x, under + 10);
      }
      const left = Math.max(x - wide / 2, index === 0 ? LEFT : 0); // the first one beside the word, not on it
      if (index % each === 0 && left >= free && left + wide <= end + 1) {
        brush.fillText(grouped(start + index + 1), left + wide / 2, low);
        free = left + wide + 4;
      }
    });
  }

  /** Put the marker on the present step. */
  mark() {
    if (this.step === undefined) {
      return;
    }
    const index = this.position - this.piece.start;
    this.marker.hidden = index >= this.piece.steps.length;
    this.marker.style.left = `${LEFT + index * this.step}px`;
    this.marker.style.width = `${Math.max(2, this.step)}px`;
  }

  jump(event) {
    const index = Math.floor((event.offsetX - LEFT) / this.step);
    if (index >= 0 && index < this.piece.steps.length) {
      this.onJump(this.piece.start + index);
    }
  }
}

/** An empty canvas of this size, as sharp as the screen. */
export function cleared(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: width * scale, height: height * scale });
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const brush = canvas.getContext("2d");
  brush.scale(scale, scale);
  return brush;
}

function key() {
  const sign = (shape) => svgEl("svg", { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, shape);
  const read = sign(svgEl("circle", { class: "paths-read", cx: 6, cy: 6, r: 4 }));
  const written = sign(svgEl("rect", { class: "paths-written", x: 2, y: 2, width: 8, height: 8 }));
  return el("ul", { class: "legend" }, el("li", null, read, "read"), el("li", null, written, "written"), el("li", null, "Click a step to go there."));
}
