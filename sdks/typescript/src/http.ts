import { ConnectionLost, problemOf } from "./errors.js";

export type Fetch = (input: string, init?: RequestInit) => Promise<Response>;

export interface HttpOptions {
  /** Where the server listens, with the base path if there is one: `http://127.0.0.1:2468`. */
  url: string;
  token?: string | undefined;
  fetch?: Fetch | undefined;
}

type Query = Record<string, string | number | boolean | undefined>;

export interface HttpRequest extends Omit<RequestInit, "headers"> {
  query?: Query;
  headers?: Record<string, string>;
}

/** Requests to one server, with its token. */
export class Http {
  readonly url: string;
  readonly #token: string | undefined;
  readonly #fetch: Fetch;

  constructor(options: HttpOptions) {
    this.url = options.url.replace(/\/+$/, "");
    this.#token = options.token;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** The answer, whatever its status. Throws ConnectionLost when there is none. */
  async send(method: string, path: string, request: HttpRequest = {}): Promise<Response> {
    const { query, headers, ...init } = request;
    const authorization = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
    try {
      return await this.#fetch(this.url + path + search(query), {
        credentials: "same-origin",
        cache: "no-store",
        ...init,
        method,
        headers: { ...authorization, ...headers },
      });
    } catch (cause) {
      if (init.signal?.aborted) throw init.signal.reason;
      throw new ConnectionLost(`${method} ${this.url}${path} failed: ${reasonOf(cause)}`, { cause });
    }
  }

  /** A good answer. Throws ProblemError for any other. */
  async request(method: string, path: string, request?: HttpRequest): Promise<Response> {
    const response = await this.send(method, path, request);
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  async json<T>(method: string, path: string, request?: HttpRequest): Promise<T> {
    return (await (await this.request(method, path, request)).json()) as T;
  }
}

/** Whether the request certainly never reached the server. */
export function wasNeverSent(error: unknown): boolean {
  const cause = error instanceof ConnectionLost ? (error.cause as { cause?: { code?: string } } | undefined) : undefined;
  return cause?.cause?.code === "ECONNREFUSED";
}

function reasonOf(cause: unknown): string {
  const inner = (cause as { cause?: { code?: string; message?: string } } | undefined)?.cause;
  return inner?.code ?? inner?.message ?? (cause instanceof Error ? cause.message : String(cause));
}

function search(query: Query | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  if (given.length === 0) return "";
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}
