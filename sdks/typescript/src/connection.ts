import {
  type ClientCapabilities,
  type ClientConnection,
  type ClientContext,
  client,
  type InitializeResponse,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk";
import type { Http } from "./http.js";
import { type AskHandlers, answerAsk } from "./questions.js";
import type { BackoffOptions } from "./rpc/backoff.js";
import { type Envelope, META, type Notice, sessionOf } from "./rpc/messages.js";
import { type ConnectionState, RpcStream } from "./rpc/stream.js";
import { ProblemError } from "./errors.js";
import { Turns } from "./turns.js";

export interface ConnectionOptions {
  http: Http;
  agent: string;
  name: string;
  backoff?: BackoffOptions | undefined;
  giveUpAfter?: number | undefined;
  silence?: number | undefined;
  handlersOf: (sessionId: string | null) => AskHandlers;
  onState?: ((state: ConnectionState) => void) | undefined;
  capabilities: ClientCapabilities;
}

type NoticeListener = (notice: Notice) => void;
type EnvelopeListener = (envelope: Envelope) => void;

/** One attachment to one agent: the ACP SDK's connection over our stream, and who listens to which session. */
export class AgentConnection {
  readonly agent: string;
  readonly stream: RpcStream;
  /** Whose turns run in the sessions. */
  readonly turns = new Turns();
  readonly #connection: ClientConnection;
  readonly #notices = new Map<string, Set<NoticeListener>>();
  readonly #everything = new Set<NoticeListener>();
  readonly #envelopes = new Set<EnvelopeListener>();
  readonly #left = new Map<string | null, Set<() => void>>();
  #initialized!: InitializeResponse;

  private constructor(options: ConnectionOptions) {
    this.agent = options.agent;
    this.stream = new RpcStream({
      http: options.http,
      backoff: options.backoff,
      giveUpAfter: options.giveUpAfter,
      silence: options.silence,
      onNotice: (notice) => this.#dispatch(notice),
      onTurn: (sessionId, turnId) => this.turns.recover(sessionId, turnId),
      onEnvelope: (envelope) => {
        for (const listener of this.#envelopes) listener(envelope);
      },
      onState: options.onState,
    });
    this.#connection = client({ name: options.name })
      .onRequest("*", async ({ method, params, signal, requestId }) => {
        const sessionId = (params as { sessionId?: string } | null)?.sessionId ?? null;
        for (;;) {
          const isOurTurn = this.turns.isOurs(sessionId);
          const answer = await answerAsk(options.handlersOf(sessionId), method, params, { signal, requestId }, isOurTurn);
          if (answer !== undefined) return answer;
          await this.#leftToOthers(sessionId, signal);
        }
      })
      .connect(this.stream);
  }

  /** Open it. Throws RequestError with the problem document as its data when the server refuses. */
  static async open(options: ConnectionOptions): Promise<AgentConnection> {
    const connection = new AgentConnection(options);
    try {
      connection.#initialized = await connection.acp.request("initialize", {
        protocolVersion: PROTOCOL_VERSION,
        clientCapabilities: options.capabilities,
        clientInfo: { name: options.name, version: "0.2.0" },
        _meta: { [META]: { agent: options.agent } },
      });
      const meta = connection.#initialized._meta as Record<string, { extensions?: unknown } | undefined> | null | undefined;
      connection.turns.learn(meta?.[META]?.extensions);
    } catch (error) {
      await connection.stream.close();
      throw asProblem(error);
    }
    return connection;
  }

  /** The ACP SDK's own view of the agent, for methods that have no shorthand here. */
  get acp(): ClientContext {
    return this.#connection.agent;
  }

  get initialized(): InitializeResponse {
    return this.#initialized;
  }

  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  get isClosed(): boolean {
    return this.stream.state === "closed";
  }

  /** Be told of a session's notifications, or of all; gives the way to stop. */
  onNotice(sessionId: string | null, listener: NoticeListener): () => void {
    const listeners = sessionId === null ? this.#everything : (this.#notices.get(sessionId) ?? new Set());
    if (sessionId !== null) this.#notices.set(sessionId, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (sessionId !== null && listeners.size === 0) this.#notices.delete(sessionId);
    };
  }

  /** See every message in both directions. */
  onEnvelope(listener: EnvelopeListener): () => void {
    this.#envelopes.add(listener);
    return () => this.#envelopes.delete(listener);
  }

  async close(): Promise<void> {
    await this.stream.close();
    this.#connection.close();
  }

  /** A handler was set: it is asked what is open still. */
  offerAgain(sessionId: string): void {
    for (const offer of this.#left.get(sessionId) ?? []) offer();
  }

  /** Settles when another handler may answer. Throws when the server has taken the question back. */
  async #leftToOthers(sessionId: string | null, signal: AbortSignal): Promise<void> {
    const left = this.#left.get(sessionId) ?? new Set();
    this.#left.set(sessionId, left);
    let offer = (): void => {};
    await new Promise<void>((resolve) => {
      offer = resolve;
      left.add(offer);
      signal.addEventListener("abort", offer, { once: true });
      if (signal.aborted) resolve();
    });
    left.delete(offer);
    if (left.size === 0) this.#left.delete(sessionId);
    if (signal.aborted) throw new RequestError(-32800, "answered elsewhere");
  }

  #dispatch(notice: Notice): void {
    this.turns.take(notice.message);
    const session = sessionOf(notice.message);
    const listeners = session === null ? undefined : this.#notices.get(session);
    for (const listener of [...(listeners ?? []), ...this.#everything]) listener(notice);
  }
}

function asProblem(error: unknown): unknown {
  const data = error instanceof RequestError ? (error.data as { status?: unknown; type?: unknown } | undefined) : null;
  return typeof data?.status === "number" && typeof data.type === "string" ? new ProblemError(data as never) : error;
}
