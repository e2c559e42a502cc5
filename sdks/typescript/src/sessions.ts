import type { McpServer } from "@agentclientprotocol/sdk";
import { notApplied } from "./choices.js";
import type { SearchResult, SessionDetail, SessionList } from "./api.js";
import type { AgentConnection } from "./connection.js";
import { errorKind } from "./errors.js";
import type { Http } from "./http.js";
import { META } from "./rpc/messages.js";
import { Session, setupOf } from "./session.js";

export interface CreateOptions {
  /** Which agent; the one given to `connect` if absent. */
  agent?: string;
  /** The directory that the agent works in, absolute. */
  cwd: string;
  /** A name of your own, under which the session can be found as well. */
  id?: string;
  title?: string;
  model?: string;
  mode?: string;
  /** `ask`, `allow`, `reject`, rules, or a mode of the agent. */
  permissionMode?: string | Record<string, unknown>;
  mcpServers?: McpServer[];
  metadata?: Record<string, unknown>;
}

export interface OpenOptions {
  /** Needed only where two agents have a session of that id; looked up if absent. */
  agent?: string;
}

export interface ListOptions {
  agent?: string;
  cwd?: string;
  ended?: boolean;
  cursor?: string;
  limit?: number;
}

export interface SearchOptions {
  /** At most so many sessions (20). */
  limit?: number;
}

/** The server's sessions, of all agents. */
export class Sessions {
  constructor(
    private readonly http: Http,
    private readonly connectionTo: (agent: string | undefined) => Promise<AgentConnection>,
    private readonly adopt: (session: Session) => Session,
  ) {}

  /** A new conversation. Throws for a model, mode or permission mode that there is not, with a list of what there is. */
  async create(options: CreateOptions): Promise<Session> {
    const { agent, cwd, mcpServers, id, title, model, mode, permissionMode, metadata } = options;
    const connection = await this.connectionTo(agent);
    const wishes = { agent, requestedSessionId: id, title, model, agentMode: mode, permissionMode, metadata };
    const result = await connection.acp.request<Record<string, unknown>>("session/new", {
      cwd,
      mcpServers: mcpServers ?? [],
      _meta: { [META]: Object.fromEntries(Object.entries(wishes).filter(([, value]) => value !== undefined)) },
    });
    const setup = setupOf(result, String(result["sessionId"]));
    const session = this.adopt(new Session(connection, { ...setup, meta: { cwd, ...setup.meta } }, this.adopt));
    const refused = notApplied(setup, session.agent, { model, mode });
    if (refused === null) return session;
    await session.terminate();
    throw refused;
  }

  /** Attach to a session; its conversation so far is replayed as updates to `onReplay`. */
  async load(id: string, options: OpenOptions & { onReplay?: (session: Session) => void } = {}): Promise<Session> {
    const { connection, session } = await this.#find(id, options.agent);
    options.onReplay?.(session);
    const result = await connection.acp.request<Record<string, unknown>>("session/load", attachParams(session));
    return this.#opened(session, result);
  }

  /** Attach to a session without a replay. Throws where the session has ended: then `open` reads its history. */
  async resume(id: string, options: OpenOptions = {}): Promise<Session> {
    const { connection, session } = await this.#find(id, options.agent);
    const result = await connection.acp.request<Record<string, unknown>>("session/resume", attachParams(session));
    return this.#opened(session, result);
  }

  /** Resume if that is possible; a session that has ended, or that its agent cannot take up again, is read-only. */
  async open(id: string, options: OpenOptions = {}): Promise<Session> {
    const { session } = await this.#find(id, options.agent);
    try {
      return await this.resume(session.id, { agent: session.agent });
    } catch (error) {
      if (!["session_ended", "agent_unsupported"].includes(errorKind(error) ?? "")) throw error;
      Object.assign(session.setup.meta, { readOnly: true, reason: (error as Error).message });
      return session;
    }
  }

  /** Newest first, page by page. */
  async list(options: ListOptions = {}): Promise<SessionList> {
    return await this.http.json("GET", "/v1/sessions", { query: { ...options } });
  }

  /**
   * Sessions whose conversation has all these words, `"quoted ones"` in order; the newest hit comes first.
   * `sequence` of a hit is where it begins in the session's history.
   */
  async search(words: string, options: SearchOptions = {}): Promise<SearchResult> {
    return await this.http.json("GET", "/v1/search", { query: { q: words, ...options } });
  }

  async get(id: string, options: OpenOptions = {}): Promise<SessionDetail> {
    return await this.http.json("GET", `/v1/sessions/${encodeURIComponent(id)}`, { query: { ...options } });
  }

  /** The whole history as a file: `jsonl` for programs, `markdown` for people. */
  async transcript(id: string, format: "jsonl" | "markdown" = "jsonl", options: OpenOptions = {}): Promise<Blob> {
    const path = `/v1/sessions/${encodeURIComponent(id)}/transcript`;
    return await (await this.http.request("GET", path, { query: { format, ...options } })).blob();
  }

  async #find(id: string, agent: string | undefined): Promise<{ connection: AgentConnection; session: Session }> {
    const detail = await this.get(id, agent === undefined ? {} : { agent });
    const connection = await this.connectionTo(detail.agent);
    const meta = { agent: detail.agent, alias: detail.alias ?? null, cwd: detail.cwd ?? "/" };
    const session = new Session(connection, { sessionId: detail.sessionId, meta }, this.adopt);
    return { connection, session: this.adopt(session) };
  }

  #opened(session: Session, result: Record<string, unknown>): Session {
    const setup = setupOf(result, session.id);
    Object.assign(session.setup, setup, { meta: { ...session.setup.meta, ...setup.meta } });
    return session;
  }
}

function attachParams(session: Session): Record<string, unknown> {
  return { sessionId: session.id, cwd: session.setup.meta["cwd"] ?? "/", mcpServers: [] };
}
