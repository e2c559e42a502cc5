/** Heights of rows, measured or guessed, with sums over any beginning of them in a few steps (a Fenwick tree). */
export class Heights {
  readonly #heights: number[] = [];
  readonly #sums: number[] = [0];

  get length(): number {
    return this.#heights.length;
  }

  get total(): number {
    return this.before(this.length);
  }

  push(height: number): void {
    this.#heights.push(height);
    const place = this.#heights.length;
    let sum = height;
    for (let step = 1; step < (place & -place); step *= 2) sum += this.#sums[place - step] as number;
    this.#sums.push(sum);
  }

  /** Whether that is news. */
  set(index: number, height: number): boolean {
    const change = height - (this.#heights[index] as number);
    if (change === 0) return false;
    this.#heights[index] = height;
    for (let place = index + 1; place < this.#sums.length; place += place & -place) {
      this.#sums[place] = (this.#sums[place] as number) + change;
    }
    return true;
  }

  /** Where a row begins. */
  before(index: number): number {
    let sum = 0;
    for (let place = index; place > 0; place -= place & -place) sum += this.#sums[place] as number;
    return sum;
  }

  /** The row at that place; the first or the last for places beyond. */
  at(place: number): number {
    let index = 0;
    let left = place;
    for (let step = 2 ** Math.floor(Math.log2(Math.max(1, this.length))); step >= 1; step /= 2) {
      const next = index + step;
      if (next <= this.length && (this.#sums[next] as number) <= left) {
        index = next;
        left -= this.#sums[next] as number;
      }
    }
    return Math.max(0, Math.min(index, this.length - 1));
  }
}
