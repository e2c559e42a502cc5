import type { AnyMessage, AnyNotification, AnyRequest, AnyResponse } from "@agentclientprotocol/sdk";

export const META = "sandboxagent.dev";
export const GAP = "_sandboxagent/stream/gap";
export const EVENTS = "_sandboxagent/session/events";

/** A message on the wire as the protocol view shows it. `eventId` is its number on the connection's stream. */
export interface Envelope {
  direction: "in" | "out";
  time: number;
  message: AnyMessage;
  eventId: number | null;
}

/** A notification, with where it came from: live ones have an `eventId`, recovered ones a `sequence`. */
export interface Notice {
  message: AnyNotification;
  eventId: number | null;
  sequence: number | null;
}

export function isRequest(message: AnyMessage): message is AnyRequest {
  return "method" in message && "id" in message;
}

export function isAnswer(message: AnyMessage): message is AnyResponse {
  return !("method" in message);
}

export function keyOf(id: unknown): string {
  return JSON.stringify(id);
}

/** The session that a message names, or null. */
export function sessionOf(message: AnyMessage): string | null {
  const params = "params" in message ? (message.params as { sessionId?: unknown } | null | undefined) : null;
  return typeof params?.sessionId === "string" ? params.sessionId : null;
}

/** Requests that do no harm when they are sent twice. Prompts carry a turnId. */
const REPEATABLE = new Set([
  "initialize",
  "session/prompt",
  "session/load",
  "session/resume",
  "session/list",
  "session/close",
  "session/delete",
  "session/set_mode",
  "session/set_model",
  "session/set_config_option",
]);
const NOT_REPEATABLE = new Set(["_sandboxagent/fs/move", "_sandboxagent/fs/delete_entry"]);

export function isRepeatable(request: AnyRequest): boolean {
  if (request.method === "session/prompt") return turnIdOf(request) !== undefined;
  if (request.method.startsWith("_sandboxagent/")) return !NOT_REPEATABLE.has(request.method);
  return REPEATABLE.has(request.method);
}

/** Whether the answer should come on the stream, in order with the updates, and survive a cut of the POST. */
export function prefersStream(request: AnyRequest): boolean {
  return request.method === "session/prompt" || !isRepeatable(request);
}

function turnIdOf(request: AnyRequest): unknown {
  const params = request.params as { _meta?: Record<string, { turnId?: unknown }> } | undefined;
  return params?._meta?.[META]?.turnId;
}
