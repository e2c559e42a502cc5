export { RequestError } from "@agentclientprotocol/sdk";

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
    return this.problem.type.slice(this.problem.type.lastIndexOf(":") + 1);
  }
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
