import type { Envelope } from "./journal";

export const KINDS = ["all", "requests", "answers", "notifications", "errors"] as const;
export type Kind = (typeof KINDS)[number];

/** Whose messages, and which of them by name; "all" leaves it open. */
export interface Narrow {
  source: "all" | Envelope["source"];
  label: string;
}

export const EVERYTHING: Narrow = { source: "all", label: "all" };

const STEP = 200;

/** Looks for envelopes a slice at a time, so that a hundred thousand of them never hold up a key. */
export class Search {
  /** Indexes into the journal; null while everything is wanted. */
  readonly found: number[] | null;
  readonly #pattern: RegExp | null;
  /** What an earlier search found, when this one asks for more of the same. */
  readonly #among: number[];
  #next = 0;
  #seen = 0;

  constructor(
    readonly journal: readonly Envelope[],
    readonly kind: Kind,
    readonly wanted: string,
    earlier: Search | null = null,
    readonly narrow: Narrow = EVERYTHING,
  ) {
    this.found = kind === "all" && wanted === "" && isSame(narrow, EVERYTHING) ? null : [];
    this.#pattern = wanted === "" ? null : new RegExp(wanted.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"), "i");
    const isNarrower =
      earlier !== null && earlier.found !== null && earlier.journal === journal && earlier.kind === kind && isSame(earlier.narrow, narrow) && wanted.includes(earlier.wanted);
    this.#among = isNarrower ? [...(earlier.found as number[]), ...earlier.#among.slice(earlier.#next)] : [];
    this.#seen = isNarrower ? earlier.#seen : 0;
  }

  get isDone(): boolean {
    return this.found === null || (this.#next >= this.#among.length && this.#seen >= this.journal.length);
  }

  get count(): number {
    return this.found === null ? this.journal.length : this.found.length;
  }

  at(index: number): Envelope {
    return this.journal[this.found === null ? index : (this.found[index] as number)] as Envelope;
  }

  /** Where an envelope is among those found; -1 where it is not. */
  indexOf(envelope: Envelope): number {
    const index = this.journal.indexOf(envelope);
    return this.found === null ? index : this.found.indexOf(index);
  }

  isFor(journal: readonly Envelope[], kind: Kind, wanted: string, narrow: Narrow): boolean {
    return this.journal === journal && this.kind === kind && this.wanted === wanted && isSame(this.narrow, narrow);
  }

  /** Go on for so many milliseconds, or to the end. */
  advance(budget: number): void {
    const until = performance.now() + budget;
    while (!this.isDone) {
      for (let step = 0; step < STEP && !this.isDone; step += 1) {
        const index = this.#next < this.#among.length ? (this.#among[this.#next++] as number) : this.#seen++;
        if (this.#matches(this.journal[index] as Envelope)) this.found?.push(index);
      }
      if (performance.now() >= until) return;
    }
  }

  #matches(envelope: Envelope): boolean {
    const { source, label } = this.narrow;
    if ((source !== "all" && envelope.source !== source) || (label !== "all" && nameOf(envelope) !== label)) return false;
    return isOfKind(envelope, this.kind) && (this.#pattern === null || this.#pattern.test(envelope.text));
  }
}

function isOfKind({ kind, isError }: Envelope, wanted: Kind): boolean {
  switch (wanted) {
    case "all":
      return true;
    case "requests":
      return kind === "request";
    case "answers":
      return kind === "answer";
    case "notifications":
      return kind === "notification";
    case "errors":
      return isError;
  }
}

/** What envelopes can be chosen by: answers are named after what they answer. */
export function nameOf({ kind, label, pair }: Envelope): string {
  return kind === "answer" ? (pair?.label ?? "answer") : label;
}

function isSame(one: Narrow, other: Narrow): boolean {
  return one.source === other.source && one.label === other.label;
}

/** Where runs of one kind of notification begin, so that thousands of chunks take one row. Only what is new is looked at. */
export class Runs {
  readonly starts: number[] = [];
  #seen = 0;

  constructor(private readonly search: Search) {}

  isFor(search: Search): boolean {
    return this.search === search;
  }

  /** Take in what the search has found since. */
  grow(): this {
    for (; this.#seen < this.search.count; this.#seen += 1) {
      const now = this.search.at(this.#seen);
      const before = this.#seen === 0 ? null : this.search.at(this.#seen - 1);
      if (before === null || now.kind !== "notification" || before.label !== now.label || before.source !== now.source) this.starts.push(this.#seen);
    }
    return this;
  }

  /** The run that an index of the search is in. */
  runOf(index: number): number {
    const after = this.starts.findIndex((start) => start > index);
    return after === -1 ? this.starts.length - 1 : after - 1;
  }

  lengthAt(index: number): number {
    return (this.starts[index + 1] ?? this.#seen) - (this.starts[index] as number);
  }
}
