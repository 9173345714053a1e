// Draws pictures that the server has laid out: a list of shapes becomes SVG, and a step's values are put on its wires.

import { svgEl, setText } from "./dom.js";

const DIGIT = 7.3; // width of a digit of a value on a wire
const SMALLEST = 0.62; // of its own size, for a picture in a small window

/** An SVG of a scene, in its own size. Wires of one source are one group. */
export function drawing(scene, title) {
  const picture = svgEl("svg", {
    class: "nram-picture",
    viewBox: `0 0 ${scene.width} ${scene.height}`,
    width: scene.width,
    height: scene.height,
    role: "img",
    "aria-label": title,
  });
  picture.style.minWidth = `${Math.round(SMALLEST * scene.width)}px`; // below this it scrolls
  let group = null;
  let parent = picture;
  for (const shape of scene.shapes) {
    const own = shape.group ?? null;
    if (own !== group) {
      group = own;
      parent = own === null ? picture : picture.appendChild(svgEl("g", { class: "source", "data-part": own }));
    }
    parent.append(drawnShape(shape));
  }
  return picture;
}

function drawnShape(shape) {
  if (shape.shape === "text") {
    const anchor = shape.anchor === "start" ? null : shape.anchor;
    return svgEl("text", { class: shape.kind, x: shape.x, y: shape.y, "text-anchor": anchor }, shape.words);
  }
  if (shape.shape === "rect") {
    const { x, y, width, height } = shape;
    return svgEl("rect", { class: shape.kind, x, y, width, height, rx: shape.radius || null });
  }
  if (shape.shape === "circle") {
    return svgEl("circle", { class: shape.kind, cx: shape.x, cy: shape.y, r: shape.radius });
  }
  const words = shape.points.map((point, index) => (index === 0 ? "M" : point.length === 2 ? "L" : "C") + point.join(" "));
  return svgEl("path", { class: shape.kind, d: words.join("") + (shape.closed ? "Z" : "") });
}

/** The circuit of a row, whose values change from step to step. */
export class CircuitDrawing {
  constructor(scene, title) {
    this.scene = scene;
    this.element = drawing(scene, title);
    this.badges = scene.parts.map((part) => this.badge(part));
  }

  /** A small plate for the value of a part: at the right of what passes it on, below what receives it. */
  badge(part) {
    const [box, words] = [svgEl("rect", { class: "plate", rx: 4, height: 16 }), svgEl("text", { class: "plate-value", "text-anchor": "middle" })];
    const badge = svgEl("g", { class: `badge ${part.kind}` }, box, words);
    this.element.append(badge);
    return { badge, box, words, part };
  }

  /** Show the values of one step: one for every part of the scene, null for none. */
  show(values) {
    this.badges.forEach(({ badge, box, words, part }, index) => {
      const value = values[index];
      badge.setAttribute("visibility", value === null ? "hidden" : "visible");
      if (value === null) {
        return;
      }
      const wide = Math.max(16, DIGIT * String(value).length + 8);
      const over = part.kind === "module" ? 1 : -5; // the corner of a module has the order of its access
      const x = part.kind === "after" ? part.x + part.width / 2 : part.x + part.width + wide / 2 + over;
      const y = part.kind === "after" ? part.y + part.height + 3 : part.y + part.height / 2 - 11;
      box.setAttribute("x", x - wide / 2);
      box.setAttribute("y", y - 8);
      box.setAttribute("width", wide);
      words.setAttribute("x", x);
      words.setAttribute("y", y + 4);
      setText(words, String(value));
    });
  }
}
