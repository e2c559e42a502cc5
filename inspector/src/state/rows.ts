import type { Item } from "./items";

/** What is drawn at once: an item, or one piece of a message that is long. */
export interface Row {
  item: Item;
  piece: number;
  isLast: boolean;
}

/** The rows of a timeline. As long as the list is the same, only its newest item gains rows. */
export class Rows {
  readonly #rows: Row[] = [];
  #list: readonly Item[] | null = null;
  #items = 0;
  #lastStart = 0;

  /** What has come since the last time is taken in. */
  of(items: readonly Item[]): readonly Row[] {
    if (items !== this.#list) this.#items = this.#lastStart = 0; // one was taken out, or changed in the middle
    this.#list = items;
    this.#rows.length = this.#lastStart;
    for (let index = Math.max(0, this.#items - 1); index < items.length; index += 1) {
      const item = items[index] as Item;
      this.#lastStart = this.#rows.length;
      const pieces = piecesOf(item);
      for (let piece = 0; piece < pieces; piece += 1) this.#rows.push({ item, piece, isLast: piece === pieces - 1 });
    }
    this.#items = items.length;
    return this.#rows;
  }
}

function piecesOf(item: Item): number {
  return item.kind === "agent" || item.kind === "user" ? Math.max(1, item.body.pieces) : 1;
}
