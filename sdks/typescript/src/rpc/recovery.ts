import type { AnyNotification, AnyRequest, AnyResponse } from "@agentclientprotocol/sdk";
import { EVENTS, keyOf, type Notice, sessionOf, turnIdOf } from "./messages.js";

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

export interface RecoveryOptions {
  call: Call;
  onNotice: (notice: Notice) => void;
  /** The updates that follow are those of this turn; null: of none. */
  onTurn: (sessionId: string, turnId: unknown) => void;
}

const PAGE = 1000;
const LEAVING = new Set([
  "_sandboxagent/session/detach",
  "_sandboxagent/session/terminate",
  "session/close",
  "session/delete",
]);
/** What the server says of a session without writing it into its history. */
const UNRECORDED = /^_sandboxagent\/session\/(turn_\w+|settled)$/;

/** Finds what a connection missed in the sessions' histories, and drops what would come twice. */
export class Recovery {
  readonly #positions = new Positions();
  readonly #attached = new Map<string, { cwd: string; mcpServers: unknown[] }>();
  readonly #coveredUntil = new Map<string, number>();

  constructor(private readonly options: RecoveryOptions) {}

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
    } else if (LEAVING.has(request.method)) {
      this.#attached.delete(params.sessionId as string);
      this.#positions.forget(params.sessionId as string);
      this.#coveredUntil.delete(params.sessionId as string);
    }
  }

  /** Whether a notification has not been read from the history already. Counts it. */
  isNew(message: AnyNotification, eventId: number | null): boolean {
    const session = sessionOf(message);
    if (session === null || eventId === null || UNRECORDED.test(message.method)) return true;
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
      await this.options.call("session/resume", { sessionId, ...setup });
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
      let prompt: unknown = null;
      do {
        const { answer, lastEventId } = await this.options.call(EVENTS, { sessionId: session, after: sequence, limit: PAGE });
        if (!("result" in answer)) return;
        page = answer.result as HistoryPage;
        for (const event of page.events) {
          sequence = event.sequence;
          if (event.envelope["method"] === "session/prompt") {
            prompt = keyOf(event.envelope["id"]);
            this.options.onTurn(session, turnIdOf(event.envelope) ?? null);
          } else if (!("method" in event.envelope) && keyOf(event.envelope["id"]) === prompt) {
            this.options.onTurn(session, null);
          }
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
    this.options.onNotice({ message, eventId: null, sequence: event.sequence });
  }

  /** Learn where the history ends now, and up to which event of the stream that is. */
  async #place(session: string): Promise<void> {
    const { answer } = await this.options.call("_sandboxagent/session/get", { sessionId: session });
    const known = "result" in answer ? (answer.result as { eventCount?: number }).eventCount : undefined;
    if (typeof known !== "number") return;
    const page = await this.options.call(EVENTS, { sessionId: session, after: known, limit: PAGE });
    if (!("result" in page.answer)) return;
    const { events, hasMore } = page.answer.result as HistoryPage;
    if (!hasMore) this.#positions.placed(session, events.at(-1)?.sequence ?? known, page.lastEventId);
  }
}

function isNotice(event: HistoryEvent): boolean {
  return event.source !== "client" && "method" in event.envelope && !("id" in event.envelope);
}

/** Where this client is in the histories of its sessions, so that what it missed can be read there. */
class Positions {
  readonly #positions = new Map<string, Position>();

  /** Everything up to `sequence` of the history has been seen; counting starts here. */
  set(session: string, sequence: number): void {
    this.#positions.set(session, { sequence, seen: 0, since: null });
  }

  /** The place in the history is being asked for: remember what comes until `placed`. */
  placing(session: string): void {
    if (!this.#positions.has(session)) this.#positions.set(session, { sequence: null, seen: 0, since: [] });
  }

  /** Events up to `eventId` are within the history up to `sequence`. */
  placed(session: string, sequence: number, eventId: number): void {
    const position = this.#positions.get(session);
    if (position?.since == null) return;
    const seen = position.since.filter((id) => id > eventId).length;
    this.#positions.set(session, { sequence, seen, since: null });
  }

  forget(session: string): void {
    this.#positions.delete(session);
  }

  /** An update came on the stream. */
  saw(session: string, eventId: number): void {
    const position = this.#positions.get(session);
    if (position === undefined) return;
    if (position.since === null) position.seen += 1;
    else position.since.push(eventId);
  }

  /** The history up to `sequence` is known, and `seen` updates after it. Null when the place is not known. */
  of(session: string): { sequence: number; seen: number } | null {
    const position = this.#positions.get(session);
    return position === undefined || position.sequence === null
      ? null
      : { sequence: position.sequence, seen: position.seen };
  }

  sessions(): string[] {
    return [...this.#positions.keys()];
  }
}

interface Position {
  sequence: number | null;
  seen: number;
  since: number[] | null;
}
