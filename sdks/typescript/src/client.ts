import type { ClientCapabilities } from "@agentclientprotocol/sdk";
import { Agents } from "./agents.js";
import type { Health } from "./api.js";
import { AgentConnection } from "./connection.js";
import { Files } from "./files.js";
import { type Fetch, Http } from "./http.js";
import type { AskHandlers } from "./questions.js";
import type { BackoffOptions } from "./rpc/backoff.js";
import { META } from "./rpc/messages.js";
import type { ConnectionState } from "./rpc/stream.js";
import { Nodes } from "./nodes.js";
import { Processes } from "./processes.js";
import { Roster } from "./roster.js";
import { Sessions } from "./sessions.js";

export interface ClientOptions extends AskHandlers {
  /** The agent for sessions that name none. */
  agent?: string;
  /** How this client calls itself towards the server. */
  name?: string;
  /** Hear agents in their own version of ACP, as the history has it; otherwise all is told in version 1. */
  asSpoken?: boolean;
  fetch?: Fetch;
  backoff?: BackoffOptions;
  /** Milliseconds without a connection after which everything that waits fails; never by default. */
  giveUpAfter?: number;
  /** Milliseconds without a byte after which a stream is taken for dead; 45 s by default. */
  silence?: number;
  onState?: (agent: string, state: ConnectionState) => void;
}

export interface ConnectOptions extends ClientOptions {
  url: string;
  token?: string | undefined;
}

/** A Sandbox Agent server, and everything that can be done with it. */
export class SandboxAgent {
  readonly url: string;
  readonly agents: Agents;
  readonly sessions: Sessions;
  readonly files: Files;
  readonly processes: Processes;
  readonly nodes: Nodes;
  readonly #http: Http;
  readonly #options: ConnectOptions;
  readonly #connections = new Map<string, Promise<AgentConnection>>();
  readonly #roster = new Roster();
  #default: string | undefined;

  constructor(options: ConnectOptions) {
    this.#options = options;
    this.#default = options.agent;
    this.#http = new Http(options);
    this.url = this.#http.url;
    this.agents = new Agents(this.#http);
    this.files = new Files(this.#http);
    this.processes = new Processes(this.#http);
    this.nodes = new Nodes(this.#http);
    this.sessions = new Sessions(
      this.#http,
      (agent) => this.connection(agent),
      (session) => this.#roster.add(session),
    );
  }

  /** Check that the server is there and takes the token, then give the client. Throws ProblemError, ConnectionLost. */
  static async connect<T extends SandboxAgent>(
    this: new (options: ConnectOptions) => T,
    options: ConnectOptions,
  ): Promise<T> {
    const sandbox = new this(options);
    await sandbox.health();
    return sandbox;
  }

  async health(): Promise<Health> {
    return await this.#http.json("GET", "/v1/health");
  }

  /** The connection to one agent, opened on first use and shared by all its sessions. Installs and starts the agent. */
  async connection(agent = this.#default): Promise<AgentConnection> {
    if (agent === undefined) throw new TypeError("name an agent: none was given to connect");
    this.#default ??= agent;
    const known = this.#connections.get(agent);
    if (known !== undefined && !(await known.then((c) => c.isClosed, () => true))) return await known;
    const opened = AgentConnection.open({
      http: this.#http,
      agent,
      name: this.#options.name ?? "sandbox-agent-client",
      backoff: this.#options.backoff,
      giveUpAfter: this.#options.giveUpAfter,
      silence: this.#options.silence,
      handlersOf: (sessionId) => this.#handlersOf(agent, sessionId),
      onState: (state) => this.#options.onState?.(agent, state),
      capabilities: this.#capabilities(),
    });
    this.#connections.set(agent, opened);
    opened.catch(() => this.#connections.delete(agent));
    return await opened;
  }

  /**
   * Log an agent in, for all its clients, by one of the `authMethods` of `(await sandbox.connection(agent)).initialized`.
   * Not needed where a key in the server's environment does.
   */
  async authenticate(agent: string, methodId: string): Promise<void> {
    await (await this.connection(agent)).acp.request("authenticate", { methodId });
  }

  /** The network is back, or the page is in front again: look after every connection now. */
  wake(): void {
    for (const connection of this.#connections.values()) {
      void connection.then(({ stream }) => stream.restartReading()).catch(() => {});
    }
  }

  /** Close the connections. Sessions go on on the server. */
  async close(): Promise<void> {
    const opened = await Promise.allSettled(this.#connections.values());
    this.#connections.clear();
    await Promise.all(opened.map((one) => (one.status === "fulfilled" ? one.value.close() : undefined)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #capabilities(): ClientCapabilities {
    const form = this.#options.onElicitation === undefined ? {} : { elicitation: { form: {} } };
    return this.#options.asSpoken ? { ...form, _meta: { [META]: { asSpoken: true } } } : form;
  }

  #handlersOf(agent: string, sessionId: string | null): AskHandlers {
    const own = this.#roster.of(agent, sessionId).map(({ handlers }) => defined(handlers));
    return Object.assign(defined(this.#options), ...own) as AskHandlers;
  }
}

function defined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
}
