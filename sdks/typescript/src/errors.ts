import { RequestError } from "@agentclientprotocol/sdk";

export { RequestError };

/** A problem document (RFC 9457) as the server sends it. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail?: string;
  [member: string]: unknown;
}

/** The server refused an HTTP request. `kind` is the last part of the problem's type, such as `unknown_agent`. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title);
  }
  get status(): number {
    return this.problem.status;
  }
  get kind(): string {
    return kindOf(this.problem.type);
  }
}

/** What went wrong, with the reason and the advice that an agent's error has in its data: its message may say little. */
export function explain(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const data: unknown = error instanceof RequestError ? error.data : null;
  const { details, hint } = (typeof data === "string" ? { details: data } : (data ?? {})) as Record<string, unknown>;
  const parts = [message, ...[details, hint].filter((part) => typeof part === "string" && part !== message)];
  return parts.filter(Boolean).join(": ");
}

/** What went wrong, such as `unknown_session`, over HTTP and in JSON-RPC alike; null if it is no error of the server. */
export function errorKind(error: unknown): string | null {
  if (error instanceof ProblemError) return error.kind;
  const type = (error as { data?: { type?: unknown } } | null | undefined)?.data?.type;
  return typeof type === "string" && type.startsWith(URN) ? kindOf(type) : null;
}

const URN = "urn:sandbox-agent:error:";

function kindOf(type: string): string {
  return type.slice(type.lastIndexOf(":") + 1);
}

/** The server cannot be reached, or the connection was closed. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

export async function problemOf(response: Response): Promise<ProblemError> {
  const fallback = { type: "about:blank", title: response.statusText || "Request failed", status: response.status };
  try {
    const body: unknown = await response.json();
    return new ProblemError({ ...fallback, ...(body as object) });
  } catch {
    return new ProblemError(fallback);
  }
}
