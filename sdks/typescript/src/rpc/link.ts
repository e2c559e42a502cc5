import type { AnyMessage, AnyRequest, AnyResponse } from "@agentclientprotocol/sdk";
import { ConnectionLost } from "../errors.js";
import type { Http } from "../http.js";
import { Backoff, type BackoffOptions } from "./backoff.js";
import { isPassing, type Posted, Wire } from "./wire.js";

export type ConnectionState = "connecting" | "open" | "reconnecting" | "closed";

export interface LinkOptions {
  http: Http;
  backoff?: BackoffOptions | undefined;
  /** Milliseconds without any connection after which everything that waits fails; Infinity by default. */
  giveUpAfter?: number | undefined;
  onState?: ((state: ConnectionState) => void) | undefined;
}

/** One connection that the server gave us. Event ids start anew with each. */
export interface Current {
  readonly id: string;
  /** The number of the newest event that was taken from its stream. */
  lastEventId: number;
}

/** The connection to the server as it is now: opened with `initialize`, replaced when the server has forgotten it. */
export class Link {
  readonly #wire: Wire;
  readonly #options: LinkOptions;
  readonly #backoff: Backoff;
  readonly #closed = new AbortController();
  #initialize: AnyRequest | null = null;
  #current: Current | null = null;
  #replacing: Promise<void> | null = null;
  #state: ConnectionState = "connecting";
  #lostAt: number | null = null;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#wire = new Wire(options.http);
    this.#backoff = new Backoff(options.backoff);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get current(): Current | null {
    return this.#current;
  }

  get initializeId(): unknown {
    return this.#initialize?.id;
  }

  /** Open it. One that could not be opened can be tried again. */
  async open(request: AnyRequest): Promise<AnyResponse> {
    this.#initialize = request;
    try {
      const { answer } = await this.#open();
      this.#enter("open");
      return answer;
    } catch (error) {
      this.#initialize = null;
      throw error;
    }
  }

  /** Send one message, once. Throws ProblemError for a refusal, ConnectionLost when no whole answer came. */
  async post(message: AnyMessage, options: { async?: boolean } = {}): Promise<Posted> {
    return await this.#wire.post(message, this.#current?.id ?? null, options);
  }

  /** The stream from where we are. */
  async read(from: Current, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const body = await this.#wire.open(from.id, from.lastEventId, signal);
    this.#enter("open");
    return body;
  }

  /** Have another connection in place of `stale`; `onReplaced` takes the sessions up before anybody else uses it. */
  async replace(stale: Current | null, onReplaced: () => Promise<void>): Promise<void> {
    if (stale !== this.#current) return this.#replacing ?? undefined;
    this.#replacing ??= this.#replace(onReplaced).finally(() => {
      this.#replacing = null;
    });
    await this.#replacing;
  }

  /** The stream ended or broke. */
  lost(): void {
    this.#enter("reconnecting");
  }

  /** Something came: the next failure is the first. */
  heard(): void {
    this.#backoff.reset();
  }

  /** Try again at once what waits for the next try. */
  wake(): void {
    this.#backoff.wake();
  }

  /** Wait before the next try. Throws when it has been given up, or closed. */
  async pause(): Promise<void> {
    const limit = this.#options.giveUpAfter ?? Number.POSITIVE_INFINITY;
    if (this.#lostAt !== null && Date.now() - this.#lostAt > limit) {
      void this.close(new ConnectionLost(`the server could not be reached for ${limit} ms`));
    }
    this.throwIfClosed();
    await this.#backoff.pause();
  }

  throwIfClosed(): void {
    this.#closed.signal.throwIfAborted();
  }

  /** Calls back once, when it is closed for whatever reason. */
  onClosed(listener: (error: Error) => void): void {
    this.#closed.signal.addEventListener("abort", () => listener(this.#closed.signal.reason as Error), { once: true });
  }

  /** Close the connection. Sessions and their turns go on. */
  async close(error: Error): Promise<void> {
    if (this.#state === "closed") return;
    this.#enter("closed");
    this.#closed.abort(error);
    this.wake();
    if (this.#current !== null) await this.#wire.close(this.#current.id).catch(() => {});
  }

  async #replace(onReplaced: () => Promise<void>): Promise<void> {
    this.#enter("reconnecting");
    for (;;) {
      this.throwIfClosed();
      try {
        await this.#open();
        break;
      } catch (error) {
        if (!isPassing(error)) {
          void this.close(error as Error);
          throw error;
        }
        await this.pause();
      }
    }
    await onReplaced();
    this.wake();
  }

  async #open(): Promise<{ answer: AnyResponse }> {
    const { answer, connectionId } = await this.#wire.post(this.#initialize as AnyRequest, null);
    if (answer === null || connectionId === null) throw new ConnectionLost("initialize was not answered");
    this.#current = { id: connectionId, lastEventId: 0 };
    return { answer };
  }

  #enter(state: ConnectionState): void {
    if (this.#state === state || this.#state === "closed") return;
    this.#state = state;
    this.#lostAt = state === "reconnecting" ? Date.now() : null;
    this.#options.onState?.(state);
  }
}
