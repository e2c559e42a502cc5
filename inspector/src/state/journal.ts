import type { SessionEvent } from "sandbox-agent-client";

/** One envelope as it is kept: its text, and what a list has to know without reading it. */
export interface Envelope {
  readonly sequence: number | null;
  readonly time: number;
  readonly source: SessionEvent["source"];
  readonly kind: "request" | "answer" | "notification";
  readonly isError: boolean;
  /** What a row calls it: the method, the kind of update, or what it answers. */
  readonly label: string;
  readonly text: string;
  /** A request's answer, an answer's request. */
  pair: Envelope | null;
  /** The key of the item of the conversation that it made or changed. */
  item: number | null;
}

interface Parsed {
  id?: unknown;
  method?: string;
  result?: unknown;
  error?: { code: number; message: string };
  params?: Record<string, unknown>;
}

/** Every envelope, both ways, requests paired with their answers. Only ever grows. */
export class Journal {
  readonly envelopes: Envelope[] = [];
  readonly #open = new Map<string, Envelope>();
  readonly labels = new Set<string>();

  add(event: SessionEvent): Envelope {
    const envelope = envelopeOf(event);
    const { id } = event.message as Parsed;
    if (envelope.kind !== "notification") this.#pair(envelope, keyOf(event, id));
    this.labels.add(envelope.kind === "answer" ? "answer" : envelope.label);
    this.envelopes.push(envelope);
    return envelope;
  }

  /** The item that an entry of the session's history belongs to, or the next one that has any. */
  itemAt(sequence: number): number | null {
    const at = this.envelopes.findLastIndex((one) => one.sequence === sequence);
    return at === -1 ? null : (this.envelopes.slice(at).find(({ item }) => item !== null)?.item ?? null);
  }

  /** Where an item of the conversation begins. */
  originOf(item: number): Envelope | null {
    return this.envelopes.find((one) => one.item === item) ?? null;
  }

  #pair(envelope: Envelope, key: string): void {
    const request = this.#open.get(key);
    if (envelope.kind === "request") this.#open.set(key, envelope);
    else if (request !== undefined) {
      this.#open.delete(key);
      request.pair = envelope;
      envelope.pair = request;
    }
  }
}

/** Ids are unique among the requests of one side, within the history or within what is live. */
function keyOf({ sequence, source, message }: SessionEvent, id: unknown): string {
  const isRequest = (message as Parsed).method !== undefined;
  const isOfClient = (source === "client") === isRequest;
  return `${isOfClient} ${sequence === null} ${JSON.stringify(id)}`;
}

/** As text, an envelope takes less than as objects, and can be searched as it is. */
export function envelopeOf({ sequence, time, source, message }: SessionEvent): Envelope {
  const parsed = message as Parsed;
  const { id, method, error } = parsed;
  const kind = method === undefined ? "answer" : id === undefined ? "notification" : "request";
  const isError = error !== undefined || method === "_sandboxagent/error";
  return { sequence, time, source, kind, isError, label: labelOf(parsed), text: JSON.stringify(message), pair: null, item: null };
}

/** Milliseconds from the request to its answer; null where there is none (yet). */
export function latencyOf({ time, kind, pair }: Envelope): number | null {
  if (pair === null) return null;
  return kind === "answer" ? time - pair.time : pair.time - time;
}

/** What a row says of an answer: what it answers. */
export function titleOf({ kind, label, pair }: Envelope): string {
  return kind === "answer" && pair !== null ? `${label} · ${pair.label}` : label;
}

const previews = new WeakMap<Envelope, string>();

/** What is particular to an envelope. Read on demand: few of them are ever in sight. */
export function previewOf(envelope: Envelope): string {
  let preview = previews.get(envelope);
  if (preview === undefined) previews.set(envelope, (preview = particularsOf(JSON.parse(envelope.text) as Parsed)));
  return preview;
}

function labelOf({ method, error, params }: Parsed): string {
  const update = params?.["update"] as { sessionUpdate?: string } | undefined;
  if (method === "session/update") return update?.sessionUpdate ?? method;
  if (method !== undefined) return method;
  return error ? `error ${error.code}` : "answer";
}

/** Without the envelope and what the other columns say. */
function particularsOf({ params, result, error }: Parsed): string {
  const { sessionId: _, update, ...rest } = params ?? {};
  const { sessionUpdate: __, ...content } = (update ?? {}) as Record<string, unknown>;
  return JSON.stringify(update ? content : (error ?? result ?? rest)).slice(0, 300);
}
