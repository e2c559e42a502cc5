import type { AnyNotification, AnyRequest, AnyResponse } from "@agentclientprotocol/sdk";
import { EVENTS, type Notice, sessionOf } from "./messages.js";
import { Positions } from "./positions.js";

export type HistorySource = "client" | "agent" | "server";

/** One entry of a session's history. */
export interface HistoryEvent {
  sequence: number;
  time: string;
  source: HistorySource;
  envelope: Record<string, unknown>;
}

export interface HistoryPage {
  events: HistoryEvent[];
  hasMore: boolean;
}

type Call = (method: string, params: unknown) => Promise<{ answer: AnyResponse; lastEventId: number }>;

const PAGE = 1000;
const BEYOND = Number.MAX_SAFE_INTEGER;

/** Finds what a connection missed in the sessions' histories, and drops what would come twice. */
export class Recovery {
  readonly #positions = new Positions();
  readonly #attached = new Map<string, { cwd: string; mcpServers: unknown[] }>();
  readonly #coveredUntil = new Map<string, number>();

  constructor(
    private readonly call: Call,
    private readonly onNotice: (notice: Notice) => void,
  ) {}

  sessions(): string[] {
    return [...this.#attached.keys()];
  }

  /** Learn from a good answer which sessions this connection is attached to. */
  answered(request: AnyRequest, result: unknown): void {
    const params = (request.params ?? {}) as { sessionId?: string; cwd?: string; mcpServers?: unknown[] };
    const made = (result as { sessionId?: unknown } | null)?.sessionId;
    const setup = { cwd: params.cwd ?? "/", mcpServers: params.mcpServers ?? [] };
    if ((request.method === "session/new" || request.method === "session/fork") && typeof made === "string") {
      this.#attached.set(made, setup);
      this.#positions.set(made, 0);
    } else if (request.method === "session/load" || request.method === "session/resume") {
      const session = params.sessionId as string;
      this.#attached.set(session, setup);
      this.#positions.forget(session);
      this.#positions.placing(session);
      void this.#place(session).catch(() => {});
    } else if (request.method === "_sandboxagent/session/detach" || request.method === "session/delete") {
      this.#attached.delete(params.sessionId as string);
      this.#positions.forget(params.sessionId as string);
    }
  }

  /** Whether a notification has not been read from the history already. Counts it. */
  isNew(message: AnyNotification, eventId: number | null): boolean {
    const session = sessionOf(message);
    if (session === null || eventId === null) return true;
    const covered = this.#coveredUntil.get(session);
    if (covered !== undefined) {
      if (eventId <= covered) return false;
      this.#coveredUntil.delete(session);
    }
    if (message.method === "session/update") this.#positions.saw(session, eventId);
    return true;
  }

  /** On a new connection: attach to all sessions again, and deliver what came while there was none. */
  async resume(): Promise<void> {
    this.#coveredUntil.clear();
    for (const [sessionId, setup] of this.#attached) {
      await this.call("session/resume", { sessionId, ...setup });
      await this.catchUp([sessionId]);
    }
  }

  /** Deliver what the histories hold beyond what has been seen. */
  async catchUp(sessions: string[]): Promise<void> {
    for (const session of sessions) {
      const position = this.#positions.of(session);
      if (position === null) continue;
      let { sequence, seen } = position;
      let page: HistoryPage;
      do {
        const { answer, lastEventId } = await this.call(EVENTS, { sessionId: session, after: sequence, limit: PAGE });
        if (!("result" in answer)) return;
        page = answer.result as HistoryPage;
        for (const event of page.events) {
          sequence = event.sequence;
          const isUpdate = event.envelope["method"] === "session/update";
          if (isUpdate && seen > 0) seen -= 1;
          else if (seen === 0 && isNotice(event)) this.#deliver(event);
        }
        this.#coveredUntil.set(session, lastEventId);
      } while (page.hasMore);
      this.#positions.set(session, sequence);
    }
  }

  #deliver(event: HistoryEvent): void {
    const message = event.envelope as unknown as AnyNotification;
    this.onNotice({ message, eventId: null, sequence: event.sequence });
  }

  async #place(session: string): Promise<void> {
    const { answer, lastEventId } = await this.call(EVENTS, { sessionId: session, after: BEYOND });
    const error = "error" in answer ? (answer.error as { data?: { lastSequence?: number } }) : null;
    const last = error?.data?.lastSequence;
    if (typeof last === "number") this.#positions.placed(session, last, lastEventId);
  }
}

function isNotice(event: HistoryEvent): boolean {
  return event.source !== "client" && "method" in event.envelope && !("id" in event.envelope);
}
