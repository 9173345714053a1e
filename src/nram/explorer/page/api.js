// Talks to the server. Errors carry the server's own words, which are meant for people.

export class ApiError extends Error {
  /** `lines` are the problems of a program's text, with their line numbers. */
  constructor(message, status, lines) {
    super(message);
    this.status = status;
    this.lines = lines;
  }
}

export class Api {
  async post(path, body) {
    const headers = { "Content-Type": "application/json", "X-Nram": "1" };
    return this.answered(fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
  }

  async get(path) {
    return this.answered(fetch(path));
  }

  async answered(request) {
    let answer;
    try {
      answer = await request;
    } catch {
      throw new ApiError("The server does not answer. Is `nram serve` still running?", 0, null);
    }
    let value = null;
    try {
      value = await answer.json();
    } catch {
      throw new ApiError(`The server's answer could not be read (status ${answer.status}).`, answer.status, null);
    }
    if (!answer.ok) {
      throw new ApiError(value.error ?? `The server refused this (status ${answer.status}).`, answer.status, value.lines ?? null);
    }
    return value;
  }

  /** Listen to server-sent events. Returns a function that ends it. "end" ends it too; "failed" is told of a broken line. */
  events(path, handlers) {
    const source = new EventSource(path);
    const close = () => source.close();
    for (const [name, handler] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handler(event.data ? JSON.parse(event.data) : {}));
    }
    source.addEventListener("end", close);
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) {
        handlers.failed?.({ error: "The connection to the server was lost." });
      }
    });
    return close;
  }

  /** A run of a program on a memory, for a stage: see player.js. */
  source(program, memory, size, steps) {
    return new ServerSource(this, program, memory, size, steps);
  }
}

class ServerSource {
  constructor(api, program, memory, size, steps) {
    this.api = api;
    this.request = { program, memory, memory_size: size, max_steps: steps };
  }

  async piece(start, count) {
    return this.api.post("/api/trace", { ...this.request, start, count });
  }
}

/** Put a file into the browser's downloads. */
export function download(file) {
  const address = URL.createObjectURL(new Blob([file.content], { type: file.type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
