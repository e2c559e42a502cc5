import type { UsageUpdate } from "@agentclientprotocol/sdk";

/** What a session had used when a turn ended, or has by now. */
export interface Spent {
  prompt: string;
  time: number;
  /** Tokens in the context window, of `size`. */
  used: number;
  size: number;
  /** Of the session so far. */
  cost: { amount: number; currency: string } | null;
}

/** Tokens and cost over the turns of a session: agents tell sums, this keeps the last of each turn. */
export class Spending {
  readonly turns: Spent[] = [];
  #prompt: string | null = null;

  begin(prompt: string): void {
    this.#prompt = prompt;
  }

  tell(time: number, { used, size, cost }: UsageUpdate): void {
    const last = this.turns.at(-1);
    const now = { time, used, size, cost: cost ?? last?.cost ?? null };
    if (this.#prompt === null && last !== undefined) Object.assign(last, now);
    else this.turns.push({ prompt: this.#prompt ?? "", ...now });
    this.#prompt = null;
  }
}
