// The engine for pages and for node: `const engine = await quoll(); const net = engine.load({param, bin});`.
// Types and units: quoll.d.ts.
import createCore from "./quoll-core.mjs";

const ORDERS = { RGB: 0, BGR: 1, GRAY: 2 };

/** Sizes of inputs by name, as the Input layers of a text param say. */
function sizesOf(text) {
  const sizes = {};
  for (const line of text.split("\n")) {
    const words = line.trim().split(/\s+/);
    if (words[0] !== "Input") continue;
    const axes = [0, 0, 0, 0];  // w, h, c, d by parameter: 0, 1, 2, 11
    for (const word of words.slice(5)) {
      const [id, value] = word.split("=");
      const at = { 0: 0, 1: 1, 2: 2, 11: 3 }[id];
      if (at !== undefined) axes[at] = Number(value);
    }
    const [w, h, c, d] = axes;
    sizes[words[4]] = [c, d, h, w].filter(Boolean);
  }
  return sizes;
}

class Net {
  constructor(core, threads, options) {
    this.core = core;
    let param = options.param;
    if (typeof param === "string") param = new TextEncoder().encode(param);
    const isBinary = param[0] === 0xdd && param[1] === 0x85 && param[2] === 0x76 && param[3] === 0;
    const bin = options.bin || new Uint8Array(0);
    this.memory = [this.copy(param, 1), this.copy(bin, 4)];
    this.session = core._quoll_js_load(this.memory[0], param.length, this.memory[1], bin.length, threads);
    if (!this.session) {
      this.memory.forEach(p => core._free(p));
      throw new Error(this.message() || "the model cannot be loaded");
    }
    this.inputSizes = isBinary ? {} : sizesOf(new TextDecoder().decode(param));
    this.inputs = this.lines(core._quoll_js_inputs(this.session));
    this.outputs = this.lines(core._quoll_js_outputs(this.session));
    this.times = [];
  }

  /** The engine's memory as it is now; it grows while the engine runs. */
  bytes() { return new Uint8Array(this.core.sharedMemory?.buffer ?? this.core.HEAPU8.buffer); }
  message() { return this.core.UTF8ToString(this.core._quoll_js_message()); }
  lines(p) { return this.core.UTF8ToString(p).split("\n").filter(Boolean); }

  /** Bytes in the engine's memory, with zeros behind them. */
  copy(bytes, zeros) {
    const p = this.core._malloc(bytes.length + zeros);
    if (!p) throw new Error(`no memory for ${bytes.length} bytes`);
    const memory = this.bytes();
    memory.set(bytes, p);
    memory.fill(0, p + bytes.length, p + bytes.length + zeros);
    return p;
  }

  /** Calls f with copies of the arrays, which are freed afterwards. */
  withCopies(arrays, f) {
    const copies = arrays.map(a => this.copy(new Uint8Array(a.buffer, a.byteOffset, a.byteLength), 1));
    try {
      if (f(...copies) < 0) throw new Error(this.message());
    } finally {
      copies.forEach(p => this.core._free(p));
    }
  }

  input(name, { sizes, values }) {
    const count = sizes.reduce((a, b) => a * b, 1);
    if (count !== values.length) throw new Error(`input ${name}: sizes ${sizes} need ${count} values, got ${values.length}`);
    this.withCopies([new TextEncoder().encode(name), Float32Array.from(values), Int32Array.from(sizes)],
      (n, v, s) => this.core._quoll_js_input(this.session, n, v, s, sizes.length));
  }

  pixels(name, image, options = {}) {
    const said = this.inputSizes[name] || [];
    const width = options.width || said[said.length - 1], height = options.height || said[said.length - 2];
    if (!width || !height) throw new Error(`input ${name}: the model does not say its size; give width and height`);
    const order = ORDERS[options.order || "RGB"];
    if (order === undefined) throw new Error(`order ${options.order}: expected RGB, BGR or GRAY`);
    const affine = [0, 1, 2].flatMap(c => [options.mean?.[c] ?? 0, options.norm?.[c] ?? 1]);
    this.withCopies([new TextEncoder().encode(name), image.data, Float32Array.from(affine)],
      (n, p, a) => this.core._quoll_js_pixels(this.session, n, p, image.width, image.height, order, width, height, a));
  }

  run() {
    const core = this.core;
    if (core._quoll_js_run(this.session) < 0) throw new Error(this.message());
    const results = {}, sizes = core._malloc(16), memory = this.bytes().buffer;
    this.outputs.forEach((name, i) => {
      const dims = core._quoll_js_output_sizes(this.session, i, sizes), axes = [...new Int32Array(memory, sizes, dims)];
      const count = axes.reduce((a, b) => a * b, 1);
      results[name] = { sizes: axes, values: new Float32Array(memory, core._quoll_js_output(this.session, i), count).slice() };
    });
    core._free(sizes);
    this.times = this.lines(core._quoll_js_times(this.session)).map(line => {
      const [type, layer, ms] = line.split("\t");
      return { type, name: layer, ms: Number(ms) };
    });
    return results;
  }

  free() {
    this.core._quoll_js_free(this.session);
    this.memory.forEach(p => this.core._free(p));
    this.session = 0;
  }
}

const PAGE = 65536, FIRST_MEMORY = 32 << 20, MOST_MEMORY = 2 ** 31;  // bytes, as the core was linked

/** The engine with threads. Null: the page may not share memory, or the files are not there. */
async function threadedCore(threads) {
  if (threads < 2 || !globalThis.crossOriginIsolated) return null;
  try {
    const { default: createThreadedCore } = await import("./quoll-core-threads.mjs");
    const sharedMemory = new WebAssembly.Memory({ initial: FIRST_MEMORY / PAGE, maximum: MOST_MEMORY / PAGE, shared: true });
    const core = await createThreadedCore({ workers: threads - 1, wasmMemory: sharedMemory });
    return Object.assign(core, { sharedMemory });
  } catch (e) {
    console.warn("quoll: one thread, as quoll-core-threads.mjs cannot be used:", e);
    return null;
  }
}

async function plainCore(wasm) {
  if (typeof process === "object" && process.versions?.node) {
    // Emscripten's older modules look for these names, which node has in scripts only.
    const [{ createRequire }, { fileURLToPath }] = await Promise.all([import("node:module"), import("node:url")]);
    globalThis.require ??= createRequire(import.meta.url);
    globalThis.__dirname ??= fileURLToPath(new URL(".", import.meta.url));
    wasm ??= globalThis.require("fs").readFileSync(new URL("quoll-core.wasm", import.meta.url));
  }
  return createCore(wasm ? { wasmBinary: wasm } : {});
}

const MOST_THREADS = 8;

export async function quoll(options = {}) {
  const wanted = options.threads ?? Math.min(globalThis.navigator?.hardwareConcurrency ?? 1, MOST_THREADS);
  const threaded = options.wasm ? null : await threadedCore(wanted);
  const core = threaded ?? await plainCore(options.wasm), threads = threaded ? wanted : 1;
  return { threads, load: model => new Net(core, threads, model) };
}
export default quoll;
