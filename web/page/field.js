// The field a visitor draws on, with pointer, finger or keyboard, or puts a picture on. `changed` is called whenever a stroke ends.
// `marker` is an element over the field that shows where the keyboard's pen is: drawn on the field it would be ink.

/** Width of a stroke in points of the field. */
const STROKE = 22;
/** How far an arrow key moves the pen. */
const MOVE = 12;
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Field {
  #canvas;
  #context;
  #changed;
  #marker;
  #pointer = null;
  /** Of the keyboard. */
  #pen;
  #version = 0;

  constructor(canvas, marker, changed) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d', { willReadFrequently: true });
    this.#changed = changed;
    this.#marker = marker;
    this.#blank();
    this.#start();
    canvas.addEventListener('pointerdown', (event) => this.#down(event));
    canvas.addEventListener('pointermove', (event) => this.#moved(event));
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, (event) => this.#up(event));
    canvas.addEventListener('keydown', (event) => this.#key(event));
    canvas.addEventListener('focus', () => this.#mark(canvas.matches(':focus-visible')));
    canvas.addEventListener('blur', () => this.#left());
  }

  clear() {
    this.#blank();
    this.#start();
    this.#done();
  }

  /** How much ink each point has, 0 to 1. */
  ink() {
    const { width, height } = this.#canvas;
    const { data } = this.#context.getImageData(0, 0, width, height);
    const ink = new Float32Array(width * height);
    for (let i = 0; i < ink.length; i += 1) {
      ink[i] = 1 - (data[4 * i] + data[4 * i + 1] + data[4 * i + 2]) / (3 * 255);
    }
    return { ink, width, height };
  }

  /** Puts a picture on the field: dark on light, or the other way round where its edge is dark. */
  async show(file) {
    const bitmap = await createImageBitmap(file);
    const { width, height } = this.#canvas;
    const scale = Math.min(width / bitmap.width, height / bitmap.height);
    const [w, h] = [bitmap.width * scale, bitmap.height * scale];
    this.#blank();
    const context = this.#context;
    const [left, top] = [(width - w) / 2, (height - h) / 2];
    context.drawImage(bitmap, left, top, w, h);
    bitmap.close();
    const image = context.getImageData(Math.floor(left), Math.floor(top), Math.max(1, Math.floor(w)), Math.max(1, Math.floor(h)));
    contrast(image);
    this.#blank();
    context.putImageData(image, Math.floor(left), Math.floor(top));
    this.#done();
  }

  /** Counts what was drawn, so that an answer can be told to be of it. */
  #done() {
    this.#version += 1;
    this.#canvas.dataset.drawn = this.#version;
    this.#changed();
  }

  #blank() {
    const { width, height } = this.#canvas;
    this.#context.fillStyle = '#fff';
    this.#context.fillRect(0, 0, width, height);
  }

  #line(from, to) {
    const context = this.#context;
    context.strokeStyle = '#000';
    context.lineWidth = STROKE;
    context.lineCap = context.lineJoin = 'round';
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
  }

  #place(event) {
    const box = this.#canvas.getBoundingClientRect();
    const scale = this.#canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  #down(event) {
    if (this.#pointer !== null) return;
    this.#mark(false);
    this.#canvas.setPointerCapture(event.pointerId);
    this.#pointer = { id: event.pointerId, at: this.#place(event) };
    this.#line(this.#pointer.at, this.#pointer.at);
  }

  #moved(event) {
    if (this.#pointer?.id !== event.pointerId) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const each of events.length ? events : [event]) {
      const to = this.#place(each);
      this.#line(this.#pointer.at, to);
      this.#pointer.at = to;
    }
  }

  #up(event) {
    if (this.#pointer?.id !== event.pointerId) return;
    this.#pointer = null;
    this.#done();
  }

  #key(event) {
    // With these a key is the browser's: Alt and an arrow go to another page.
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === 'Escape') this.clear();
    else if (event.key === ' ') this.#press(!this.#pen.down);
    else if (event.key in MOVES) this.#move(MOVES[event.key]);
    else return;
    this.#mark(true);
    event.preventDefault();
  }

  /** Puts the pen where a stroke may begin, lifted. */
  #start() {
    const { width, height } = this.#canvas;
    this.#pen = { at: [width / 2, height / 4], down: false };
    this.#mark();
  }

  #move([x, y]) {
    const { width, height } = this.#canvas;
    const inside = (value, most) => Math.min(most - STROKE / 2, Math.max(STROKE / 2, value));
    const to = [inside(this.#pen.at[0] + x * MOVE, width), inside(this.#pen.at[1] + y * MOVE, height)];
    if (this.#pen.down) this.#line(this.#pen.at, to);
    this.#pen.at = to;
  }

  /** Puts the pen down, or lifts it, which ends a stroke. */
  #press(isDown) {
    this.#pen.down = isDown;
    if (isDown) this.#line(this.#pen.at, this.#pen.at);
    else this.#done();
  }

  /** A stroke ends where the visitor leaves the field. */
  #left() {
    if (this.#pen.down) this.#press(false);
    this.#mark(false);
  }

  /** Shows where the pen is and whether it is down, or hides it. */
  #mark(isShown = !this.#marker.hidden) {
    const { at: [x, y], down } = this.#pen;
    const { width, height } = this.#canvas;
    this.#marker.hidden = !isShown;
    this.#marker.style.left = `${(100 * x) / width}%`;
    this.#marker.style.top = `${(100 * y) / height}%`;
    this.#marker.classList.toggle('down', down);
  }
}

/** Stretches a picture to black on white. */
function contrast(image) {
  const { data, width, height } = image;
  const light = new Float32Array(width * height);
  for (let i = 0; i < light.length; i += 1) {
    const alpha = data[4 * i + 3] / 255;
    const grey = 0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2];
    light[i] = grey * alpha + 255 * (1 - alpha);
  }
  let [least, most, edge, count] = [255, 0, 0, 0];
  for (let i = 0; i < light.length; i += 1) {
    least = Math.min(least, light[i]);
    most = Math.max(most, light[i]);
    const [x, y] = [i % width, Math.floor(i / width)];
    if (x === 0 || y === 0 || x === width - 1 || y === height - 1) {
      edge += light[i];
      count += 1;
    }
  }
  // A picture of one shade is paper.
  const range = most - least;
  const isDark = edge / count < (least + most) / 2;
  for (let i = 0; i < light.length; i += 1) {
    const share = range < 16 ? 1 : (light[i] - least) / range;
    data.fill(Math.round(255 * (isDark && range >= 16 ? 1 - share : share)), 4 * i, 4 * i + 3);
    data[4 * i + 3] = 255;
  }
}
