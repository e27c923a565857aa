// The demo page: digits drawn with the mouse, and models that are dropped in.
const $ = id => document.getElementById(id);

function element(tag, text, cls) {
  const e = document.createElement(tag);
  if (text != null) e.textContent = text;
  if (cls) e.className = cls;
  return e;
}

/** Bytes of a script element that make_page.py has packed. */
async function unpack(id) {
  const bytes = Uint8Array.from(atob($(id).textContent), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function showBars(parent, rows) {
  parent.replaceChildren(...rows.map(([name, part]) => {
    const row = element("div", null, "row"), bar = element("i");
    bar.style.width = 100 * Math.max(0, Math.min(1, part)) + "%";
    row.append(element("span", name), bar, element("span", (100 * part).toFixed(1) + " %"));
    return row;
  }));
}

/** Runs the net again for 30 ms, a slower one ten times or half a second, since a page's clock has steps of 0.1 ms: the mean time in ms;
    net.times become means. */
function measure(net) {
  const begin = performance.now(), sums = net.times.map(() => 0);
  let runs = 0, ms = 0;
  do {
    net.run();
    net.times.forEach((t, i) => { sums[i] += t.ms; });
    runs++;
    ms = performance.now() - begin;
  } while (ms < 30 || (runs < 10 && ms < 500));
  net.times.forEach((t, i) => { t.ms = sums[i] / runs; });
  return ms / runs;
}

function showTimes(net, title, ms) {
  const most = Math.max(...net.times.map(t => t.ms), 1e-9);
  $("times-of").textContent = `${title}: ${ms.toFixed(2)} ms in ${net.times.length} layers`;
  const head = element("tr");
  head.append(element("th", "layer", "t"), element("th", "type", "t"), element("th", "ms"), element("th", "", "t"));
  $("times").replaceChildren(head, ...net.times.map(t => {
    const row = element("tr"), cell = element("td", null, "t"), bar = element("span", null, "time");
    bar.style.width = 8 * t.ms / most + "rem";
    cell.append(bar);
    row.append(element("td", t.name, "t"), element("td", t.type, "t"), element("td", t.ms.toFixed(3)), cell);
    return row;
  }));
}

// ---------------------------------------------------------------- digits

function drawingPad(net) {
  const pad = $("pad"), pen = pad.getContext("2d", { willReadFrequently: true });
  const clear = () => {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, pad.width, pad.height);
    $("digit").textContent = "\u00a0";
    showBars($("digit-bars"), [...Array(10).keys()].map(i => [String(i), 0]));
  };
  let last = null;
  const at = e => ({ x: e.offsetX * pad.width / pad.clientWidth, y: e.offsetY * pad.height / pad.clientHeight });
  pad.onpointerdown = e => { last = at(e); pad.setPointerCapture(e.pointerId); };
  pad.onpointermove = e => {
    if (!last) return;
    const here = at(e);
    pen.strokeStyle = "#000";
    pen.lineWidth = 30;
    pen.lineCap = "round";
    pen.beginPath();
    pen.moveTo(last.x, last.y);
    pen.lineTo(here.x, here.y);
    pen.stroke();
    last = here;
    read();
  };
  pad.onpointerup = () => {
    if (!last) return;
    last = null;
    if (!read()) return;
    const ms = measure(net);
    $("pad-time").textContent = ms.toFixed(2) + " ms";
    showTimes(net, "digits", ms);
  };
  $("clear").onclick = clear;

  // The model knows digits of 8 x 8 pixels that fill their square, ink 1: what is drawn is cut out. False where nothing is.
  function read() {
    const image = pen.getImageData(0, 0, pad.width, pad.height), box = inkBox(image);
    if (!box) return false;
    const small = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    small.canvas.width = small.canvas.height = 8;
    small.imageSmoothingQuality = "high";
    small.fillStyle = "#fff";
    small.fillRect(0, 0, 8, 8);
    const side = Math.max(box.w, box.h, 40), k = 8 / side;
    small.drawImage(pad, box.x, box.y, box.w, box.h, (8 - box.w * k) / 2, (8 - box.h * k) / 2, box.w * k, box.h * k);
    const pixels = small.getImageData(0, 0, 8, 8).data, values = new Float32Array(64);
    for (let i = 0; i < 64; i++) values[i] = 1 - pixels[4 * i] / 255;
    net.input("data", { sizes: [1, 8, 8], values });
    const scores = net.run().prob.values;
    $("digit").textContent = scores.indexOf(Math.max(...scores));
    showBars($("digit-bars"), [...scores].map((p, i) => [String(i), p]));
    return true;
  }
  clear();
}

/** The rectangle around the dark pixels, null where there are none. */
function inkBox({ data, width, height }) {
  let x0 = width, y0 = height, x1 = -1, y1 = -1;
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      if (data[4 * (y * width + x)] < 128) {
        x0 = Math.min(x0, x), x1 = Math.max(x1, x), y0 = Math.min(y0, y), y1 = Math.max(y1, y);
      }
  return x1 < 0 ? null : { x: x0, y: y0, w: x1 - x0 + 1, h: y1 - y0 + 1 };
}

// ---------------------------------------------------------------- boxes

const sigmoid = x => 1 / (1 + Math.exp(-x));

/** Cells of a grid: score, centre, size, kinds. Corners in parts of the picture. */
function gridBoxes({ sizes, values }, least) {
  const [channels, h, w] = sizes, boxes = [];
  if (sizes.length !== 3 || channels < 6) throw new Error(`a grid has sizes (5 + kinds, h, w), got (${sizes})`);
  for (let y = 0; y < h; y++)
    for (let x = 0; x < w; x++) {
      const of = c => values[(c * h + y) * w + x];
      let kind = 0;
      for (let k = 1; k < channels - 5; k++) if (of(5 + k) > of(5 + kind)) kind = k;
      const score = of(0) ** .6 * of(5 + kind) ** .4;
      if (score < least) continue;
      const cx = (Math.tanh(of(1)) + x) / w, cy = (Math.tanh(of(2)) + y) / h, bw = sigmoid(of(3)), bh = sigmoid(of(4));
      boxes.push({ x0: cx - bw / 2, y0: cy - bh / 2, x1: cx + bw / 2, y1: cy + bh / 2, score, kind });
    }
  return suppress(boxes, .45);
}

/** Rows of kind, score, x0, y0, x1, y1 in parts of the picture. */
function rowBoxes({ sizes, values }, least) {
  if (sizes[sizes.length - 1] !== 6) throw new Error(`rows have six values, got sizes (${sizes})`);
  const boxes = [];
  for (let i = 0; i + 6 <= values.length; i += 6) {
    const [kind, score, x0, y0, x1, y1] = values.subarray(i, i + 6);
    if (score >= least) boxes.push({ x0, y0, x1, y1, score, kind });
  }
  return boxes;
}

/** Of the slim-320 face detector: a row of (no face, face) and one of offsets (x, y, w, h) for each anchor, a square of these sides in
    the centre of each cell of four grids, in parts of 320 x 240. Offsets are as in SSD (Liu et al., 2016). */
function anchorBoxes(scores, offsets, least) {
  const boxes = [], W = 320, H = 240;
  let i = 0;
  for (const [cell, sides] of [[8, [10, 16, 24]], [16, [32, 48]], [32, [64, 96]], [64, [128, 192, 256]]])
    for (let y = 0; y < Math.ceil(H / cell); y++)
      for (let x = 0; x < Math.ceil(W / cell); x++)
        for (const side of sides) {
          const score = scores.values[2 * i + 1], [dx, dy, dw, dh] = offsets.values.subarray(4 * i, 4 * i + 4);
          i++;
          if (score < least) continue;
          const aw = Math.min(1, side / W), ah = Math.min(1, side / H);
          const cx = (x + .5) / Math.ceil(W / cell) + dx * .1 * aw, cy = (y + .5) / Math.ceil(H / cell) + dy * .1 * ah;
          const w = aw * Math.exp(.2 * dw), h = ah * Math.exp(.2 * dh);
          boxes.push({ x0: cx - w / 2, y0: cy - h / 2, x1: cx + w / 2, y1: cy + h / 2, score, kind: 0 });
        }
  if (2 * i !== scores.values.length || 4 * i !== offsets.values.length) throw new Error(`slim-320 has ${i} anchors, got (${scores.sizes}) and (${offsets.sizes})`);
  return suppress(boxes, .3);
}

/** What outputs of such sizes mean. */
function kindOf(results) {
  const all = Object.values(results), last = all[0].sizes[all[0].sizes.length - 1];
  if (all.length === 2 && all.some(r => r.sizes.at(-1) === 2) && all.some(r => r.sizes.at(-1) === 4)) return "anchors";
  if (all.length > 1) return "values";
  if (all[0].sizes.length === 3 && all[0].sizes[0] > 5 && all[0].sizes[1] > 1 && last > 1) return "grid";
  return last === 6 && all[0].sizes.length > 1 ? "rows" : "classes";
}

/** The best of each group of boxes that overlap. */
function suppress(boxes, limit) {
  const area = b => (b.x1 - b.x0) * (b.y1 - b.y0), kept = [];
  for (const a of boxes.sort((p, q) => q.score - p.score)) {
    const hidden = kept.some(b => {
      const w = Math.min(a.x1, b.x1) - Math.max(a.x0, b.x0), h = Math.min(a.y1, b.y1) - Math.max(a.y0, b.y0);
      const both = Math.max(w, 0) * Math.max(h, 0);
      return both > limit * (area(a) + area(b) - both);
    });
    if (!hidden) kept.push(a);
  }
  return kept;
}

function drawBoxes(canvas, boxes, name) {
  const pen = canvas.getContext("2d"), W = canvas.width, H = canvas.height, thick = Math.max(2, W / 320);
  pen.lineWidth = thick;
  pen.font = `${Math.max(12, W / 45)}px sans-serif`;
  const colour = b => `hsl(${b.kind * 47 % 360},85%,45%)`, labels = [];
  for (const b of boxes) {
    pen.strokeStyle = colour(b);
    pen.strokeRect(b.x0 * W, b.y0 * H, (b.x1 - b.x0) * W, (b.y1 - b.y0) * H);
  }
  for (const b of boxes) {
    // Outside, so that small boxes are seen: above or below, at the left or the right, where no other label is.
    const text = `${name(b.kind)} ${b.score.toFixed(2)}`, size = parseFloat(pen.font), h = size + 6, w = pen.measureText(text).width + 8;
    const xs = [b.x0 * W - thick / 2, b.x1 * W + thick / 2 - w].map(x => Math.max(0, Math.min(W - w, x)));
    const places = [b.y0 * H - h, b.y1 * H].flatMap(y => xs.map(x => ({ x, y }))).filter(p => p.y >= 0 && p.y + h <= H);
    const isFree = p => labels.every(q => p.x + w <= q.x || q.x + q.w <= p.x || p.y + h <= q.y || q.y + h <= p.y);
    const { x, y } = places.find(isFree) || places[0] || { x: xs[0], y: 0 };
    labels.push({ x, y, w });
    pen.fillStyle = colour(b);
    pen.fillRect(x, y, w, h);
    pen.fillStyle = "#fff";
    pen.fillText(text, x + 4, y + size);
  }
}

// ---------------------------------------------------------------- models that are dropped in

/** Numbers of a text such as "1/255 0.5". */
const numbers = text => text.split(/[\s,]+/).filter(Boolean).map(word => word.split("/").map(Number).reduce((a, b) => a / b));

/** How detectors that say it nowhere in their files want their pictures. */
const KNOWN = [
  { has: net => net.outputs.includes("scores") && net.outputs.includes("boxes"), size: "320 x 240", order: "RGB", mean: "127 127 127", norm: "1/128 1/128 1/128", names: ["face"] },  // slim-320
  { has: net => net.inputs[0] === "input.1" && net.outputs[0] === "758", size: "352 x 352", order: "BGR", mean: "0 0 0", norm: "1/255 1/255 1/255" },  // FastestDet
];

class Visitor {
  constructor(engine) {
    this.engine = engine;
    this.files = {};
    this.names = [];
    const drop = $("drop");
    // Anywhere: what misses the box would be opened in place of the page.
    document.ondragover = e => { e.preventDefault(); drop.classList.add("over"); };
    document.ondragleave = () => drop.classList.remove("over");
    document.ondrop = e => { e.preventDefault(); drop.classList.remove("over"); this.take(e.dataTransfer.files); };
    $("files").onchange = () => this.take($("files").files);
    for (const id of ["kind", "order", "size", "mean", "norm"]) $(id).onchange = () => this.tried(() => this.run());
    $("camera").onclick = () => this.tried(() => this.openCamera());
  }

  /** Calls f; what it throws is shown. */
  async tried(f) {
    try {
      await f();
      $("status").className = "dim";
    } catch (e) {
      $("status").className = "error";
      $("status").textContent = e.message;
    }
  }

  take(files) {
    return this.tried(async () => {
      let isModel = false, names = null;
      for (const file of files) {
        if (file.type.startsWith("image/")) { this.picture = await createImageBitmap(file); continue; }
        if (file.name.endsWith(".txt")) { names = (await file.text()).split(/\r?\n/).filter(Boolean); continue; }
        const kind = /\.param(\.bin)?$/.test(file.name) ? "param" : file.name.endsWith(".bin") ? "bin" : null;
        if (!kind) throw new Error(`${file.name}: expected .param, .bin, .txt or a picture`);
        this.files[kind] = new Uint8Array(await file.arrayBuffer());
        isModel = true;
      }
      if (names || isModel) this.names = names || [];  // of another model
      if (isModel && this.files.param && this.files.bin) this.load();
      else if (isModel) $("status").textContent = `Now the .${this.files.param ? "bin" : "param"}.`;
      this.run();
    });
  }

  load() {
    if (this.net) this.net.free();
    this.net = null;
    this.net = this.engine.load(this.files);
    this.files = {};
    const input = this.net.inputs[0], sizes = this.net.inputSizes[input] || [];
    if (sizes.length >= 2) $("size").value = sizes[sizes.length - 1] + " x " + sizes[sizes.length - 2];
    const known = KNOWN.find(k => k.has(this.net));
    if (known) for (const id of ["size", "order", "mean", "norm"]) $(id).value = known[id];
    if (known?.names && !this.names.length) this.names = known.names;
    $("status").textContent = `Model: inputs ${this.net.inputs.join(", ")}; outputs ${this.net.outputs.join(", ")}. Now a photo.`;
  }

  run() {
    if (!this.net || !this.picture) return;
    const source = this.picture, canvas = $("photo"), pen = canvas.getContext("2d", { willReadFrequently: true });
    canvas.width = source.videoWidth || source.width;
    canvas.height = source.videoHeight || source.height;
    canvas.style.display = "block";
    pen.drawImage(source, 0, 0);
    const [width, height] = ($("size").value.match(/\d+/g) || []).map(Number);
    const options = { width, height, order: $("order").value, mean: numbers($("mean").value), norm: numbers($("norm").value) };
    this.net.pixels(this.net.inputs[0], pen.getImageData(0, 0, canvas.width, canvas.height), options);
    const begin = performance.now(), results = this.net.run();
    const ms = this.stream ? performance.now() - begin : measure(this.net);
    this.show(canvas, results);
    showTimes(this.net, "the model", ms);
    $("status").textContent = `${ms.toFixed(1)} ms`;
  }

  show(canvas, results) {
    const first = results[this.net.outputs[0]], kind = $("kind").value === "auto" ? kindOf(results) : $("kind").value;
    const name = i => this.names[i] || String(i);
    $("results").replaceChildren();
    if (kind === "classes") {
      const best = [...first.values].map((v, i) => [name(i), v]).sort((a, b) => b[1] - a[1]).slice(0, 5);
      showBars($("results"), best);
    } else if (kind === "values") {
      for (const [name, { sizes, values }] of Object.entries(results))
        $("results").append(element("p", `${name} (${sizes.join(", ")}): ${[...values.slice(0, 8)].map(v => v.toPrecision(5)).join(" ")} ...`));
    } else {
      const by = width => Object.values(results).find(r => r.sizes.at(-1) === width) || { sizes: [], values: [] };
      const boxes = kind === "grid" ? gridBoxes(first, .6) : kind === "rows" ? rowBoxes(first, .5) : anchorBoxes(by(2), by(4), .7);
      drawBoxes(canvas, boxes, name);
      $("results").textContent = boxes.length + (boxes.length === 1 ? " box" : " boxes");
    }
  }

  async openCamera() {
    if (this.stream) {
      this.stream.getTracks().forEach(t => t.stop());
      this.stream = null;
      return;
    }
    if (!this.net) throw new Error("first a model");
    this.stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    const video = $("video");
    video.srcObject = this.stream;
    await video.play();
    this.picture = video;
    const next = () => {
      if (!this.stream) return;
      this.tried(() => this.run());
      requestAnimationFrame(next);
    };
    next();
  }
}

const engine = await quoll({ wasm: await unpack("wasm") });
drawingPad(engine.load({ param: $("param").textContent, bin: await unpack("bin") }));
new Visitor(engine);
document.documentElement.dataset.ready = "1";
