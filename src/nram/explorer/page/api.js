// Talks to the server. Errors carry the server's own words, which are meant for people.

class ApiError extends Error {
  /** `lines` are the problems of a program's text, with their line numbers. */
  constructor(message, status, lines) {
    super(message);
    this.status = status;
    this.lines = lines;
  }
}

export class Api {
  constructor() {
    this.streams = new Set();
    // A browser allows six connections to a server, for all its tabs: a page that nobody sees holds none.
    document.addEventListener("visibilitychange", () => this.streams.forEach((stream) => (document.hidden ? stream.pause() : stream.open())));
  }

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
      const busy = answer.status === 503; // from the server of HTTP itself, which speaks no JSON
      const words = busy ? "The server has too many connections: close other pages, or try again in a moment." : `The server's answer could not be read (status ${answer.status}).`;
      throw new ApiError(words, answer.status, null);
    }
    if (!answer.ok) {
      throw new ApiError(value.error ?? `The server refused this (status ${answer.status}).`, answer.status, value.lines ?? null);
    }
    return value;
  }

  /**
   * Listen to server-sent events. Returns a function that ends it. "end" and "failed" end it too; "failed" is also told
   * of a stream that the server refuses, with its words. A page that becomes visible again listens from the beginning.
   */
  events(path, handlers) {
    const stream = new Stream(path, handlers, this.streams);
    if (!document.hidden) {
      stream.open();
    }
    return () => stream.close();
  }

  /** A run of a program on a memory, for a stage: see player.js. */
  source(program, memory, size, steps) {
    return new ServerSource(this, program, memory, size, steps);
  }
}

class Stream {
  constructor(path, handlers, all) {
    Object.assign(this, { path, handlers, all, source: null });
    all.add(this);
  }

  open() {
    if (this.source !== null) {
      return;
    }
    const source = new EventSource(this.path);
    this.source = source;
    const ends = { end: () => {}, failed: () => {} };
    for (const [name, handler] of Object.entries({ ...ends, ...this.handlers })) {
      source.addEventListener(name, (event) => {
        if (name in ends) {
          this.close();
        }
        handler(event.data ? JSON.parse(event.data) : {});
      });
    }
    source.addEventListener("error", () => {
      if (source === this.source && source.readyState === EventSource.CLOSED) {
        this.refused();
      }
    });
  }

  /** The browser does not say why there is no stream: the same address, asked for JSON, does. */
  async refused() {
    this.close();
    const stop = new AbortController();
    let words = null;
    try {
      const answer = await fetch(this.path, { headers: { Accept: "application/json" }, signal: stop.signal });
      words = answer.ok ? null : (await answer.json()).error;
    } catch {
      // it is told below
    }
    stop.abort();
    this.handlers.failed?.({ error: words ?? "The connection to the server was lost." });
  }

  pause() {
    this.source?.close();
    this.source = null;
  }

  close() {
    this.pause();
    this.all.delete(this);
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
