// The distributions of a soft run, and how they are drawn.

import { el, svgEl } from "./dom.js";
import { cleared } from "./paths.js";

const LARGEST = 26; // pixels of a column
const AXIS = 26; // pixels for the values at the left and the cells below
const TOP = 6;
const MOST_NAMED = 8; // cells

/** A run of a network as POST /api/soft gives it. Distributions are bytes: 255 is certain. */
export class SoftRun {
  constructor(answer, about) {
    this.size = answer.memory_size;
    this.steps = answer.steps;
    this.registers = answer.registers;
    this.best = answer.best;
    this.willing = answer.willing;
    this.finish = answer.finish;
    this.valueNames = about.values;
    this.wireCount = about.wires.length;
    this.tape = bytes(answer.tape);
    this.heat = bytes(answer.register_heat);
    this.wires = bytes(answer.wires);
  }

  tapeAt(position) {
    const length = this.size * this.size;
    return this.tape.subarray(position * length, (position + 1) * length);
  }

  registersAt(position) {
    const length = this.registers * this.size;
    return this.heat.subarray(position * length, (position + 1) * length);
  }

  /** What a wire mixes in a step, the largest share first. */
  choices(position, wire) {
    const length = this.valueNames.length;
    const start = (position * this.wireCount + wire) * length;
    const found = [...this.wires.subarray(start, start + length)].map((weight, index) => ({ weight, name: this.valueNames[index] }));
    return found.sort((a, b) => b.weight - a.weight).slice(0, 3);
  }

  /** Where soft and hard differ, and how likely the machine has halted. */
  words(position, hard) {
    const best = this.best.memory[position];
    const different = best.map((_, cell) => cell).filter((cell) => best[cell] !== hard[cell]);
    const halted = this.finish.slice(0, position).reduce((sum, one) => sum + one, 0);
    const where = position === this.steps ? "After the last step" : `Before step ${position + 1} of ${this.steps}`;
    const cells = `${different.length === 1 ? "cell" : "cells"} ${different.slice(0, MOST_NAMED).join(", ")}`;
    const same = different.length === 0 ? "the likeliest value of every cell is that of the program" : `the likeliest values differ from the program's in ${cells}`;
    return `${where}: ${same}; halted with probability ${Math.min(halted, 1).toFixed(2)}.`;
  }
}

function bytes(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function columnWidth(room, columns) {
  return Math.max(5, Math.min(LARGEST, Math.floor((room - AXIS - 2) / columns)));
}

/** The pixels that so many columns take, where there is so much room. */
export function heatWidth(room, columns) {
  return AXIS + columns * columnWidth(room, columns) + 1;
}

/** Draw columns of distributions in so many pixels; `marked` are values that get a square. Returns how tall a value is. */
export function drawHeat(canvas, room, heat, columns, { marked = null, tallest = LARGEST }) {
  const values = heat.length / columns.length;
  const step = columnWidth(room, columns.length);
  const tall = Math.max(5, Math.min(step, tallest, Math.floor(420 / values)));
  const [width, height] = [heatWidth(room, columns.length), TOP + values * tall + AXIS];
  const brush = cleared(canvas, width, height);
  const colours = getComputedStyle(canvas);
  const colour = (name) => colours.getPropertyValue(`--${name}`).trim();
  const top = (value) => TOP + (values - 1 - value) * tall;
  brush.fillStyle = colour("band");
  brush.fillRect(AXIS, TOP, columns.length * step, values * tall);
  brush.fillStyle = colour("accent");
  for (let column = 0; column < columns.length; column += 1) {
    for (let value = 0; value < values; value += 1) {
      const weight = heat[column * values + value];
      if (weight > 1) {
        brush.globalAlpha = weight / 255;
        brush.fillRect(AXIS + column * step, top(value), step - 1, tall - 1);
      }
    }
  }
  brush.globalAlpha = 1;
  drawAxes(brush, { columns, values, step, tall, top }, colour);
  if (marked !== null) {
    brush.strokeStyle = colour("ink");
    brush.lineWidth = 1.5;
    marked.forEach((value, column) => brush.strokeRect(AXIS + column * step + 0.5, top(value) + 0.5, step - 2, tall - 2));
  }
  canvas.place = (x, y) => {
    const column = Math.floor((x * width - AXIS) / step);
    const value = values - 1 - Math.floor((y * height - TOP) / tall);
    return column >= 0 && column < columns.length && value >= 0 && value < values ? { column, value } : null;
  };
  return tall;
}

function drawAxes(brush, { columns, values, step, tall, top }, colour) {
  brush.fillStyle = colour("pale");
  brush.font = `11px ${colour("mono")}`;
  brush.textBaseline = "middle";
  const every = (room, size) => Math.max(1, Math.ceil(room / size));
  brush.textAlign = "right";
  for (let value = 0; value < values; value += every(13, tall)) {
    brush.fillText(String(value), AXIS - 6, top(value) + tall / 2);
  }
  brush.textAlign = "center";
  const wide = Math.max(...columns.map((words) => words.length)) * 7 + 6;
  for (let column = 0; column < columns.length; column += every(wide, step)) {
    brush.fillText(columns[column], AXIS + (column + 0.5) * step, TOP + values * tall + 12);
  }
}

/** The willingness to halt after every step, and the probability that it halts there. */
export function haltingChart(soft, position) {
  const [width, height, left, low] = [420, 170, 34, 24];
  const x = (step) => left + ((step + 0.5) * (width - left - 6)) / soft.steps;
  const y = (share) => 8 + (1 - share) * (height - low - 8);
  const wide = Math.max(1.5, ((width - left - 6) / soft.steps) * 0.6);
  const words = (text, place) => svgEl("text", { class: "axis", ...place }, String(text));
  const grid = [0, 0.5, 1].map((share) => [
    svgEl("line", { class: "grid", x1: left, x2: width, y1: y(share), y2: y(share) }),
    words(share, { x: left - 6, y: y(share) + 4, "text-anchor": "end" }),
  ]);
  const bars = soft.finish.map((share, step) => {
    const height = Math.max(0, y(0) - y(share));
    return svgEl("rect", { class: "finish", x: x(step) - wide / 2, width: wide, y: y(share), height });
  });
  const line = soft.willing.map((share, step) => `${step === 0 ? "M" : "L"}${x(step)} ${y(share)}`).join("");
  const dots = soft.willing.map((share, step) => svgEl("circle", { class: "willing-dot", cx: x(step), cy: y(share), r: soft.steps > 60 ? 0 : 2.5 }));
  const every = Math.max(1, Math.ceil(soft.steps / 12));
  const numbered = soft.finish.map((_, step) => step).filter((step) => step % every === 0);
  const names = numbered.map((step) => words(step + 1, { x: x(step), y: height - 6, "text-anchor": "middle" }));
  const now = position < soft.steps ? svgEl("line", { class: "now", x1: x(position), x2: x(position), y1: 4, y2: y(0) }) : null;
  const likely = soft.finish.indexOf(Math.max(...soft.finish));
  const label = `Most likely it halts after step ${likely + 1}, with probability ${soft.finish[likely].toFixed(2)}.`;
  const frame = { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label };
  const key = (kind, meaning) => el("li", null, el("span", { class: `key-line ${kind}`, "aria-hidden": "true" }), meaning);
  return [
    svgEl("svg", frame, grid, bars, svgEl("path", { class: "willing", d: line }), dots, now, names),
    el(
      "div",
      { class: "halting-words" },
      el("ul", { class: "legend" }, key("finish", "halts after this step"), key("willing", "willingness to halt"), key("now", "this step")),
      el("p", { class: "hint" }, label),
    ),
  ];
}

/** A wire and the largest shares of what it mixes. */
export function wireRow({ name, choices }) {
  const shares = choices.filter(({ weight }) => weight > 5);
  const bars = shares.map(({ weight }, index) => {
    const bar = el("span", { class: `share share-${index}` });
    bar.style.width = `${(weight / 255) * 100}%`;
    return bar;
  });
  const words = shares.map((choice) => `${choice.name} ${Math.round((choice.weight / 255) * 100)}%`).join(", ");
  const bar = el("span", { class: "bar", "aria-hidden": "true" }, bars);
  return el("li", null, el("span", { class: "wire-name" }, name), bar, el("span", { class: "wire-words" }, words));
}
