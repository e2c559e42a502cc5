import type { AgentInfo, AgentLogs, Installed } from "./api.js";
import type { Http } from "./http.js";

export interface InstallOptions {
  reinstall?: boolean;
  agentVersion?: string;
  agentProcessVersion?: string;
}

/** The agents that the server can launch or install. */
export class Agents {
  constructor(private readonly http: Http) {}

  /** With `config`, installed agents are started if need be and asked for their models and modes. */
  async list(options: { config?: boolean } = {}): Promise<AgentInfo[]> {
    const { agents } = await this.http.json<{ agents: AgentInfo[] }>("GET", "/v1/agents", { query: options });
    return agents;
  }

  async get(id: string, options: { config?: boolean } = {}): Promise<AgentInfo> {
    return await this.http.json("GET", `/v1/agents/${encodeURIComponent(id)}`, { query: options });
  }

  async install(id: string, options: InstallOptions = {}): Promise<Installed> {
    return await this.http.json("POST", `/v1/agents/${encodeURIComponent(id)}/install`, {
      body: JSON.stringify(options),
      headers: { "content-type": "application/json" },
    });
  }

  /** The last lines that the agent wrote to stderr. */
  async logs(id: string, options: { tail?: number } = {}): Promise<AgentLogs> {
    return await this.http.json("GET", `/v1/agents/${encodeURIComponent(id)}/logs`, { query: options });
  }
}
