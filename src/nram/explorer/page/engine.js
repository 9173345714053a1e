// A run of a program without a server: the source of steps of an exported page.
// MODULES, written by nram from the project's own table of modules, says what each module does.

const SNAPSHOT_EVERY = 500; // steps between the situations that are kept, in a short run
const MOST_SNAPSHOTS = 200;
const SLICE = 20; // milliseconds of work, after which the page may do something else
const BETWEEN_CLOCKS = 256; // steps between two looks at the clock

/** A program in the middle of a run. */
class Machine {
  constructor(table, modules, memory) {
    this.table = table;
    this.modules = modules;
    this.memory = memory.slice();
    this.registers = table.registers.map(() => 0);
    this.state = 0;
    this.steps = 0;
    this.halted = false;
  }

  /** The index of the first row whose conditions hold. */
  choose() {
    const rows = this.table.states[this.state];
    return rows.findIndex((row) =>
      this.table.registers.every(
        (name, i) => !Object.hasOwn(row.when, name) || (row.when[name] === "=0") === (this.registers[i] === 0),
      ),
    );
  }

  /** Carry out the next step, and say what happens in it. */
  step() {
    const index = this.choose();
    const row = this.table.states[this.state][index];
    const done = { state: this.state, row: index, registers: this.registers.slice() };
    const outputs = [];
    const value = (word) => {
      const register = this.table.registers.indexOf(word);
      if (register >= 0) return this.registers[register];
      return word[0] === "o" ? outputs[Number(word.slice(1)) - 1] : Number(word);
    };
    done.arguments = [];
    done.reads = [];
    done.writes = [];
    for (const [name, ...words] of row.operations) {
      const module = this.modules[name];
      const given = words.map(value);
      const output = module.compute(this.memory.length, this.memory, given);
      done.arguments.push(given);
      outputs.push(output);
      if (module.memory === "reads") done.reads.push([given[0], output]);
      if (module.memory === "writes") done.writes.push([given[0], given[1]]);
    }
    done.outputs = outputs;
    done.next = row.registers.map(value);
    done.halt = row.halt;
    this.registers = done.next.slice();
    this.state = row.next;
    this.steps += 1;
    this.halted = row.halt;
    return done;
  }

  copy() {
    const other = new Machine(this.table, this.modules, this.memory);
    other.registers = this.registers.slice();
    other.state = this.state;
    other.steps = this.steps;
    other.halted = this.halted;
    return other;
  }
}

/** The steps of one run, as the server's /api/trace gives them. The run is carried out when its first piece is wanted. */
export class Engine {
  /** `table` is a program's JSON form; `modules` is MODULES. */
  constructor(table, modules, memory, limit) {
    this.limit = limit;
    this.snapshots = [new Machine(table, modules, memory)];
    this.running = null;
    this.stopped = false;
  }

  /** Leave a run that nobody wants any more. */
  stop() {
    this.stopped = true;
  }

  /** Carry out the whole run, in slices. When there are too many snapshots, every other one goes. */
  async run() {
    const machine = this.snapshots[0].copy();
    let every = SNAPSHOT_EVERY;
    let began = performance.now();
    while (!machine.halted && machine.steps < this.limit) {
      machine.step();
      if (machine.steps % every === 0) {
        this.snapshots.push(machine.copy());
        if (this.snapshots.length === MOST_SNAPSHOTS) {
          this.snapshots = this.snapshots.filter((_, index) => index % 2 === 0);
          every *= 2;
        }
      }
      if (machine.steps % BETWEEN_CLOCKS === 0 && performance.now() - began > SLICE) {
        await new Promise((done) => setTimeout(done, 0));
        if (this.stopped) throw new Error("This run was left for another one.");
        began = performance.now();
      }
    }
    this.end = machine;
  }

  /** The answer of /api/trace to the same question. */
  async piece(start, count) {
    this.running ??= this.run();
    await this.running;
    const from = Math.min(start, this.end.steps);
    const nearest = this.snapshots.filter((one) => one.steps <= from).at(-1);
    const machine = nearest.copy();
    while (machine.steps < from) machine.step();
    const found = {
      total: this.end.steps,
      halted: this.end.halted,
      limit: this.limit,
      memory_size: this.end.memory.length,
      start: from,
      memory: machine.memory.slice(),
      registers: machine.registers.slice(),
      state: machine.state,
      steps: [],
      ending: { memory: this.end.memory.slice(), registers: this.end.registers.slice() },
    };
    while (found.steps.length < count && machine.steps < this.end.steps) found.steps.push(machine.step());
    return found;
  }
}
