import type { AnyMessage, AnyNotification, AnyRequest, AnyResponse, Stream } from "@agentclientprotocol/sdk";
import { ConnectionLost } from "../errors.js";
import { type Current, Link, type LinkOptions } from "./link.js";
import { type Envelope, GAP, isAnswer, isRequest, keyOf, type Notice } from "./messages.js";
import { Recovery } from "./recovery.js";
import { Requests } from "./requests.js";
import { readEvents } from "./sse.js";
import { asAnswer, isPassing, isUnknownConnection } from "./wire.js";

export type { ConnectionState } from "./link.js";

export interface RpcStreamOptions extends LinkOptions {
  /** Milliseconds without a byte on the stream after which it is taken for dead. The server sends one every 15 s. */
  silence?: number | undefined;
  onNotice: (notice: Notice) => void;
  /** What is read from a session's history next are the updates of this turn; null: of none. */
  onTurn?: ((sessionId: string, turnId: unknown) => void) | undefined;
  onEnvelope?: ((envelope: Envelope) => void) | undefined;
}

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
  readonly #link: Link;
  readonly #requests: Requests;
  readonly #recovery: Recovery;
  readonly #asked = new Set<string>();
  #incoming!: ReadableStreamDefaultController<AnyMessage>;
  #reading = new AbortController();

  constructor(options: RpcStreamOptions) {
    this.#options = options;
    this.#link = new Link(options);
    this.#requests = new Requests({
      link: this.#link,
      reopen: (stale) => this.#reopen(stale),
      onAnswer: (answer) => this.#receive(answer, null),
    });
    this.#recovery = new Recovery({
      call: (method, params) => this.callAside(method, params),
      onNotice: options.onNotice,
      onTurn: options.onTurn ?? (() => {}),
    });
    this.readable = new ReadableStream<AnyMessage>({
      start: (controller) => {
        this.#incoming = controller;
      },
    });
    this.writable = new WritableStream<AnyMessage>({ write: (message) => this.#write(message) });
    this.#link.onClosed((error) => this.#closed(error));
  }

  get state(): Link["state"] {
    return this.#link.state;
  }

  get connectionId(): string | null {
    return this.#link.current?.id ?? null;
  }

  /** The number of the newest event that was taken from the stream. */
  get lastEventId(): number {
    return this.#link.current?.lastEventId ?? 0;
  }

  /** A request outside the ACP SDK, for which the number of the event before its answer is needed. */
  async callAside(method: string, params: unknown): Promise<{ answer: AnyResponse; lastEventId: number }> {
    const request = { jsonrpc: "2.0", id: `aside-${crypto.getRandomValues(new Uint32Array(2)).join("")}`, method, params };
    for (;;) {
      this.#link.throwIfClosed();
      try {
        const posted = await this.#link.post(request as AnyRequest);
        if (posted.answer === null) throw new ConnectionLost(`${method} was not answered in time`);
        return { answer: posted.answer, lastEventId: posted.lastEventId };
      } catch (error) {
        if (!isPassing(error)) throw error;
        await this.#link.pause();
      }
    }
  }

  /** Try again at once: the network is back, or the tab is in front again. */
  wake(): void {
    this.#link.wake();
  }

  /** Take the stream for dead and read on from the last event over a new one. */
  restartReading(): void {
    this.#reading.abort(new ConnectionLost("the stream is being restarted"));
    this.wake();
  }

  /** Close the connection. Sessions and their turns go on. */
  async close(error: Error = new ConnectionLost("the connection was closed")): Promise<void> {
    await this.#link.close(error);
  }

  #closed(error: Error): void {
    this.#reading.abort(error);
    try {
      this.#incoming.error(error);
    } catch {
      // the reader has cancelled it already
    }
  }

  #write(message: AnyMessage): void {
    this.#link.throwIfClosed();
    this.#tap("out", message, null);
    if (isRequest(message)) {
      if (message.method === "initialize") void this.#open(message);
      else this.#requests.request(message);
    } else if (!isAnswer(message) || this.#asked.delete(keyOf(message.id))) {
      this.#requests.tell(message);
    }
  }

  async #open(request: AnyRequest): Promise<void> {
    try {
      this.#receive(await this.#link.open(request), null);
      this.#read().catch(() => {}); // it ends only when the connection is closed
    } catch (error) {
      this.#receive(asAnswer(request, error), null);
    }
  }

  async #read(): Promise<void> {
    while (this.state !== "closed") {
      const current = this.#link.current as Current;
      this.#reading = new AbortController();
      try {
        await this.#readOnce(current, this.#reading.signal);
      } catch (error) {
        if (isClosed(this.#link)) return;
        if (isUnknownConnection(error) || isBadPosition(error)) await this.#reopen(current).catch(() => {});
        else if (!isPassing(error) && isRefusal(error)) return void this.close(error as Error);
      }
      if (isClosed(this.#link)) return;
      if (current === this.#link.current) {
        this.#link.lost();
        await this.#link.pause();
      }
    }
  }

  async #readOnce(current: Current, signal: AbortSignal): Promise<void> {
    const body = await this.#link.read(current, signal);
    const watch = new SilenceWatch(this.#options.silence ?? 45_000, () => this.restartReading());
    try {
      for await (const event of readEvents(body, () => watch.heard())) {
        this.#link.heard();
        if (event.id === null || event.id <= current.lastEventId) continue;
        await this.#take(JSON.parse(event.data) as AnyMessage, event.id);
        current.lastEventId = event.id;
        this.#requests.release(event.id);
      }
    } finally {
      watch.stop();
    }
  }

  async #take(message: AnyMessage, eventId: number): Promise<void> {
    this.#receive(message, eventId);
    if (isAnswer(message) || message.method !== GAP) return;
    const { sessions } = (message as { params?: { sessions?: string[] } }).params ?? {};
    await this.#recovery.catchUp(sessions ?? this.#recovery.sessions());
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
    const request = this.#requests.settle(answer);
    if (request === undefined && keyOf(answer.id) !== keyOf(this.#link.initializeId ?? answer.id)) return; // a double
    if (request !== undefined && "result" in answer) this.#recovery.answered(request, answer.result);
    this.#incoming.enqueue(answer);
  }

  /** The server does not know the connection any more: open another one and take the sessions up again. */
  async #reopen(stale: Current | null): Promise<void> {
    await this.#link.replace(stale, async () => {
      this.#abandonQuestions();
      this.#requests.release(Number.POSITIVE_INFINITY);
      await this.#recovery.resume().catch(() => {});
      this.#requests.sendAgain();
      this.#reading.abort(new ConnectionLost("the connection was replaced"));
    });
  }

  #abandonQuestions(): void {
    for (const key of this.#asked) {
      const params = { requestId: JSON.parse(key) as number };
      this.#receive({ jsonrpc: "2.0", method: "$/cancel_request", params }, null);
    }
    this.#asked.clear();
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

function isClosed(link: Link): boolean {
  return link.state === "closed";
}

function isBadPosition(error: unknown): boolean {
  return (error as { status?: number }).status === 400;
}

function isRefusal(error: unknown): boolean {
  const status = (error as { status?: number }).status;
  return status !== undefined && status !== 409;
}
