import type { SessionSummary } from "sandbox-agent-client";
import { sandbox } from "./server";
import { Store } from "./store";

export type Live = "working" | "asking" | "quiet";

const AT_ONCE = 10;

export function keyOf(agent: string, sessionId: string): string {
  return `${agent} ${sessionId}`;
}

/** What sessions are doing, of those in a list. Only sessions in which something has happened are asked about. */
class Liveness extends Store<Readonly<Record<string, Live>>> {
  readonly #counts = new Map<string, number>();
  readonly #busy = new Set<string>();
  readonly #questions = new Map<string, Set<string>>();
  #isLooking = false;

  constructor() {
    super({});
  }

  /** What the page itself knows sooner. */
  note(agent: string, sessionId: string, live: Live): void {
    const key = keyOf(agent, sessionId);
    if (this.value[key] !== live) this.set({ ...this.value, [key]: live });
  }

  /** The server tells of every turn and of every question. */
  told(agent: string, sessionId: string, news: { isBusy: boolean } | { question: string; isOpen: boolean }): void {
    const key = keyOf(agent, sessionId);
    const open = this.#questions.get(key) ?? new Set<string>();
    this.#questions.set(key, open);
    if ("isBusy" in news) {
      if (news.isBusy) this.#busy.add(key);
      else this.#busy.delete(key);
    } else if (news.isOpen) open.add(news.question);
    else open.delete(news.question);
    this.note(agent, sessionId, open.size > 0 ? "asking" : this.#busy.has(key) ? "working" : "quiet");
  }

  async look(sessions: SessionSummary[]): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    await Promise.all(sessions.filter((one) => this.#mayHaveChanged(one)).slice(0, AT_ONCE).map((one) => this.#ask(one)));
    this.#isLooking = false;
  }

  #mayHaveChanged({ agent, sessionId, ended, eventCount }: SessionSummary): boolean {
    const key = keyOf(agent, sessionId);
    return !ended && ((this.value[key] ?? "quiet") !== "quiet" || this.#counts.get(key) !== eventCount);
  }

  async #ask({ agent, sessionId, eventCount }: SessionSummary): Promise<void> {
    try {
      const { isBusy, pendingPermissions, pendingQuestions } = await sandbox.sessions.get(sessionId, { agent });
      const open = [...pendingPermissions, ...pendingQuestions].map(({ requestId }) => JSON.stringify(requestId));
      const isAsking = open.length > 0;
      const key = keyOf(agent, sessionId);
      this.#questions.set(key, new Set(open));
      if (isBusy) this.#busy.add(key);
      else this.#busy.delete(key);
      this.#counts.set(key, eventCount);
      this.note(agent, sessionId, isAsking ? "asking" : isBusy ? "working" : "quiet");
    } catch {
      // asked again with the next list
    }
  }
}

export const liveness = new Liveness();
