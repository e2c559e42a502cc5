import type { SessionEvent } from "sandbox-agent-client";

/** One envelope as it is kept: its text, and what a list has to know without reading it. */
export interface Envelope {
  readonly sequence: number | null;
  readonly time: number;
  readonly source: SessionEvent["source"];
  readonly kind: "request" | "answer" | "notification";
  readonly isError: boolean;
  readonly text: string;
}

export interface Described {
  label: string;
  preview: string;
}

interface Parsed {
  id?: unknown;
  method?: string;
  result?: unknown;
  error?: { code: number; message: string };
  params?: Record<string, unknown>;
}

/** As text, an envelope takes less than as objects, and can be searched as it is. */
export function envelopeOf({ sequence, time, source, message }: SessionEvent): Envelope {
  const { id, method, error } = message as Parsed;
  const kind = method === undefined ? "answer" : id === undefined ? "notification" : "request";
  const isError = error !== undefined || method === "_sandboxagent/error";
  return { sequence, time, source, kind, isError, text: JSON.stringify(message) };
}

const described = new WeakMap<Envelope, Described>();

/** What a row says about an envelope. Read on demand: few of them are ever in sight. */
export function describe(envelope: Envelope): Described {
  let words = described.get(envelope);
  if (words === undefined) {
    const parsed = JSON.parse(envelope.text) as Parsed;
    described.set(envelope, (words = { label: labelOf(parsed), preview: previewOf(parsed) }));
  }
  return words;
}

function labelOf({ method, id, error, params }: Parsed): string {
  const update = params?.["update"] as { sessionUpdate?: string } | undefined;
  if (method === "session/update") return update?.sessionUpdate ?? method;
  if (method !== undefined) return method;
  return error ? `error ${error.code} · ${String(id)}` : `answer · ${String(id)}`;
}

/** What is particular to the message: without the envelope and what the other columns say. */
function previewOf({ params, result, error }: Parsed): string {
  const { sessionId: _, update, ...rest } = params ?? {};
  const { sessionUpdate: __, ...content } = (update ?? {}) as Record<string, unknown>;
  return JSON.stringify(update ? content : (error ?? result ?? rest)).slice(0, 300);
}
