// Links that restore what the page shows: #VIEW?key=value&...

export function readLink() {
  const hash = location.hash.replace(/^#/, "");
  const cut = hash.indexOf("?");
  const view = cut < 0 ? hash : hash.slice(0, cut);
  return { view, values: Object.fromEntries(new URLSearchParams(cut < 0 ? "" : hash.slice(cut + 1))) };
}

/** The link of a state, without values that are empty. */
export function linkOf(view, values) {
  const kept = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const words = new URLSearchParams(kept).toString();
  return words === "" ? `#${view}` : `#${view}?${words}`;
}

/** Put the state into the address; `replace` keeps it out of the history of the browser. */
export function writeLink(view, values, replace) {
  const link = linkOf(view, values);
  if (link !== location.hash) {
    history[replace ? "replaceState" : "pushState"](null, "", link);
  }
}

/** The forms of a program that was extracted from a network. Links leave out the first one. */
export const FORMS = [
  ["task", "simplified for the task's inputs"],
  ["every-input", "simplified, the same on every memory"],
  ["raw", "as extracted"],
];

/** What a link's values say about its program: a reference for the server, or null. */
export function programOf(values, key = "program") {
  const reference = referenceOf(values, key);
  const form = values[key === "program" ? "form" : `${key}_form`];
  const known = FORMS.slice(1).some(([name]) => name === form);
  return known && reference !== null && ("name" in reference || "run" in reference) ? { ...reference, form } : reference;
}

function referenceOf(values, key) {
  if (key === "program" && values.run) {
    return { run: values.run, member: whole(values.member) ?? 0 };
  }
  if (key === "program" && values.job) {
    return { job: values.job };
  }
  const words = values[key];
  if (!words) {
    return null;
  }
  if (words.startsWith("run:")) {
    const [member, ...run] = words.slice(4).split(":");
    return { run: run.join(":"), member: whole(member) ?? 0 };
  }
  return words.startsWith("text:") ? { text: words.slice(5) } : { name: words };
}

/** The values that name this program in a link. */
export function valuesOf(program, key = "program") {
  if (program === null) {
    return {};
  }
  const form = { [key === "program" ? "form" : `${key}_form`]: program.form };
  if ("text" in program) {
    return { [key]: `text:${program.text}` };
  }
  if ("name" in program) {
    return { [key]: program.name, ...form };
  }
  const member = `run:${program.member ?? 0}:${program.run}`; // a second program has no keys for a run
  return key === "program" || !("run" in program) ? { ...program } : { [key]: member, ...form };
}

/** A whole number that is not negative, or null for anything else. */
export function whole(word) {
  return /^[0-9]{1,9}$/.test(word ?? "") ? Number(word) : null;
}
