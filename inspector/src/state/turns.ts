import type { ContentBlock } from "@agentclientprotocol/sdk";

/** One prompt and what becomes of it. Mutable, as the timeline that holds it. */
export interface Turn {
  readonly key: number;
  /** The server's name for it; null until it was told, and with servers that do not tell. */
  promptId: string | null;
  readonly turnId: string | null;
  /** The id of the request that this page sent; null for those of others, and from before the page was loaded. */
  readonly requestId: unknown;
  /** null where only another client knows what was asked. */
  prompt: readonly ContentBlock[] | null;
  /** `held`: it never ran, and whoever wrote it decides what becomes of it. */
  state: "queued" | "running" | "held" | "done";
  readonly isOwn: boolean;
  /** This page wants it back: it is not held once it is over. */
  isTakenBack: boolean;
  isCancelling: boolean;
  began: number | null;
  ended: number | null;
  /** Why it is held. */
  reason: string | null;
}

/** What the server tells of a turn: `_sandboxagent/session/turn_queued`, `turn_started` and `turn_ended`. */
export interface TurnNotice {
  promptId?: string;
  turnId?: string | null;
  requestId?: unknown;
  position?: number;
  /** Of one that waits. */
  prompt?: ContentBlock[];
  hasRun?: boolean;
  result?: { stopReason?: string } | null;
  error?: { code: number; message: string; data?: unknown };
}

/** Without those of turns that are over by the end of the list. A name is used again by a server that was restarted. */
export function ofOpenTurns<T extends { method: string; params?: unknown }>(notices: readonly T[]): T[] {
  const idOf = ({ params }: T): string | undefined => (params as TurnNotice).promptId;
  return notices.filter((notice, index) => !notices.slice(index).some((later) => later.method === TURN_ENDED && idOf(later) === idOf(notice)));
}

const TURN_ENDED = "_sandboxagent/session/turn_ended";

/** The turns of a session that are not over, in the order in which they run. */
export class Turns {
  #turns: Turn[] = [];
  #nextKey = 1;
  /** The server tells of every turn. Where it does not, the next one is taken to run as soon as one has ended. */
  isTold = false;

  get running(): Turn | null {
    return this.#turns.find(({ state }) => state === "running") ?? null;
  }

  /** What stands at the composer: prompts that wait, and those that were not run. */
  get waiting(): readonly Turn[] {
    return this.#turns.filter(({ state }) => state === "queued" || state === "held");
  }

  get next(): Turn | null {
    return this.#turns.find(({ state }) => state === "queued") ?? null;
  }

  add(given: Partial<Omit<Turn, "key">>): Turn {
    const turn: Turn = {
      promptId: null,
      turnId: null,
      requestId: null,
      prompt: null,
      state: "queued",
      isOwn: false,
      isTakenBack: false,
      isCancelling: false,
      began: null,
      ended: null,
      reason: null,
      ...given,
      key: this.#nextKey++,
    };
    this.#turns.push(turn);
    return turn;
  }

  /** The turn that a notice is about; null where it is a new one. */
  find({ promptId, turnId, requestId }: TurnNotice): Turn | null {
    return (
      this.#turns.find((turn) => turn.promptId !== null && turn.promptId === promptId) ??
      this.#turns.find((turn) => turn.turnId !== null && turn.turnId === turnId) ??
      this.#turns.find((turn) => turn.isOwn && !turnId && turn.promptId === null && JSON.stringify(turn.requestId) === JSON.stringify(requestId)) ??
      null
    );
  }

  /** Put it where the server has it: behind so many others that wait. */
  place(turn: Turn, position: number): void {
    const others = this.#turns.filter((one) => one !== turn);
    const waiting = others.filter(({ state }) => state === "queued");
    const before = waiting[position - 1];
    others.splice(before === undefined ? others.length : others.indexOf(before), 0, turn);
    this.#turns = others;
  }

  remove(turn: Turn): void {
    this.#turns = this.#turns.filter((one) => one !== turn);
  }
}
