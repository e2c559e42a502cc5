import type { AnyMessage, AnyNotification, AnyRequest, AnyResponse } from "@agentclientprotocol/sdk";
import { EXTENSION_PREFIX, MAY_REPEAT } from "./methods.gen.js";

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

/** Whether a request that the server may have already does no harm when it is sent again. */
export function isRepeatable(request: AnyRequest): boolean {
  if (request.method === "session/prompt") return turnIdOf(request) !== undefined;
  return MAY_REPEAT[request.method] ?? request.method.startsWith(EXTENSION_PREFIX);
}

/** Whether the answer should come on the stream, in order with the updates, and survive a cut of the POST. */
export function prefersStream(request: AnyRequest): boolean {
  return request.method === "session/prompt" || !isRepeatable(request);
}

/** The id under which a prompt runs once, however often it is sent. */
export function turnIdOf(prompt: { params?: unknown }): unknown {
  const params = prompt.params as { _meta?: Record<string, { turnId?: unknown } | undefined> | null } | undefined;
  return params?._meta?.[META]?.turnId;
}
