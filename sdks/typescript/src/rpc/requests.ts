import type { AnyMessage, AnyRequest, AnyResponse } from "@agentclientprotocol/sdk";
import { ConnectionLost } from "../errors.js";
import { wasNeverSent } from "../http.js";
import type { Current, Link } from "./link.js";
import { isAnswer, isRepeatable, keyOf, prefersStream } from "./messages.js";
import { asAnswer, isPassing, isUnknownConnection } from "./wire.js";

interface Pending {
  request: AnyRequest;
  /** The server has it, and will answer on the stream. */
  isAccepted: boolean;
}

export interface RequestsOptions {
  link: Link;
  /** Called when the server has forgotten the connection `stale`; settles when there is another one. */
  reopen: (stale: Current | null) => Promise<void>;
  /** Gets each answer when every event that preceded it has come. */
  onAnswer: (answer: AnyResponse) => void;
}

/** How long a request that may not be sent twice waits for its answer on a stream that works again. */
const LOST_ANSWER = 10_000;

/** What goes out: messages until the server has them, and requests until they are answered. */
export class Requests {
  readonly #options: RequestsOptions;
  readonly #pending = new Map<string, Pending>();
  #held: { after: number; answer: AnyResponse }[] = [];
  #inOrder: Promise<void> = Promise.resolve();

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  request(request: AnyRequest): void {
    const pending = { request, isAccepted: false };
    this.#pending.set(keyOf(request.id), pending);
    if (prefersStream(request)) this.#enqueue(() => this.#send(pending, true));
    else this.#send(pending, false).catch(() => {});
  }

  /** A notification or an answer. */
  tell(message: AnyMessage): void {
    this.#enqueue(() => this.#tell(message));
  }

  /** An answer has come: the request that it is for, once. */
  settle(answer: AnyResponse): AnyRequest | undefined {
    const pending = this.#pending.get(keyOf(answer.id));
    this.#pending.delete(keyOf(answer.id));
    return pending?.request;
  }

  /** Pass on what was held until the events before it had come. */
  release(upTo: number): void {
    if (this.#held.length === 0) return;
    const due = this.#held.filter(({ after }) => after <= upTo);
    this.#held = this.#held.filter(({ after }) => after > upTo);
    for (const { answer } of due) this.#options.onAnswer(answer);
  }

  /** On another connection: what the old one had taken is sent again if it may be. */
  sendAgain(): void {
    for (const pending of [...this.#pending.values()].filter(({ isAccepted }) => isAccepted)) {
      pending.isAccepted = false;
      if (isRepeatable(pending.request)) this.#enqueue(() => this.#send(pending, prefersStream(pending.request)));
      else this.#fail(pending, new ConnectionLost(`the server was restarted during ${pending.request.method}`));
    }
  }

  /** In order: a cancel must not overtake the prompt that it cancels. */
  #enqueue(work: () => Promise<void>): void {
    this.#inOrder = this.#inOrder.then(work).catch(() => {});
  }

  async #send(pending: Pending, isAsync: boolean): Promise<void> {
    const { link, reopen } = this.#options;
    const { request } = pending;
    while (this.#isWaiting(pending) && link.state !== "closed") {
      const { current } = link;
      try {
        const { answer, lastEventId } = await link.post(request, { async: isAsync });
        pending.isAccepted = answer === null;
        if (answer !== null) this.#hold(answer, lastEventId, current);
        return;
      } catch (error) {
        if (isUnknownConnection(error)) await reopen(current);
        else if (!isPassing(error)) return this.#fail(pending, error);
        else if (error instanceof ConnectionLost && !isRepeatable(request) && !wasNeverSent(error)) {
          this.#failLater(pending, error);
          return;
        } else await link.pause();
      }
    }
  }

  async #tell(message: AnyMessage): Promise<void> {
    const { link, reopen } = this.#options;
    while (link.state !== "closed") {
      const { current } = link;
      try {
        await link.post(message);
        return;
      } catch (error) {
        if (isUnknownConnection(error)) {
          await reopen(current);
          if (isAnswer(message)) return; // the question is gone with the old connection
        } else if (isPassing(error)) await link.pause();
        else return;
      }
    }
  }

  #isWaiting(pending: Pending): boolean {
    return this.#pending.get(keyOf(pending.request.id)) === pending;
  }

  #hold(answer: AnyResponse, after: number, from: Current | null): void {
    const { current } = this.#options.link;
    if (from !== current || after <= (current?.lastEventId ?? 0)) this.#options.onAnswer(answer);
    else this.#held.push({ after, answer });
  }

  /** Nobody knows whether the server has the request. If it has, the answer comes on the stream. */
  #failLater(pending: Pending, error: unknown): void {
    pending.isAccepted = true;
    setTimeout(() => this.#fail(pending, error), LOST_ANSWER);
  }

  #fail(pending: Pending, error: unknown): void {
    if (this.#isWaiting(pending)) this.#options.onAnswer(asAnswer(pending.request, error));
  }
}
