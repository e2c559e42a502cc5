import type { AgentInfo, SessionSummary } from "sandbox-agent-client";
import { type Change, followFeed } from "./feed";
import { keyOf, liveness } from "./liveness";
import { reasonOf, sandbox } from "./server";
import { Store } from "./store";

interface Sessions {
  sessions: SessionSummary[];
  nextCursor: string | null;
  error: string | null;
  isLoaded: boolean;
}

/** Milliseconds between two looks at a server that does not tell of changes. */
const EVERY = 4_000;

class SessionList extends Store<Sessions> {
  #limit = 100;

  constructor() {
    super({ sessions: [], nextCursor: null, error: null, isLoaded: false });
  }

  async refresh(): Promise<void> {
    try {
      const { sessions, nextCursor } = await sandbox.sessions.list({ limit: this.#limit });
      this.set({ sessions, nextCursor: nextCursor ?? null, error: null, isLoaded: true });
      await liveness.look(sessions);
    } catch (error) {
      this.set({ ...this.value, error: reasonOf(error), isLoaded: true });
    }
  }

  async more(): Promise<void> {
    this.#limit = Math.min(this.#limit * 3, 1000);
    await this.refresh();
  }

  /** Keep it fresh while the page is in front: by what the server tells, or else by asking. Gives the way to stop. */
  watch(): () => void {
    void this.refresh();
    let isTold = false;
    const timer = setInterval(() => {
      if (!document.hidden && !isTold) void this.refresh();
    }, EVERY);
    const stop = followFeed(
      (change) => this.#take(change),
      () => (isTold = false),
      () => {
        isTold = true;
        void this.refresh(); // what changed before it began
      },
    );
    return () => {
      clearInterval(timer);
      stop();
    };
  }

  #take(change: Change): void {
    switch (change.type) {
      case "session.created":
      case "session.updated":
      case "session.ended":
        this.#put(change.session);
        break;
      case "session.deleted":
        this.set({ ...this.value, sessions: this.#without(change) });
        break;
      case "turn.started":
      case "turn.ended":
        liveness.told(change.agent, change.sessionId, { isBusy: change.type === "turn.started" });
        break;
      case "question.asked":
      case "question.settled":
        liveness.told(change.agent, change.sessionId, { question: JSON.stringify(change.requestId), isOpen: change.type === "question.asked" });
        break;
      case "agent.changed":
        void agentList.refresh();
        break;
      case "reset":
        void this.refresh();
        break;
    }
  }

  /** The newest is on top, as the server lists them. */
  #put(session: SessionSummary): void {
    const sessions = [session, ...this.#without(session)].sort((one, other) => other.updatedAt.localeCompare(one.updatedAt));
    this.set({ ...this.value, sessions });
  }

  #without({ agent, sessionId }: { agent: string; sessionId: string }): SessionSummary[] {
    return this.value.sessions.filter((one) => keyOf(one.agent, one.sessionId) !== keyOf(agent, sessionId));
  }
}

interface Agents {
  agents: AgentInfo[];
  error: string | null;
  isLoaded: boolean;
}

class AgentList extends Store<Agents> {
  constructor() {
    super({ agents: [], error: null, isLoaded: false });
  }

  async refresh(): Promise<void> {
    try {
      this.set({ agents: await sandbox.agents.list(), error: null, isLoaded: true });
    } catch (error) {
      this.set({ ...this.value, error: reasonOf(error), isLoaded: true });
    }
  }
}

export const sessionList = new SessionList();
export const agentList = new AgentList();
