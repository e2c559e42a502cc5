const SETTLE_AT = 2_000;
const SETTLE_HARD = 6_000;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** Markdown that grows: settled pieces are drawn once, only the tail again and again. */
export class GrowingText {
  readonly settled: string[] = [];
  tail = "";
  /** The tail has been looked at up to this beginning of a line. */
  #seen = 0;
  /** After the last blank line that is outside a code block. */
  #cut = 0;
  /** The line that opened the code block in which the tail ends. */
  #fence: string | null = null;

  append(more: string): void {
    for (let at = 0; at < more.length; at += SETTLE_AT) this.#grow(more.slice(at, at + SETTLE_AT));
  }

  /** How many pieces there are to draw, the tail included. */
  get pieces(): number {
    return this.settled.length + (this.tail === "" ? 0 : 1);
  }

  piece(index: number): string {
    return this.settled[index] ?? this.tail;
  }

  #grow(more: string): void {
    this.tail += more;
    if (more.includes("\n")) this.#look();
    if (this.tail.length < SETTLE_AT) return;
    if (this.#cut > 0 && this.#cut < this.tail.length) this.#settle(this.#cut);
    else if (this.tail.length > SETTLE_HARD) this.#settle(this.tail.lastIndexOf("\n") + 1 || wholeCharacters(this.tail));
  }

  /** Only lines that are new are read: a long tail that grows by words must not be read again for each. */
  #look(): void {
    for (let end = this.tail.indexOf("\n", this.#seen); end !== -1; end = this.tail.indexOf("\n", this.#seen)) {
      const line = this.tail.slice(this.#seen, end);
      this.#seen = end + 1;
      const mark = FENCE.exec(line)?.[1];
      if (mark !== undefined && this.#fence === null) this.#fence = line;
      else if (mark !== undefined && this.#fence !== null && closes(line.trim(), this.#fence)) this.#fence = null;
      else if (this.#fence === null && line.trim() === "") this.#cut = this.#seen;
    }
  }

  /** A code block that is cut goes on as one in the next piece. */
  #settle(cut: number): void {
    const isInBlock = this.#fence !== null && cut !== this.#cut;
    const fence = this.#fence ?? "";
    const head = this.tail.slice(0, cut);
    const rest = this.tail.slice(cut);
    this.settled.push(isInBlock ? `${head}${head.endsWith("\n") ? "" : "\n"}${FENCE.exec(fence)?.[1] ?? ""}` : head);
    this.tail = isInBlock ? `${fence}\n${rest}` : rest;
    this.#seen = isInBlock ? fence.length + 1 : Math.max(0, this.#seen - cut);
    this.#cut = 0;
  }
}

function closes(line: string, opening: string): boolean {
  const mark = FENCE.exec(opening)?.[1] ?? "";
  return line.length >= mark.length && line === (mark[0] ?? "").repeat(line.length);
}

/** The length, or one less where the other half of the last character is still to come. */
function wholeCharacters(text: string): number {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last < 0xdc00 ? text.length - 1 : text.length;
}

export function money({ amount, currency }: { amount: number; currency: string }): string {
  return `${amount.toFixed(amount !== 0 && Math.abs(amount) < 0.1 ? 4 : 2)} ${currency}`;
}
