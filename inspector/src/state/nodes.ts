import type { NodeView } from "sandbox-agent-client";
import { reasonOf, sandbox } from "./server";
import { Store } from "./store";

interface Nodes {
  nodes: NodeView[];
  error: string | null;
}

const EVERY = 3_000;

/** The servers that share a database; none where the server stands alone. */
class NodeList extends Store<Nodes> {
  constructor() {
    super({ nodes: [], error: null });
  }

  async refresh(): Promise<void> {
    try {
      this.set({ nodes: await sandbox.nodes.list(), error: null });
    } catch (error) {
      this.set({ ...this.value, error: reasonOf(error) });
    }
  }

  /** Nodes tell nobody of their lives but the database: ask again and again. Gives the way to stop. */
  watch(): () => void {
    void this.refresh();
    const timer = setInterval(() => {
      if (!document.hidden) void this.refresh();
    }, EVERY);
    return () => clearInterval(timer);
  }

  async drain(id: string): Promise<void> {
    await sandbox.nodes.drain(id);
    await this.refresh();
  }

  async resume(id: string): Promise<void> {
    await sandbox.nodes.resume(id);
    await this.refresh();
  }
}

export const nodeList = new NodeList();
