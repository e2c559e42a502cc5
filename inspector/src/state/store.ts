import { useSyncExternalStore } from "react";

/** A value that components can watch. Changes within one frame are told once. */
export class Store<T> {
  readonly #listeners = new Set<() => void>();
  #value: T;
  #isTelling = false;

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
    nextFrame(() => {
      this.#isTelling = false;
      for (const listener of [...this.#listeners]) listener();
    });
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, () => store.value);
}

/** The next frame, or soon where the page is hidden and has no frames. */
function nextFrame(work: () => void): void {
  if (document.hidden) setTimeout(work, 100);
  else requestAnimationFrame(work);
}
