import type { AnyMessage, AnyRequest, AnyResponse } from "@agentclientprotocol/sdk";
import { ConnectionLost, ProblemError, problemOf } from "../errors.js";
import type { Http } from "../http.js";

const PATH = "/v1/rpc";
const CONNECTION = "X-ACP-Connection-Id";
const LAST_EVENT = "X-ACP-Last-Event-Id";

export interface Posted {
  /** The answer in the body; null when it was taken (202) or will come on the stream (504). */
  answer: AnyResponse | null;
  /** The event that preceded the answer. */
  lastEventId: number;
  connectionId: string | null;
}

/** The three verbs of `/v1/rpc`. */
export class Wire {
  constructor(private readonly http: Http) {}

  /** Throws ProblemError for a refusal and ConnectionLost when no whole answer came. */
  async post(message: AnyMessage, connectionId: string | null, options: { async?: boolean } = {}): Promise<Posted> {
    const response = await this.http.send("POST", PATH, {
      body: JSON.stringify(message),
      headers: {
        "content-type": "application/json",
        accept: "application/json",
        ...(connectionId === null ? {} : { [CONNECTION]: connectionId }),
        ...(options.async ? { prefer: "respond-async" } : {}),
      },
    });
    const lastEventId = Number(response.headers.get(LAST_EVENT) ?? 0);
    const given = response.headers.get(CONNECTION);
    if (response.status === 200) {
      try {
        return { answer: (await response.json()) as AnyResponse, lastEventId, connectionId: given };
      } catch (cause) {
        throw new ConnectionLost("the answer was cut short", { cause });
      }
    }
    if (response.status === 202 || response.status === 504) {
      await response.body?.cancel().catch(() => {});
      return { answer: null, lastEventId, connectionId: given };
    }
    throw await problemOf(response);
  }

  async open(connectionId: string, after: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const response = await this.http.send("GET", PATH, {
      headers: { accept: "text/event-stream", [CONNECTION]: connectionId, "last-event-id": String(after) },
      signal,
    });
    if (response.status !== 200 || response.body === null) throw await problemOf(response);
    return response.body;
  }

  async close(connectionId: string): Promise<void> {
    await this.http.send("DELETE", PATH, { headers: { [CONNECTION]: connectionId }, keepalive: true });
  }
}

export function isUnknownConnection(error: unknown): boolean {
  return error instanceof ProblemError && error.status === 404 && error.kind === "unknown_connection";
}

/** Whether waiting and trying again may help. */
export function isPassing(error: unknown): boolean {
  return error instanceof ConnectionLost || (error instanceof ProblemError && [429, 502, 503].includes(error.status));
}

/** A refusal as the JSON-RPC answer that the caller waits for. */
export function asAnswer(request: AnyRequest, error: unknown): AnyResponse {
  const data = error instanceof ProblemError ? error.problem : undefined;
  const message = error instanceof Error ? error.message : String(error);
  return { jsonrpc: "2.0", id: request.id, error: { code: codeOf(error), message, data } } as AnyResponse;
}

const CODES: Record<number, number> = { 404: -32002, 409: -32009, 429: -32001, 504: -32011 };

function codeOf(error: unknown): number {
  if (!(error instanceof ProblemError)) return -32012;
  return CODES[error.status] ?? (error.status >= 500 ? -32603 : -32602);
}
