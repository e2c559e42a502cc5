import type { AgentConnection, HistoryPage, SessionEvent } from "sandbox-agent-client";

const PAGE = 2000;

/**
 * Puts the history of a fork's parent, up to the moment of the fork, in front of the fork's own. A history that begins
 * with `session/fork` names the parent.
 */
export class Ancestry {
  #isFirst = true;
  #held: SessionEvent[] | null = null;
  isRead: Promise<void> = Promise.resolve();

  constructor(
    private readonly connection: AgentConnection,
    private readonly onEvents: (events: SessionEvent[]) => void,
  ) {}

  take(events: SessionEvent[]): void {
    if (this.#held !== null) this.#held.push(...events);
    else if (this.#isFirst && forkOf(events[0]) !== null) {
      this.#held = events;
      this.isRead = this.#readParent(events[0] as SessionEvent);
    } else this.onEvents(events);
    if (events.length > 0) this.#isFirst = false;
  }

  async #readParent(fork: SessionEvent): Promise<void> {
    const past = await this.#before(fork).catch(() => []); // the parent is gone: then the fork begins by itself
    const held = this.#held ?? [];
    this.#held = null;
    this.onEvents([...past, ...held]);
  }

  async #before(fork: SessionEvent): Promise<SessionEvent[]> {
    const found: SessionEvent[] = [];
    for (let after = 0; ; ) {
      const page: HistoryPage = await this.connection.acp.request("_sandboxagent/session/events", { sessionId: forkOf(fork), after, limit: PAGE });
      const events = page.events.map(({ sequence, time, source, envelope }): SessionEvent => ({ sequence, time: Date.parse(time), source, message: envelope as unknown as SessionEvent["message"] }));
      if (found.length === 0 && forkOf(events[0]) !== null) found.push(...(await this.#before(events[0] as SessionEvent)));
      found.push(...events.filter(({ time }) => time <= fork.time));
      after = page.events.at(-1)?.sequence ?? after;
      if (!page.hasMore || (events.at(-1)?.time ?? 0) > fork.time) return found;
    }
  }
}

function forkOf(event: SessionEvent | undefined): string | null {
  const { method, params } = (event?.message ?? {}) as { method?: string; params?: { sessionId?: string } };
  return method === "session/fork" ? (params?.sessionId ?? null) : null;
}
