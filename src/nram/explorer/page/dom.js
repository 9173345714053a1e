// Elements of the page. Data becomes text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";
let lastId = 0;

/** An element. Attributes that begin with "on" and hold a function are handlers; true is "", false and null are left out. */
export function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svgEl(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function" && name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put these children in place of the present ones. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Set the text only if it differs: most of a page stays the same from step to step. */
export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

export function setClass(element, classes) {
  if (element.getAttribute("class") !== classes) {
    element.setAttribute("class", classes);
  }
}

/** Set an attribute, or remove it if the value is null. */
export function setAttribute(element, name, value) {
  if (value === null) {
    element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

/** A new id, for labels and descriptions. */
export function freshId(word) {
  lastId += 1;
  return `${word}-${lastId}`;
}

/** "1 step", "4 steps". */
export function counted(count, word) {
  return `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** A number with commas between its thousands. */
export function grouped(count) {
  return count.toLocaleString("en-US");
}

/** A table of words. */
export function table(columns, rows) {
  return el(
    "table",
    null,
    el("thead", null, el("tr", null, columns.map((words) => el("th", { scope: "col" }, words)))),
    el("tbody", null, rows.map((row) => el("tr", null, row.map((words) => el("td", null, words))))),
  );
}

/** A labelled field: the control, its label, and a place for its error. */
export function field(label, control, hint = null) {
  const id = control.id || freshId("field");
  control.id = id;
  const error = el("p", { class: "error", id: `${id}-error`, hidden: true });
  const note = hint === null ? null : el("p", { class: "hint", id: `${id}-hint` }, hint);
  setAttribute(control, "aria-describedby", note === null ? error.id : `${note.id} ${error.id}`);
  return el("div", { class: "field" }, el("label", { for: id }, label), control, note, error);
}

/** Show what is wrong at a control that `field` labelled; null takes the message away. */
export function setError(control, message) {
  const error = document.getElementById(`${control.id}-error`) ?? control.parentElement.querySelector(".error");
  setAttribute(control, "aria-invalid", message === null ? null : "true");
  setText(error, message ?? "");
  error.hidden = message === null;
}

const ICONS = {
  first: "M5 4v12M16 4l-8 6 8 6z",
  back: "M14 4l-8 6 8 6z",
  play: "M6 3.5l11 6.5-11 6.5z",
  pause: "M6 4h3v12H6zM11.5 4h3v12h-3z",
  forward: "M6 4l8 6-8 6z",
  last: "M15 4v12M4 4l8 6-8 6z",
};

/** A drawing for a button; the button's label says in words what it does. */
export function icon(name) {
  const path = svgEl("path", { d: ICONS[name] });
  return svgEl("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" }, path);
}

export function setIcon(button, name) {
  button.querySelector("path").setAttribute("d", ICONS[name]);
}
