import type { AnyMessage } from "@agentclientprotocol/sdk";
import type { AgentConnection } from "./connection.js";
import { EVENTS, type Envelope, isAnswer, isRequest, keyOf, type Notice, sessionOf } from "./rpc/messages.js";
import type { HistoryPage, HistorySource } from "./rpc/recovery.js";

/** A message of a session, with who sent it. Events of the history have a `sequence`, live ones have not. */
export interface SessionEvent {
  sequence: number | null;
  time: number;
  source: HistorySource;
  message: AnyMessage;
}

export interface Follower {
  /** Settles when the whole history has been given and live events follow. */
  ready: Promise<void>;
  close(): void;
}

const PAGE = 2000;

/** History first, then live: what arrives while the history is being read is put in its place. */
export function followSession(
  connection: AgentConnection,
  sessionId: string,
  onEvents: (events: SessionEvent[]) => void,
): Follower {
  const filter = new SessionFilter(sessionId);
  let early: { event: SessionEvent; eventId: number | null }[] | null = [];
  let isClosed = false;
  const take = (event: SessionEvent, eventId: number | null): void => {
    if (early !== null) early.push({ event, eventId });
    else onEvents([event]);
  };
  const stops = [
    connection.onEnvelope((envelope) => {
      if (filter.concerns(envelope)) take(liveEvent(envelope), envelope.eventId);
    }),
    connection.onNotice(sessionId, (notice) => {
      if (notice.sequence !== null) take(recoveredEvent(notice), null);
    }),
  ];
  const close = (): void => {
    isClosed = true;
    for (const stop of stops) stop();
  };
  const ready = (async (): Promise<void> => {
    const covered = await readHistory(connection, sessionId, (events) => {
      filter.learn(events);
      if (!isClosed) onEvents(events);
    });
    const rest = (early ?? []).filter(
      ({ event, eventId }) => eventId === null || eventId > covered || isOpenQuestion(event.message),
    );
    early = null;
    if (!isClosed && rest.length > 0) onEvents(rest.map(({ event }) => event));
  })();
  ready.catch(close);
  return { ready, close };
}

/** Questions that were open when we attached come again, for us to answer; their ids tell that they are the same. */
function isOpenQuestion(message: AnyMessage): boolean {
  return !isAnswer(message) && isRequest(message);
}

/** Gives all pages; returns the number of the last event on the stream that is within them. */
async function readHistory(
  connection: AgentConnection,
  sessionId: string,
  onEvents: (events: SessionEvent[]) => void,
): Promise<number> {
  let after = 0;
  for (;;) {
    const { answer, lastEventId } = await connection.stream.callAside(EVENTS, { sessionId, after, limit: PAGE });
    if (!("result" in answer)) throw new Error((answer as { error: { message: string } }).error.message);
    const page = answer.result as HistoryPage;
    onEvents(
      page.events.map(({ sequence, time, source, envelope }) => ({
        sequence,
        time: Date.parse(time),
        source,
        message: envelope as unknown as AnyMessage,
      })),
    );
    after = page.events.at(-1)?.sequence ?? after;
    if (!page.hasMore) return lastEventId;
  }
}

/** Tells which messages on a connection belong to a session: answers do by the request that they answer. */
class SessionFilter {
  readonly #requests = new Set<string>();

  constructor(private readonly sessionId: string) {}

  /** Questions of the history may be open still: their answers belong to the session. */
  learn(events: SessionEvent[]): void {
    for (const { source, message } of events) {
      if (isAnswer(message)) this.#requests.delete(`in ${keyOf(message.id)}`);
      else if (isRequest(message) && source !== "client") this.#requests.add(`in ${keyOf(message.id)}`);
    }
  }

  concerns({ direction, message }: Envelope): boolean {
    if (isAnswer(message)) return this.#requests.delete(`${direction === "in" ? "out" : "in"} ${keyOf(message.id)}`);
    if (message.method === "$/cancel_request") {
      const { requestId } = (message as { params: { requestId: unknown } }).params;
      return this.#requests.has(`${direction} ${keyOf(requestId)}`);
    }
    if (sessionOf(message) !== this.sessionId) return false;
    if (isRequest(message)) {
      if (message.method === EVENTS) return false;
      this.#requests.add(`${direction} ${keyOf(message.id)}`);
    }
    return true;
  }
}

function liveEvent({ direction, time, message }: Envelope): SessionEvent {
  const isOurs = !isAnswer(message) && message.method.startsWith("_sandboxagent/") && !isRequest(message);
  return { sequence: null, time, source: direction === "out" ? "client" : isOurs ? "server" : "agent", message };
}

function recoveredEvent({ message, sequence }: Notice): SessionEvent {
  return { sequence, time: Date.now(), source: "agent", message };
}
