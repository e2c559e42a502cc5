import type { ToolCall } from "@agentclientprotocol/sdk";

/** A terminal of a tool call. `output` is null where what it prints does not reach clients. */
export interface Terminal {
  id: string;
  output: string | null;
  exit: { code: number | null; signal: string | null } | null;
}

interface ExitStatus {
  exitCode?: unknown;
  signal?: unknown;
}

const KEPT = 1_000_000;

/**
 * What is known of the terminals of a session. Agents tell in the `_meta` of a tool call's updates (`terminal_info`,
 * `terminal_output` with what is new, `terminal_exit`), the server tells of its own; what a client's own terminal
 * printed is in the history, in the client's answers to `terminal/output`.
 */
export class Terminals {
  readonly #known = new Map<string, Terminal>();
  readonly #asked = new Map<string, string>();

  /** Take an update's `_meta`, and give the terminals that the tool call has now. */
  update(call: ToolCall, before: readonly Terminal[], meta: unknown): Terminal[] {
    const told = (meta ?? {}) as Record<string, Record<string, unknown> | undefined>;
    const { terminal_info: info, terminal_output: output, terminal_exit: exit } = told;
    for (const one of [info, output, exit]) if (one) this.#change(String(one["terminal_id"]), {});
    if (typeof output?.["data"] === "string") {
      const id = String(output["terminal_id"]);
      this.#change(id, { output: ((this.#known.get(id)?.output ?? "") + output["data"]).slice(-KEPT) });
    }
    if (exit) this.#change(String(exit["terminal_id"]), { exit: exitOf(exit["exit_code"], exit["signal"]) });
    const named = (call.content ?? []).flatMap((content) => (content.type === "terminal" ? [content.terminalId] : []));
    const told_of = [info, output, exit].flatMap((one) => (one ? [String(one["terminal_id"])] : []));
    const ids = new Set([...before.map(({ id }) => id), ...named, ...told_of]);
    return [...ids].map((id) => this.#known.get(id) ?? { id, output: null, exit: null });
  }

  /** The server tells what is new of a terminal of its own: what it printed, or how it ended. */
  tell({ terminalId, output, exitStatus }: { terminalId?: unknown; output?: unknown; exitStatus?: ExitStatus | null }): Terminal {
    const id = String(terminalId);
    const more = typeof output === "string" ? output : "";
    return this.#change(id, {
      output: ((this.#known.get(id)?.output ?? "") + more).slice(-KEPT),
      ...(exitStatus && { exit: exitOf(exitStatus.exitCode, exitStatus.signal) }),
    });
  }

  /** An agent of version 2 tells of a terminal of its own; its bytes come in Base64. */
  say(told: { sessionUpdate: string; terminalId: string; output?: { data?: unknown } | null; data?: unknown; exitStatus?: ExitStatus | null }, read: (data: unknown) => string): Terminal {
    const { terminalId: id, output, data, exitStatus } = told;
    const before = output === undefined ? (this.#known.get(id)?.output ?? "") : "";
    const more = told.sessionUpdate === "terminal_output_chunk" ? read(data) : output == null ? "" : read(output.data);
    return this.#change(id, { output: (before + more).slice(-KEPT), ...(exitStatus !== undefined && { exit: exitStatus && exitOf(exitStatus.exitCode, exitStatus.signal) }) });
  }

  /** A client was asked for what a terminal has printed. */
  ask(requestId: unknown, params: unknown): void {
    const id = (params as { terminalId?: unknown } | undefined)?.terminalId;
    if (typeof id === "string") this.#asked.set(JSON.stringify(requestId), id);
  }

  /** Gives the terminal if this answers `ask`. */
  answer(requestId: unknown, result: unknown): Terminal | null {
    const key = JSON.stringify(requestId);
    const id = this.#asked.get(key);
    if (id === undefined) return null;
    this.#asked.delete(key);
    const { output, exitStatus } = (result ?? {}) as { output?: unknown; exitStatus?: ExitStatus | null };
    if (typeof output !== "string") return null;
    return this.#change(id, { output: output.slice(-KEPT), exit: exitStatus ? exitOf(exitStatus.exitCode, exitStatus.signal) : null });
  }

  #change(id: string, more: Partial<Terminal>): Terminal {
    const changed = { ...(this.#known.get(id) ?? { id, output: null, exit: null }), ...more };
    this.#known.set(id, changed);
    return changed;
  }
}

function exitOf(code: unknown, signal: unknown): Terminal["exit"] {
  return { code: typeof code === "number" ? code : null, signal: typeof signal === "string" ? signal : null };
}
