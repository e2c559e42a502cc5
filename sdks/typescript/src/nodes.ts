import type { NodeView } from "./api.js";
import type { Http } from "./http.js";

/** The servers that share a database, where there is more than one. */
export class Nodes {
  constructor(private readonly http: Http) {}

  /** Empty for a server that is not part of a cluster. */
  async list(): Promise<NodeView[]> {
    return (await this.http.json<{ nodes: NodeView[] }>("GET", "/v1/nodes")).nodes;
  }

  /** Have a node finish its turns, hand its sessions on and take no others. */
  async drain(id: string): Promise<void> {
    await this.http.json("POST", `/v1/nodes/${encodeURIComponent(id)}/drain`);
  }

  /** Have a drained node take sessions again. */
  async resume(id: string): Promise<void> {
    await this.http.json("POST", `/v1/nodes/${encodeURIComponent(id)}/resume`);
  }
}
