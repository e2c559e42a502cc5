import type { AgentInfo, AgentLogs, Installed } from "./api.js";
import { ConnectionLost, type Problem, ProblemError } from "./errors.js";
import type { Http } from "./http.js";
import { readEvents } from "./rpc/sse.js";

/** How far an install has come. */
export interface InstallProgress {
  agent: string;
  /** `plan`, then `download` and `unpack`, `npm` or `pypi`, then `verify` and `done`; more may be added. */
  step: string;
  /** The step in words. */
  message: string;
  /** From 0 to 1, of this step; null while nobody can know it. */
  fraction: number | null;
  /** What has arrived so far; 0 where the step brings nothing. */
  bytes: number;
}

export interface InstallOptions {
  reinstall?: boolean;
  agentVersion?: string;
  agentProcessVersion?: string;
  /** Gets each step as it happens. */
  onProgress?: (progress: InstallProgress) => void;
  /** Stops waiting. The install itself goes on. */
  signal?: AbortSignal;
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

  /** Install it unless it is there. Several who ask at once share one install. Throws ProblemError when it fails. */
  async install(id: string, options: InstallOptions = {}): Promise<Installed> {
    const { onProgress, signal, ...wish } = options;
    const path = `/v1/agents/${encodeURIComponent(id)}/install`;
    const accept = onProgress === undefined ? "application/json" : "text/event-stream";
    const response = await this.http.request("POST", path, {
      body: JSON.stringify(wish),
      headers: { "content-type": "application/json", accept },
      ...(signal && { signal }),
    });
    if (onProgress === undefined) return (await response.json()) as Installed;
    return await readInstall(response, onProgress, signal);
  }

  /** The last lines that the agent wrote to stderr. */
  async logs(id: string, options: { tail?: number } = {}): Promise<AgentLogs> {
    return await this.http.json("GET", `/v1/agents/${encodeURIComponent(id)}/logs`, { query: options });
  }
}

async function readInstall(
  response: Response,
  onProgress: (progress: InstallProgress) => void,
  signal: AbortSignal | undefined,
): Promise<Installed> {
  const lost = (cause?: unknown): never => {
    if (signal?.aborted) throw signal.reason;
    throw new ConnectionLost("the server went away before the install had ended", { cause });
  };
  const events = readEvents(response.body as ReadableStream<Uint8Array>);
  try {
    for (;;) {
      const { value, done } = await events.next().catch(lost);
      if (done) return lost();
      const told: unknown = JSON.parse(value.data);
      if (value.kind === "done") return told as Installed;
      if (value.kind === "error") throw new ProblemError(told as Problem);
      if (value.kind === "progress") onProgress(told as InstallProgress);
    }
  } finally {
    await events.return(undefined);
  }
}
