export interface BackoffOptions {
  /** First wait in milliseconds. */
  first?: number;
  /** Longest wait in milliseconds. */
  longest?: number;
}

/** Waits that double with jitter until something works again. `wake()` ends a wait early. */
export class Backoff {
  #wait: number;
  readonly #wakers = new Set<() => void>();
  readonly #first: number;
  readonly #longest: number;

  constructor({ first = 100, longest = 5_000 }: BackoffOptions = {}) {
    this.#first = this.#wait = first;
    this.#longest = longest;
  }

  reset(): void {
    this.#wait = this.#first;
  }

  wake(): void {
    for (const waker of [...this.#wakers]) waker();
  }

  async pause(): Promise<void> {
    const wait = this.#wait * (0.5 + Math.random() / 2);
    this.#wait = Math.min(this.#wait * 2, this.#longest);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, wait);
      const wakers = this.#wakers;
      function done(): void {
        clearTimeout(timer);
        wakers.delete(done);
        resolve();
      }
      wakers.add(done);
    });
  }
}
