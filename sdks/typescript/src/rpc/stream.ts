import type { AnyMessage, AnyNotification, AnyRequest, AnyResponse, Stream } from "@agentclientprotocol/sdk";
import { ConnectionLost } from "../errors.js";
import { type Http, wasNeverSent } from "../http.js";
import { Backoff, type BackoffOptions } from "./backoff.js";
import {
  type Envelope,
  GAP,
  isAnswer,
  isRepeatable,
  isRequest,
  keyOf,
  type Notice,
  prefersStream,
} from "./messages.js";
import { Recovery } from "./recovery.js";
import { readEvents } from "./sse.js";
import { asAnswer, isPassing, isUnknownConnection, Wire } from "./wire.js";

export type ConnectionState = "connecting" | "open" | "reconnecting" | "closed";

export interface RpcStreamOptions {
  http: Http;
  backoff?: BackoffOptions | undefined;
  /** Milliseconds without any connection after which everything that waits fails; Infinity by default. */
  giveUpAfter?: number | undefined;
  /** Milliseconds without a byte on the stream after which it is taken for dead. The server sends one every 15 s. */
  silence?: number | undefined;
  onNotice: (notice: Notice) => void;
  onEnvelope?: ((envelope: Envelope) => void) | undefined;
  onState?: ((state: ConnectionState) => void) | undefined;
}

interface Pending {
  request: AnyRequest;
  /** The server has it, and will answer on the stream. */
  isAccepted: boolean;
}

/** How long a request that may not be sent twice waits for its answer on a stream that works again. */
const LOST_ANSWER = 10_000;

/**
 * ACP over `/v1/rpc`, as the `Stream` that the ACP SDK reads and writes.
 *
 * Notifications go to `onNotice` in order; requests and answers go through the ACP SDK. An answer is passed on only
 * after every event that preceded it. Cuts are bridged with Last-Event-ID, a restarted server by a new connection,
 * `session/resume` and the sessions' histories.
 */
export class RpcStream implements Stream {
  readonly readable: ReadableStream<AnyMessage>;
  readonly writable: WritableStream<AnyMessage>;
  readonly #options: RpcStreamOptions;
  readonly #wire: Wire;
  readonly #recovery: Recovery;
  readonly #pending = new Map<string, Pending>();
  readonly #asked = new Set<string>();
  readonly #backoff: Backoff;
  readonly #abort = new AbortController();
  #held: { after: number; answer: AnyResponse }[] = [];
  #incoming!: ReadableStreamDefaultController<AnyMessage>;
  #initialize: AnyRequest | null = null;
  #connectionId: string | null = null;
  #lastEventId = 0;
  #generation = 0;
  #reopening: Promise<void> | null = null;
  #inOrder: Promise<void> = Promise.resolve();
  #state: ConnectionState = "connecting";
  #lostAt: number | null = null;
  #reading = new AbortController();

  constructor(options: RpcStreamOptions) {
    this.#options = options;
    this.#wire = new Wire(options.http);
    this.#backoff = new Backoff(options.backoff);
    this.#recovery = new Recovery((method, params) => this.callAside(method, params), options.onNotice);
    this.readable = new ReadableStream<AnyMessage>({
      start: (controller) => {
        this.#incoming = controller;
      },
    });
    this.writable = new WritableStream<AnyMessage>({ write: (message) => this.#write(message) });
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get connectionId(): string | null {
    return this.#connectionId;
  }

  /** The number of the newest event that was taken from the stream. */
  get lastEventId(): number {
    return this.#lastEventId;
  }

  /** A request outside the ACP SDK, for which the number of the event before its answer is needed. */
  async callAside(method: string, params: unknown): Promise<{ answer: AnyResponse; lastEventId: number }> {
    const request = { jsonrpc: "2.0", id: `aside-${crypto.getRandomValues(new Uint32Array(2)).join("")}`, method, params };
    for (;;) {
      this.#throwIfClosed();
      try {
        const posted = await this.#wire.post(request as AnyRequest, this.#connectionId);
        if (posted.answer === null) throw new ConnectionLost(`${method} was not answered in time`);
        return { answer: posted.answer, lastEventId: posted.lastEventId };
      } catch (error) {
        if (!isPassing(error)) throw error;
        await this.#pause();
      }
    }
  }

  /** Try again at once: the network is back, or the tab is in front again. */
  wake(): void {
    this.#backoff.wake();
  }

  /** Take the stream for dead and read on from the last event over a new one. */
  restartReading(): void {
    this.#reading.abort(new ConnectionLost("the stream is being restarted"));
    this.wake();
  }

  /** Close the connection. Sessions and their turns go on. */
  async close(error: Error = new ConnectionLost("the connection was closed")): Promise<void> {
    if (this.#state === "closed") return;
    this.#setState("closed");
    const connectionId = this.#connectionId;
    this.#abort.abort(error);
    this.#reading.abort(error);
    this.wake();
    try {
      this.#incoming.error(error);
    } catch {
      // the reader has cancelled it already
    }
    if (connectionId !== null) await this.#wire.close(connectionId).catch(() => {});
  }

  #write(message: AnyMessage): void {
    this.#throwIfClosed();
    this.#tap("out", message, null);
    if (!isRequest(message)) {
      if (isAnswer(message) && !this.#asked.delete(keyOf(message.id))) return;
      this.#enqueue(() => this.#deliverOut(message));
      return;
    }
    if (this.#initialize === null) {
      this.#initialize = message;
      void this.#open(message);
      return;
    }
    const pending = { request: message, isAccepted: false };
    this.#pending.set(keyOf(message.id), pending);
    if (prefersStream(message)) this.#enqueue(() => this.#call(pending, true));
    else this.#call(pending, false).catch(() => {});
  }

  /** In order: a cancel must not overtake the prompt that it cancels. */
  #enqueue(work: () => Promise<void>): void {
    this.#inOrder = this.#inOrder.then(work).catch(() => {});
  }

  async #open(request: AnyRequest): Promise<void> {
    try {
      const posted = await this.#wire.post(request, null);
      if (posted.answer === null || posted.connectionId === null) throw new ConnectionLost("initialize was not answered");
      this.#connectionId = posted.connectionId;
      this.#setState("open");
      this.#receive(posted.answer, null);
      this.#read().catch(() => {}); // it ends only when the connection is closed
    } catch (error) {
      this.#initialize = null;
      this.#receive(asAnswer(request, error), null);
    }
  }

  async #call(pending: Pending, isAsync: boolean): Promise<void> {
    const { request } = pending;
    while (this.#pending.get(keyOf(request.id)) === pending && this.#state !== "closed") {
      const generation = this.#generation;
      try {
        const posted = await this.#wire.post(request, this.#connectionId, { async: isAsync });
        pending.isAccepted = posted.answer === null;
        if (posted.answer !== null) this.#hold(posted.answer, posted.lastEventId, generation);
        return;
      } catch (error) {
        if (isUnknownConnection(error)) await this.#reopen(generation);
        else if (!isPassing(error)) return this.#fail(pending, error);
        else if (error instanceof ConnectionLost && !isRepeatable(request) && !wasNeverSent(error)) {
          this.#failLater(pending, error);
          return;
        } else await this.#pause();
      }
    }
  }

  async #deliverOut(message: AnyMessage): Promise<void> {
    while (this.#state !== "closed") {
      const generation = this.#generation;
      try {
        await this.#wire.post(message, this.#connectionId);
        return;
      } catch (error) {
        if (isUnknownConnection(error)) {
          await this.#reopen(generation);
          if (isAnswer(message)) return; // the question is gone with the old connection
        } else if (isPassing(error)) await this.#pause();
        else return;
      }
    }
  }

  /** Nobody knows whether the server has the request. If it has, the answer comes on the stream. */
  #failLater(pending: Pending, error: unknown): void {
    pending.isAccepted = true;
    setTimeout(() => this.#fail(pending, error), LOST_ANSWER);
  }

  #fail(pending: Pending, error: unknown): void {
    if (this.#pending.get(keyOf(pending.request.id)) === pending) this.#receive(asAnswer(pending.request, error), null);
  }

  /** Keep an answer until the events before it have come. */
  #hold(answer: AnyResponse, after: number, generation: number): void {
    if (generation !== this.#generation || after <= this.#lastEventId) this.#receive(answer, null);
    else this.#held.push({ after, answer });
  }

  #releaseHeld(): void {
    if (this.#held.length === 0) return;
    const due = this.#held.filter(({ after }) => after <= this.#lastEventId);
    this.#held = this.#held.filter(({ after }) => after > this.#lastEventId);
    for (const { answer } of due) this.#receive(answer, null);
  }

  async #read(): Promise<void> {
    while (this.#state !== "closed" && this.#connectionId !== null) {
      const generation = this.#generation;
      this.#reading = new AbortController();
      try {
        await this.#readOnce(this.#reading.signal);
      } catch (error) {
        if (this.#abort.signal.aborted) return;
        if (isUnknownConnection(error) || isBadPosition(error)) await this.#reopen(generation).catch(() => {});
        else if (!isPassing(error) && isRefusal(error)) return void this.close(error as Error);
      }
      if (this.#abort.signal.aborted) return;
      if (generation === this.#generation) {
        this.#setState("reconnecting");
        await this.#pause();
      }
    }
  }

  async #readOnce(signal: AbortSignal): Promise<void> {
    const body = await this.#wire.open(this.#connectionId as string, this.#lastEventId, signal);
    const watch = new SilenceWatch(this.#options.silence ?? 45_000, () => this.restartReading());
    try {
      this.#setState("open");
      for await (const event of readEvents(body, () => watch.heard())) {
        this.#backoff.reset();
        if (event.id === null || event.id <= this.#lastEventId) continue;
        const before = this.#lastEventId;
        this.#lastEventId = event.id;
        await this.#take(JSON.parse(event.data) as AnyMessage, event.id, before);
        this.#releaseHeld();
      }
    } finally {
      watch.stop();
    }
  }

  async #take(message: AnyMessage, eventId: number, before: number): Promise<void> {
    if (!isAnswer(message) && message.method === GAP) {
      this.#lastEventId = before; // held answers wait until what is missing has been read
      this.#receive(message, eventId);
      const { sessions } = (message as { params?: { sessions?: string[] } }).params ?? {};
      await this.#recovery.catchUp(sessions ?? this.#recovery.sessions());
      this.#lastEventId = eventId;
    } else {
      this.#receive(message, eventId);
    }
  }

  #receive(message: AnyMessage, eventId: number | null): void {
    if (isAnswer(message)) {
      this.#tap("in", message, eventId);
      this.#receiveAnswer(message);
      return;
    }
    const isNew = isRequest(message) || this.#recovery.isNew(message as AnyNotification, eventId);
    if (!isNew) return;
    this.#tap("in", message, eventId);
    if (isRequest(message)) {
      this.#asked.add(keyOf(message.id));
      this.#incoming.enqueue(message);
    } else if (message.method === "$/cancel_request") {
      this.#incoming.enqueue(message);
    } else {
      this.#options.onNotice({ message: message as AnyNotification, eventId, sequence: null });
    }
  }

  #receiveAnswer(answer: AnyResponse): void {
    const pending = this.#pending.get(keyOf(answer.id));
    if (pending === undefined && keyOf(answer.id) !== keyOf(this.#initialize?.id ?? answer.id)) return; // a double
    this.#pending.delete(keyOf(answer.id));
    if (pending !== undefined && "result" in answer) this.#recovery.answered(pending.request, answer.result);
    this.#incoming.enqueue(answer);
  }

  /** The server does not know the connection any more: open another one and take the sessions up again. */
  async #reopen(generation: number): Promise<void> {
    if (generation !== this.#generation) return this.#reopening ?? undefined;
    this.#reopening ??= this.#reopenNow().finally(() => {
      this.#reopening = null;
    });
    await this.#reopening;
  }

  async #reopenNow(): Promise<void> {
    this.#setState("reconnecting");
    for (;;) {
      this.#throwIfClosed();
      try {
        const posted = await this.#wire.post(this.#initialize as AnyRequest, null);
        if (posted.connectionId === null) throw new ConnectionLost("initialize was not answered");
        this.#connectionId = posted.connectionId;
        break;
      } catch (error) {
        if (!isPassing(error)) {
          void this.close(error as Error);
          throw error;
        }
        await this.#pause();
      }
    }
    this.#generation += 1;
    this.#lastEventId = 0;
    this.#abandonQuestions();
    for (const { answer } of this.#held.splice(0)) this.#receive(answer, null);
    await this.#recovery.resume().catch(() => {});
    for (const pending of [...this.#pending.values()].filter(({ isAccepted }) => isAccepted)) {
      pending.isAccepted = false;
      if (isRepeatable(pending.request)) this.#enqueue(() => this.#call(pending, prefersStream(pending.request)));
      else this.#fail(pending, new ConnectionLost(`the server was restarted during ${pending.request.method}`));
    }
    this.#reading.abort(new ConnectionLost("the connection was replaced"));
    this.wake();
  }

  #abandonQuestions(): void {
    for (const key of this.#asked) {
      const params = { requestId: JSON.parse(key) as number };
      this.#receive({ jsonrpc: "2.0", method: "$/cancel_request", params }, null);
    }
    this.#asked.clear();
  }

  async #pause(): Promise<void> {
    const limit = this.#options.giveUpAfter ?? Number.POSITIVE_INFINITY;
    if (this.#lostAt !== null && Date.now() - this.#lostAt > limit) {
      void this.close(new ConnectionLost(`the server could not be reached for ${limit} ms`));
    }
    this.#throwIfClosed();
    await this.#backoff.pause();
  }

  #setState(state: ConnectionState): void {
    if (this.#state === state || this.#state === "closed") return;
    this.#state = state;
    this.#lostAt = state === "reconnecting" ? Date.now() : null;
    this.#options.onState?.(state);
  }

  #throwIfClosed(): void {
    if (this.#state === "closed") throw this.#abort.signal.reason;
  }

  #tap(direction: "in" | "out", message: AnyMessage, eventId: number | null): void {
    this.#options.onEnvelope?.({ direction, time: Date.now(), message, eventId });
  }
}

/** Calls `onSilence` when nothing has been heard for so long. */
class SilenceWatch {
  #last = Date.now();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(limit: number, onSilence: () => void) {
    this.#timer = setInterval(() => {
      if (Date.now() - this.#last > limit) onSilence();
    }, Math.max(limit / 4, 10));
  }

  heard(): void {
    this.#last = Date.now();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

function isBadPosition(error: unknown): boolean {
  return (error as { status?: number }).status === 400;
}

function isRefusal(error: unknown): boolean {
  const status = (error as { status?: number }).status;
  return status !== undefined && status !== 409;
}
