import { Heights } from "./heights";

/** How far beyond the window rows are drawn, and how near its edge may come before more are. */
const MARGIN = 600;
const NEAR = 200;
/** A list that is no taller is all drawn in the end, a step at a time: then the browser's own search finds everything. */
const SHORT = 20_000;
const STEP = 1_500;
const END = 40;
/** How far below the upper edge a row is that was looked for. */
const REVEALED = 120;

/** Which rows of a tall list are drawn, and where it is scrolled to while their heights become known. */
export class Viewport {
  isAtEnd = true;
  readonly #heights = new Heights();
  readonly #folds = new Map<string, Map<number, boolean>>();
  readonly #seen = new WeakSet<Element>();
  #top = 0;
  #height = 800;
  #first = 0;
  #last = 0;
  #spread = 0;
  /** The row at the upper edge, and how much of it is above: what must not move. */
  #anchor = { row: 0, above: 0 };

  grow(count: number, guess: (index: number) => number): void {
    for (let index = this.#heights.length; index < count; index += 1) this.#heights.push(guess(index));
  }

  /** The indexes of the rows to draw, in order. */
  choose(): number[] {
    [this.#first, this.#last] = this.#range(MARGIN);
    return Array.from({ length: this.#last - this.#first }, (_, index) => this.#first + index);
  }

  between(first: number, last: number): number {
    return this.#heights.before(last) - this.#heights.before(first);
  }

  /** After rows were drawn or have changed: measure them and keep the place. True when other rows are needed. */
  settle(box: HTMLElement, column: HTMLElement): boolean {
    if (box.clientHeight === 0) return false; // not shown: nothing can be measured
    this.#height = box.clientHeight;
    for (const row of column.children as HTMLCollectionOf<HTMLElement>) {
      const { row: index, key } = row.dataset;
      if (index === undefined || key === undefined) continue;
      if (!this.#seen.has(row)) this.#unfold(row, key);
      this.#heights.set(Number(index), row.getBoundingClientRect().height);
    }
    if (this.isAtEnd) box.scrollTop = box.scrollHeight;
    else {
      const place = this.#heights.before(this.#anchor.row) + this.#anchor.above;
      if (Math.abs(place - box.scrollTop) > 1) box.scrollTop = place;
    }
    this.#top = box.scrollTop;
    return this.#needsMore();
  }

  /** Draw some more rows, there being time for it. False when there is nothing left to do. */
  widen(): boolean {
    const isWhole = this.#first === 0 && this.#last === this.#heights.length;
    if (isWhole || this.#heights.total > SHORT) return false;
    this.#spread += STEP;
    return true;
  }

  /** True when other rows are needed. */
  scrolled(box: HTMLElement): boolean {
    const wasAtEnd = this.isAtEnd;
    const isUp = box.scrollTop < this.#top; // only then has somebody left the end: it may also have grown away
    this.#top = box.scrollTop;
    this.#height = box.clientHeight;
    this.isAtEnd = this.#top + this.#height >= box.scrollHeight - END || (wasAtEnd && !isUp);
    const row = this.#heights.at(this.#top);
    this.#anchor = { row, above: this.#top - this.#heights.before(row) };
    return this.#needsMore() || wasAtEnd !== this.isAtEnd;
  }

  /** Go to the end, and stay there. */
  jump(): void {
    this.isAtEnd = true;
  }

  /** Bring a row into sight, below the upper edge. */
  reveal(row: number): void {
    this.isAtEnd = false;
    this.#anchor = { row, above: -REVEALED };
    this.#top = Math.max(0, this.#heights.before(row) - REVEALED);
  }

  /** What was folded or unfolded is so again when its row comes back. */
  remember(target: HTMLElement): void {
    const row = target.closest<HTMLElement>("[data-key]");
    if (!(target instanceof HTMLDetailsElement) || row === null) return;
    const key = row.dataset["key"] as string;
    const folds = this.#folds.get(key) ?? new Map<number, boolean>();
    folds.set([...row.querySelectorAll("details")].indexOf(target), target.open);
    this.#folds.set(key, folds);
  }

  #unfold(row: HTMLElement, key: string): void {
    this.#seen.add(row);
    const folds = this.#folds.get(key);
    if (folds !== undefined) row.querySelectorAll("details").forEach((one, index) => (one.open = folds.get(index) ?? one.open));
  }

  #range(margin: number): [number, number] {
    const count = this.#heights.length;
    const total = this.#heights.total;
    const around = total > SHORT ? margin : margin + this.#spread;
    const top = this.isAtEnd ? total - this.#height : this.#top;
    return [this.#heights.at(top - around), Math.min(count, this.#heights.at(top + this.#height + around) + 1)];
  }

  #needsMore(): boolean {
    const [first, last] = this.#range(NEAR);
    return first < this.#first || last > this.#last;
  }
}
