import type { AgentInfo, SessionSummary } from "sandbox-agent-client";
import { reasonOf, sandbox } from "./server";
import { Store } from "./store";

interface Sessions {
  sessions: SessionSummary[];
  nextCursor: string | null;
  error: string | null;
  isLoaded: boolean;
}

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
    } catch (error) {
      this.set({ ...this.value, error: reasonOf(error), isLoaded: true });
    }
  }

  async more(): Promise<void> {
    this.#limit = Math.min(this.#limit * 3, 1000);
    await this.refresh();
  }

  /** Keep it fresh while the page is in front; gives the way to stop. */
  watch(): () => void {
    void this.refresh();
    const timer = setInterval(() => {
      if (!document.hidden) void this.refresh();
    }, EVERY);
    return () => clearInterval(timer);
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
