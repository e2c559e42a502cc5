import type {
  PromptResponse,
  SessionConfigOption,
  SessionModeState,
  SessionNotification,
  SessionUpdate,
  SetSessionConfigOptionResponse,
} from "@agentclientprotocol/sdk";
import type { AgentConnection } from "./connection.js";
import { type AskHandlers, watched } from "./questions.js";
import { type Follower, followSession, type SessionEvent } from "./follow.js";
import { EVENTS, META } from "./rpc/messages.js";
import type { HistoryPage } from "./rpc/recovery.js";
import { blocksOf, newTurnId, type PromptInput, Turn } from "./turn.js";
import type { OurPrompt } from "./turns.js";

/** What the server says of a session when it is made or opened. */
export interface SessionSetup {
  sessionId: string;
  modes?: SessionModeState | null;
  configOptions?: SessionConfigOption[] | null;
  models?: unknown;
  /** Ours: agent, alias, which wishes were applied, and whether it can only be read. */
  meta: { agent?: string; alias?: string | null; readOnly?: boolean; reason?: string; [name: string]: unknown };
}

export interface PromptOptions {
  /** Sending the same turnId again does not run the prompt again. Made up if absent. */
  turnId?: string;
  /** Cancels the turn. */
  signal?: AbortSignal;
}

/** Milliseconds after which a cancel is sent again. */
const CANCEL_AGAIN = [100, 400, 1500];
const TAKEN_BACK = -32800;

/** One conversation. It outlives this object, the connection and the server. */
export class Session {
  readonly id: string;
  #handlers: AskHandlers = {};
  readonly #prompts = new Set<OurPrompt>();

  constructor(
    readonly connection: AgentConnection,
    readonly setup: SessionSetup,
    private readonly adopt: (session: Session) => Session = (session) => session,
  ) {
    this.id = setup.sessionId;
    this.handlers = {};
  }

  /** Answers for this session; where one is absent, those given to `connect` are used. */
  get handlers(): AskHandlers {
    return this.#handlers;
  }

  set handlers(handlers: AskHandlers) {
    const offer = (): void => this.connection.offerAgain(this.id);
    this.#handlers = watched(handlers, offer);
    offer();
  }

  get agent(): string {
    return this.setup.meta.agent ?? this.connection.agent;
  }

  /** Send a prompt. Prompts of one session run one after the other, whoever sends them. */
  prompt(input: PromptInput, options: PromptOptions = {}): Turn {
    const { turns, acp } = this.connection;
    const turnId = options.turnId ?? newTurnId();
    const prompt = turns.begin(this.id, turnId);
    this.#prompts.add(prompt);
    const listeners = new Set<(update: SessionUpdate) => void>();
    const stop = this.onUpdate((update) => {
      if (turns.isRunning(prompt)) for (const listener of listeners) listener(update);
    });
    const cancel = (): void => void this.#cancel([prompt]);
    const response = acp
      .request<PromptResponse>("session/prompt", {
        sessionId: this.id,
        prompt: blocksOf(input),
        _meta: { [META]: { turnId } },
      })
      .catch((error: unknown): PromptResponse => {
        if (options.signal?.aborted && (error as { code?: number }).code === TAKEN_BACK) return { stopReason: "cancelled" };
        throw error;
      })
      .finally(() => {
        stop();
        turns.end(prompt);
        this.#prompts.delete(prompt);
        options.signal?.removeEventListener("abort", cancel);
      });
    options.signal?.addEventListener("abort", cancel, { once: true });
    if (options.signal?.aborted) cancel();
    return new Turn(turnId, response, (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    });
  }

  /** Ask the agent to stop the running turn, which then ends with the reason `cancelled`. */
  async cancel(): Promise<void> {
    await this.#stopRunning();
    this.#stopLater([...this.#prompts]);
  }

  async #stopRunning(): Promise<void> {
    await this.connection.acp.notify("session/cancel", { sessionId: this.id });
  }

  /** End these turns of ours, and nobody else's: one that waits is taken back. */
  async #cancel(prompts: OurPrompt[]): Promise<void> {
    const { turns, acp } = this.connection;
    for (const prompt of prompts) {
      if (prompt.waitsAs !== undefined) await acp.notify("$/cancel_request", { requestId: prompt.waitsAs as number });
      else if (prompt.isTold || !turns.isTelling) await this.#stopRunning();
    }
    this.#stopLater(prompts, (prompt) => this.#cancel([prompt]));
  }

  /** A cancel that reaches the server before the turn has begun cancels nothing: it is sent again when it has. */
  #stopLater(prompts: OurPrompt[], again: (prompt: OurPrompt) => Promise<void> = () => this.#stopRunning()): void {
    if (this.connection.turns.isTelling) {
      for (const prompt of prompts) {
        if (!prompt.isTold || prompt.waitsAs !== undefined) prompt.onTold = () => void again(prompt).catch(() => {});
      }
    } else {
      this.#cancelAgain(prompts).catch(() => {});
    }
  }

  /** For servers that do not say when a turn begins. */
  async #cancelAgain(prompts: OurPrompt[]): Promise<void> {
    for (const wait of CANCEL_AGAIN) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      if (!prompts.some((prompt) => this.#prompts.has(prompt))) return;
      await this.#stopRunning();
    }
  }

  /** Be told of every update; gives the way to stop. */
  onUpdate(listener: (update: SessionUpdate) => void): () => void {
    return this.connection.onNotice(this.id, ({ message }) => {
      if (message.method === "session/update") listener((message.params as SessionNotification).update);
    });
  }

  /** Be told how and why the session ended. */
  onEnded(listener: (ended: { reason: string; message: string; [name: string]: unknown }) => void): () => void {
    return this.connection.onNotice(this.id, ({ message }) => {
      if (message.method === "_sandboxagent/session/ended") listener(message.params as never);
    });
  }

  async setMode(modeId: string): Promise<void> {
    await this.connection.acp.request("session/set_mode", { sessionId: this.id, modeId });
  }

  async setModel(modelId: string): Promise<void> {
    await this.connection.acp.request<unknown>("session/set_model", { sessionId: this.id, modelId });
  }

  async setConfigOption(configId: string, value: string | boolean): Promise<SetSessionConfigOptionResponse> {
    return await this.connection.acp.request<SetSessionConfigOptionResponse>("session/set_config_option", {
      sessionId: this.id,
      configId,
      value,
    });
  }

  /** A page of the history: raw envelopes later than `after`, at most `limit` of them. */
  async events(options: { after?: number; limit?: number } = {}): Promise<HistoryPage> {
    return await this.connection.acp.request<HistoryPage>(EVENTS, { sessionId: this.id, ...options });
  }

  /** The whole history and then everything that happens, each once and in order. Close it when done. */
  follow(onEvents: (events: SessionEvent[]) => void): Follower {
    return followSession(this.connection, this.id, onEvents);
  }

  /** Store names and values with the session; null removes one. `title` is shown in lists. */
  async setMetadata(metadata: Record<string, unknown>): Promise<void> {
    await this.connection.acp.request("_sandboxagent/session/set_metadata", { sessionId: this.id, metadata });
  }

  async rename(title: string | null): Promise<void> {
    await this.setMetadata({ title });
  }

  /** A new session that knows what this one knows. Not every agent can. */
  async fork(): Promise<Session> {
    const cwd = this.setup.meta["cwd"] ?? "/";
    const params = { sessionId: this.id, cwd };
    const result = await this.connection.acp.request<Record<string, unknown>>("session/fork", params);
    const setup = setupOf(result, String(result["sessionId"]));
    return this.adopt(new Session(this.connection, { ...setup, meta: { cwd, ...setup.meta } }, this.adopt));
  }

  /** End it for everybody. The history stays. */
  async terminate(): Promise<void> {
    await this.connection.acp.request("_sandboxagent/session/terminate", { sessionId: this.id });
  }

  /** Stop hearing of it on this connection. */
  async detach(): Promise<void> {
    await this.connection.acp.request("_sandboxagent/session/detach", { sessionId: this.id });
  }

  /** End it and forget its history. */
  async delete(): Promise<void> {
    await this.connection.acp.request("session/delete", { sessionId: this.id });
  }
}

export function setupOf(result: Record<string, unknown>, sessionId: string): SessionSetup {
  const meta = (result["_meta"] as Record<string, SessionSetup["meta"]> | null | undefined)?.[META] ?? {};
  const { modes, configOptions, models } = result as Partial<SessionSetup>;
  return {
    sessionId,
    ...(modes === undefined ? {} : { modes }),
    ...(configOptions === undefined ? {} : { configOptions }),
    ...(models === undefined ? {} : { models }),
    meta,
  };
}
