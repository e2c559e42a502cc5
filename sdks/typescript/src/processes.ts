import type { ProcessConfig, ProcessInfo, ProcessResult } from "./api.js";
import { ConnectionLost } from "./errors.js";
import type { Http } from "./http.js";
import { readEvents } from "./rpc/sse.js";

export interface CommandOptions {
  args?: string[];
  cwd?: string;
  env?: Record<string, string>;
  /** Run in this session's directory; relative paths start there. */
  sessionId?: string;
}

export interface RunOptions extends CommandOptions {
  timeoutMs?: number;
  maxOutputBytes?: number;
  signal?: AbortSignal;
}

export interface StartProcessOptions extends CommandOptions {
  /** Give it an input that `write` reaches. */
  interactive?: boolean;
  tty?: boolean;
  cols?: number;
  rows?: number;
  /** It waits for whoever iterates over it, so that no output is dropped. */
  hold?: boolean;
}

/** A piece of output; `missed` is how many before it the server no longer had. */
export interface ProcessOutput {
  sequence: number;
  stream: "stdout" | "stderr" | "pty";
  data: Uint8Array;
  missed: number;
}

const JSON_TYPE = { "content-type": "application/json" };
const PIECE = 48 * 1024;
const LONGEST_PAUSE = 5_000;

/** Iterate over it for its output, from the beginning; afterwards `info` says how it exited. */
export class SandboxProcess {
  constructor(
    private readonly http: Http,
    public info: ProcessInfo,
    private readonly isHeld = false,
  ) {}

  get id(): string {
    return this.info.id;
  }

  [Symbol.asyncIterator](): AsyncGenerator<ProcessOutput> {
    return this.output();
  }

  /** What it prints, until it exits. A connection that is lost is opened again where it was, for `retryFor` ms. */
  async *output(options: { after?: number; retryFor?: number; signal?: AbortSignal } = {}): AsyncGenerator<ProcessOutput> {
    const { after = 0, retryFor = 60_000, signal } = options;
    let position = after;
    let waited = 0;
    let pause = 100;
    for (;;) {
      try {
        for await (const { kind, id, data } of this.#events(position, signal)) {
          [waited, pause] = [0, 100];
          if (kind === "exit") {
            this.info = JSON.parse(data) as ProcessInfo;
            return;
          }
          if (kind !== "log" || id === null) continue;
          const entry = JSON.parse(data) as { stream: ProcessOutput["stream"]; data: string };
          yield { sequence: id, stream: entry.stream, data: bytesOf(entry.data), missed: Math.max(0, id - position - 1) };
          position = id;
        }
      } catch (error) {
        if (!(error instanceof ConnectionLost) || waited >= retryFor) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
      waited += pause;
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  /** How it exited, once it has. */
  async wait(): Promise<ProcessInfo> {
    for await (const _ of this.output({ after: Number.MAX_SAFE_INTEGER })) continue;
    return this.info;
  }

  /** Write all of it to the input, at the pace at which the process reads. */
  async write(data: string | Uint8Array): Promise<void> {
    let rest = typeof data === "string" ? new TextEncoder().encode(data) : data;
    while (rest.length > 0) {
      const body = { data: base64Of(rest.subarray(0, PIECE)), encoding: "base64" };
      const { bytesWritten } = await this.#post<{ bytesWritten: number }>("input", body);
      rest = rest.subarray(bytesWritten);
    }
  }

  async closeInput(): Promise<void> {
    await this.#post("input", { data: "", eof: true });
  }

  async resize(cols: number, rows: number): Promise<void> {
    await this.#post("terminal/resize", { cols, rows });
  }

  /** SIGTERM to the whole process group; waits up to `waitMs` for the exit. */
  async stop(options: { waitMs?: number } = {}): Promise<ProcessInfo> {
    return await this.#signal("stop", options);
  }

  async kill(options: { waitMs?: number } = {}): Promise<ProcessInfo> {
    return await this.#signal("kill", options);
  }

  /** Forget it and its log; refused while it runs. */
  async delete(): Promise<void> {
    await this.http.request("DELETE", this.#path);
  }

  get #path(): string {
    return `/v1/processes/${encodeURIComponent(this.info.id)}`;
  }

  async #signal(verb: string, query: { waitMs?: number }): Promise<ProcessInfo> {
    this.info = await this.http.json("POST", `${this.#path}/${verb}`, { query: { ...query } });
    return this.info;
  }

  async #post<T>(verb: string, body: unknown): Promise<T> {
    return await this.http.json("POST", `${this.#path}/${verb}`, { body: JSON.stringify(body), headers: JSON_TYPE });
  }

  async *#events(after: number, signal: AbortSignal | undefined) {
    const query = { follow: true, ...(this.isHeld ? { hold: true } : {}) };
    const headers = { accept: "text/event-stream", "last-event-id": String(after) };
    const request = { query, headers, ...(signal === undefined ? {} : { signal }) };
    const response = await this.http.request("GET", `${this.#path}/logs`, request);
    if (response.body === null) throw new ConnectionLost("the log has no body");
    try {
      yield* readEvents(response.body);
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      throw new ConnectionLost("the log was cut off", { cause });
    }
  }
}

/** Commands where the server runs. */
export class Processes {
  constructor(private readonly http: Http) {}

  /** Run a command to its end. */
  async run(command: string, options: RunOptions = {}): Promise<ProcessResult> {
    const { signal, ...body } = options;
    return await this.http.json("POST", "/v1/processes/run", {
      body: JSON.stringify({ command, ...body }),
      headers: JSON_TYPE,
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async start(command: string, options: StartProcessOptions = {}): Promise<SandboxProcess> {
    const body = JSON.stringify({ command, ...options });
    const info = await this.http.json<ProcessInfo>("POST", "/v1/processes", { body, headers: JSON_TYPE });
    return new SandboxProcess(this.http, info, options.hold ?? false);
  }

  async list(options: { owner?: "user" | "agent" } = {}): Promise<ProcessInfo[]> {
    const found = await this.http.json<{ processes: ProcessInfo[] }>("GET", "/v1/processes", { query: { ...options } });
    return found.processes;
  }

  async get(id: string): Promise<SandboxProcess> {
    return new SandboxProcess(this.http, await this.http.json("GET", `/v1/processes/${encodeURIComponent(id)}`));
  }

  async config(): Promise<ProcessConfig> {
    return await this.http.json("GET", "/v1/processes/config");
  }

  /** Change some of the limits until the server stops. */
  async setConfig(limits: Partial<ProcessConfig>): Promise<ProcessConfig> {
    const body = JSON.stringify({ ...(await this.config()), ...limits });
    return await this.http.json("POST", "/v1/processes/config", { body, headers: JSON_TYPE });
  }
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
