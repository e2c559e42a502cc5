import { useSyncExternalStore } from "react";

/** For each millisecond of drawing, others have the page for so many. */
const SHARE = 4;

/**
 * A value that components can watch. Changes within one frame are told once; where drawing takes long, frames are left
 * out, so that keys and the network get their turn.
 */
export class Store<T> {
  readonly #listeners = new Set<() => void>();
  #value: T;
  #isTelling = false;
  #notBefore = 0;

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    this.#value = value;
    if (this.#isTelling) return;
    this.#isTelling = true;
    const wait = this.#notBefore - performance.now();
    if (wait <= 0) nextFrame(this.#tell);
    else setTimeout(() => nextFrame(this.#tell), wait);
  }

  #tell = (): void => {
    const began = performance.now();
    this.#isTelling = false;
    for (const listener of [...this.#listeners]) listener();
    soon(() => {
      const now = performance.now();
      this.#notBefore = now + SHARE * (now - began);
    });
  };

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, () => store.value);
}

/** After the frame that is being made. */
export function soon(work: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = work;
  port2.postMessage(null);
}

/** The next frame, or soon where the page is hidden and has no frames. */
export function nextFrame(work: () => void): void {
  if (document.hidden) setTimeout(work, 100);
  else requestAnimationFrame(work);
}
