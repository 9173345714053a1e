// Line charts: axes, lines with styles of their own, a legend, and values that can be read with the mouse or the keyboard.

import { el, fill, freshId, setAttribute, setText, svgEl } from "./dom.js";

const WIDTH = 560; // until the place of the chart is known
const HEIGHT = 230;
const LEFT = 52;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 34;
const TICKS = 5;
const MARKERS = 8; // of a line, so that lines differ without their colour
const LEAST_LOG = 1e-4; // smaller values stand at the foot of a logarithmic axis
const DASHES = ["", "7 4", "2 3", "10 3 2 3"];
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];

/** "0:35", "12:04", "3:10:00". */
export function clock(seconds) {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** A number as an axis or a legend shows it. */
export function short(value) {
  if (value === null || value === undefined) {
    return "–";
  }
  if (value !== 0 && Math.abs(value) < 0.001) {
    return value.toExponential(0);
  }
  return Math.abs(value) >= 1e6 ? `${Number((value / 1e6).toPrecision(3))}M` : String(Number(value.toPrecision(3)));
}

export function percent(value) {
  return value === null || value === undefined ? "–" : `${Number((100 * value).toFixed(1))}%`;
}

/**
 * A chart. `show(lines)` draws lines {name, points: [[x, y], ...], colour, dash, stepped}; y may be null.
 * Options: title; log (of the vertical axis); least and most (of the vertical axis); words(y) and of(x) as texts; hint.
 */
export class Chart {
  constructor({ title, log = false, least = null, most = null, words = short, of = clock, along = "time", hint = null }) {
    Object.assign(this, { title, log, least, most, words, of, along });
    this.lines = [];
    this.at = null;
    this.width = WIDTH;
    this.grid = svgEl("g", { class: "grid" });
    this.curves = svgEl("g");
    this.cursor = svgEl("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    this.dots = svgEl("g", { class: "dots" });
    const picture = svgEl("svg", { class: "curves", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" }, this.grid, this.curves, this.cursor, this.dots);
    this.picture = picture;
    this.readout = el("p", { class: "curve-readout", "aria-live": "polite" });
    this.legend = el("ul", { class: "curve-legend" });
    const heading = el("h3", { id: freshId("chart") }, title);
    this.frame = el(
      "div",
      {
        class: "curve-frame",
        tabindex: 0,
        role: "group",
        "aria-label": `${title}: arrow keys read the values`,
        onkeydown: (event) => this.handleKey(event),
        onpointermove: (event) => this.point(event),
        onpointerleave: () => this.read(null),
        onblur: () => this.read(null),
      },
      picture,
    );
    this.element = el("section", { class: "panel curve-panel", "aria-labelledby": heading.id }, heading, hint === null ? null : el("p", { class: "hint" }, hint), this.frame, this.readout, this.legend);
    new ResizeObserver(() => this.fit()).observe(this.frame);
  }

  /** Draw as wide as the place is, so that letters keep their size. */
  fit() {
    const width = this.frame.clientWidth;
    if (width > 0 && Math.abs(width - this.width) > 4) {
      this.width = width;
      setAttribute(this.picture, "viewBox", `0 0 ${width} ${HEIGHT}`);
      this.show(this.lines);
    }
  }

  show(lines) {
    this.lines = lines.map((line) => ({ ...line, points: line.points.filter(([, y]) => y !== null && y !== undefined) }));
    this.measure();
    this.drawGrid();
    fill(this.curves, this.lines.map((line) => this.curve(line)));
    fill(this.legend, this.lines.map((line) => el("li", null, sample(line), el("span", null, line.name))));
    this.read(this.at);
  }

  /** The ranges of both axes. */
  measure() {
    const points = this.lines.flatMap(({ points }) => points);
    const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
    this.x0 = 0;
    this.x1 = largest(xs, 1);
    if (this.log) {
      const smallest = -largest(ys.filter((y) => y > 0).map((y) => -y), -1);
      this.y0 = this.least ?? Math.max(LEAST_LOG, 10 ** Math.floor(Math.log10(smallest)));
      this.y1 = this.most ?? 10 ** Math.ceil(Math.log10(Math.max(largest(ys, 1), 10 * this.y0)));
    } else {
      this.y0 = this.least ?? 0;
      this.y1 = this.most ?? Math.max(largest(ys, 1), this.y0 + 1);
    }
  }

  placeX(x) {
    return LEFT + ((x - this.x0) / Math.max(1e-9, this.x1 - this.x0)) * (this.width - LEFT - RIGHT);
  }

  placeY(y) {
    const scale = this.log ? (value) => Math.log10(Math.max(value, this.y0)) : (value) => value;
    const share = (scale(y) - scale(this.y0)) / Math.max(1e-9, scale(this.y1) - scale(this.y0));
    return HEIGHT - BOTTOM - Math.min(1, Math.max(0, share)) * (HEIGHT - TOP - BOTTOM);
  }

  drawGrid() {
    const marks = [];
    for (const y of this.log ? decades(this.y0, this.y1) : evenTicks(this.y0, this.y1)) {
      const place = this.placeY(y);
      marks.push(svgEl("line", { x1: LEFT, x2: this.width - RIGHT, y1: place, y2: place }));
      marks.push(svgEl("text", { x: LEFT - 7, y: place + 4, "text-anchor": "end" }, this.words(y)));
    }
    const times = this.of === clock ? timeTicks(this.x1, this.width / 90) : evenTicks(this.x0, this.x1);
    for (const x of times) {
      const place = this.placeX(x);
      marks.push(svgEl("line", { x1: place, x2: place, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }));
      marks.push(svgEl("text", { x: place, y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, this.of(x)));
    }
    marks.push(svgEl("text", { class: "axis-name", x: this.width - RIGHT, y: HEIGHT - 3, "text-anchor": "end" }, this.along));
    fill(this.grid, marks);
  }

  curve({ points, colour, dash, stepped }) {
    const places = points.map(([x, y]) => [this.placeX(x), this.placeY(y)]);
    let path = "";
    places.forEach(([x, y], index) => {
      const to = `${x.toFixed(1)} ${y.toFixed(1)}`;
      path += index === 0 ? `M${to}` : stepped ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `L${to}`;
    });
    const every = Math.max(1, Math.ceil(places.length / MARKERS));
    const marked = places.filter((_, index) => index % every === 0 || index === places.length - 1);
    return svgEl(
      "g",
      { class: `curve colour-${colour % 6}` },
      svgEl("path", { d: path, "stroke-dasharray": DASHES[dash % DASHES.length] || null }),
      marked.map(([x, y]) => marker(colour, x, y)),
    );
  }

  // ---- values at a place

  /** All places on the horizontal axis at which there is a value. */
  stops() {
    return [...new Set(this.lines.flatMap(({ points }) => points.map(([x]) => x)))].sort((one, other) => one - other);
  }

  handleKey(event) {
    const stops = this.stops();
    const now = this.at === null ? stops.length - 1 : nearest(stops, this.at);
    const far = Math.max(1, Math.round(stops.length / 10));
    const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - far, PageDown: now + far, Home: 0, End: stops.length - 1 };
    if (event.key === "Escape") {
      this.read(null);
    } else if (event.key in moves && stops.length > 0) {
      event.preventDefault();
      event.stopPropagation();
      this.read(stops[Math.min(stops.length - 1, Math.max(0, this.at === null ? now : moves[event.key]))]);
    }
  }

  point(event) {
    const box = this.picture.getBoundingClientRect();
    const x = this.x0 + (((event.clientX - box.left) / box.width) * this.width - LEFT) / (this.width - LEFT - RIGHT) * (this.x1 - this.x0);
    const stops = this.stops();
    this.read(stops.length === 0 ? null : stops[nearest(stops, x)]);
  }

  /** Show the values at a place, or none. */
  read(x) {
    this.at = x;
    setAttribute(this.cursor, "visibility", x === null ? "hidden" : "visible");
    if (x === null) {
      setText(this.readout, "");
      fill(this.dots);
      return;
    }
    const place = this.placeX(x);
    setAttribute(this.cursor, "x1", place);
    setAttribute(this.cursor, "x2", place);
    const found = this.lines.map((line) => [line, lastUntil(line.points, x)]).filter(([, point]) => point !== null);
    fill(this.dots, found.map(([{ colour }, point]) => svgEl("circle", { class: `colour-${colour % 6}`, cx: this.placeX(point[0]), cy: this.placeY(point[1]), r: 4 })));
    setText(this.readout, `At ${this.of(x)}: ${found.map(([{ name }, point]) => `${name} ${this.words(point[1])}`).join(", ")}`);
  }
}

/** A line of a legend, drawn as its curve is. */
function sample({ colour, dash }) {
  const line = svgEl("path", { d: "M1 7H33", "stroke-dasharray": DASHES[dash % DASHES.length] || null });
  const group = svgEl("g", { class: `curve colour-${colour % 6}` }, line, marker(colour, 17, 7));
  return svgEl("svg", { class: "curve-sample", viewBox: "0 0 34 14", width: 34, height: 14, "aria-hidden": "true" }, group);
}

/** A small shape: every colour has its own. */
function marker(colour, x, y) {
  const r = 3;
  const shapes = [
    () => svgEl("circle", { cx: x, cy: y, r }),
    () => svgEl("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r }),
    () => svgEl("path", { class: "solid", d: `M${x} ${y - r - 1}l${r + 1} ${2 * r}h${-2 * r - 2}z` }),
    () => svgEl("path", { class: "solid", d: `M${x} ${y - r - 1}l${r + 1} ${r + 1}l${-r - 1} ${r + 1}l${-r - 1} ${-r - 1}z` }),
    () => svgEl("path", { class: "solid", d: `M${x} ${y + r + 1}l${r + 1} ${-2 * r}h${-2 * r - 2}z` }),
    () => svgEl("path", { class: "cross", d: `M${x - r} ${y - r}l${2 * r} ${2 * r}M${x - r} ${y + r}l${2 * r} ${-2 * r}` }),
  ];
  return shapes[colour % shapes.length]();
}

// ---- numbers

function largest(values, otherwise) {
  return values.reduce((most, value) => Math.max(most, value), values.length > 0 ? -Infinity : otherwise);
}

/** The index of the number that is nearest to x, of ascending ones. */
function nearest(ascending, x) {
  let [low, high] = [0, ascending.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    [low, high] = ascending[middle] <= x ? [middle, high] : [low, middle];
  }
  return high >= 0 && Math.abs(ascending[high] - x) < Math.abs(ascending[low] - x) ? high : low;
}

/** The last point up to x; null if there is none. */
function lastUntil(points, x) {
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    [low, high] = points[middle][0] <= x ? [middle + 1, high] : [low, middle];
  }
  return low === 0 ? null : points[low - 1];
}

function evenTicks(from, to) {
  const rough = (to - from) / TICKS;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((one) => one >= rough * 0.999);
  const found = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to + step * 1e-6; tick += step) {
    found.push(Number(tick.toPrecision(6)));
  }
  return found;
}

function decades(from, to) {
  const found = [];
  for (let power = Math.ceil(Math.log10(from) - 1e-9); power <= Math.log10(to) + 1e-9; power += 1) {
    found.push(Number((10 ** power).toPrecision(1)));
  }
  return found;
}

function timeTicks(to, most) {
  const step = SECONDS.find((one) => to / one <= most) ?? 604800 * Math.ceil(to / 604800 / most);
  return Array.from({ length: Math.floor(to / step) + 1 }, (_, index) => index * step);
}
