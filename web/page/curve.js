// The loss of each step as a line, on a logarithmic scale from 0.001 to 10. The curve knows at which step it begins: a training from a file
// has no losses of the steps before.

const WIDTH = 440;
const HEIGHT = 180;
const [LEAST, MOST] = [-3, 1];
const SVG = 'http://www.w3.org/2000/svg';

const y = (loss) => {
  const power = Math.min(MOST, Math.max(LEAST, Math.log10(Math.max(loss, 1e-9))));
  return ((MOST - power) / (MOST - LEAST)) * HEIGHT;
};

export class Curve {
  #svg;
  #losses = [];
  #first = 0;
  #drawn = false;

  constructor(svg) {
    this.#svg = svg;
    const grid = svg.querySelector('.grid');
    for (let power = LEAST; power < MOST; power += 1) {
      const line = document.createElementNS(SVG, 'line');
      for (const [name, value] of [['x1', 0], ['x2', WIDTH], ['y1', y(10 ** power)], ['y2', y(10 ** power)]]) {
        line.setAttribute(name, value);
      }
      const text = document.createElementNS(SVG, 'text');
      text.setAttribute('x', 4);
      text.setAttribute('y', y(10 ** power) - 3);
      text.textContent = String(10 ** power);
      grid.append(line, text);
    }
  }

  get losses() {
    return this.#losses;
  }

  /** The step before the first loss. */
  get first() {
    return this.#first;
  }

  set(losses, first) {
    [this.#losses, this.#first] = [[...losses], first];
    this.#draw();
  }

  /** Adds the losses of the last steps; so many are made with them. */
  add(losses, steps) {
    const before = steps - losses.length;
    this.cut(before);
    if (this.#first + this.#losses.length === before) this.#losses.push(...losses);
    else this.set(losses, before);
    this.#draw();
  }

  /** Takes away what is after so many steps. */
  cut(steps) {
    this.#losses.length = Math.min(this.#losses.length, Math.max(0, steps - this.#first));
    this.#draw();
  }

  /** Draws with the next frame. */
  #draw() {
    if (this.#drawn) return;
    this.#drawn = true;
    requestAnimationFrame(() => {
      this.#drawn = false;
      const losses = this.#losses;
      const step = WIDTH / Math.max(440, losses.length);
      // A loss that is no number breaks the line.
      let path = '';
      losses.forEach((loss, i) => {
        if (!Number.isFinite(loss)) return;
        const begins = i === 0 || !Number.isFinite(losses[i - 1]);
        path += `${begins ? 'M' : 'L'}${((i + 0.5) * step).toFixed(1)} ${y(loss).toFixed(1)}`;
      });
      this.#svg.querySelector('.line').setAttribute('d', path);
      const label = losses.length
        ? `The loss of ${losses.length} steps, from ${losses[0].toPrecision(3)} to ${losses.at(-1).toPrecision(3)}`
        : 'The loss of each step: none yet';
      this.#svg.setAttribute('aria-label', label);
    });
  }
}
