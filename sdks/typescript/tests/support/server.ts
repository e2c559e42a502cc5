import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const BIN = process.env["SANDBOX_AGENT_BIN"] ?? join(import.meta.dirname, "../../../../.venv/bin/sandbox-agent");

export function newHome(): string {
  return mkdtempSync(join(tmpdir(), "sandbox-agent-ts-"));
}

export function environment(home: string): Record<string, string> {
  return {
    HOME: home,
    SANDBOX_AGENT_DATA_DIR: join(home, "data"),
    SANDBOX_AGENT_MOCK_STATE: join(home, "mock-state"),
  };
}

interface ServerOptions {
  home?: string;
  port?: number;
  token?: string;
  args?: string[];
  env?: Record<string, string>;
}

/** A real server in a child process; `home` holds all that it writes: reuse it to start again on the same data. */
export class Server {
  private constructor(
    readonly url: string,
    readonly home: string,
    private readonly child: ChildProcess,
  ) {}

  static async start(options: ServerOptions = {}): Promise<Server> {
    const home = options.home ?? newHome();
    const token = options.token === undefined ? {} : { SANDBOX_AGENT_TOKEN: options.token };
    const child = spawn(BIN, ["server", "--port", String(options.port ?? 0), ...(options.args ?? [])], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { PATH: process.env["PATH"] ?? "", ...environment(home), ...token, ...options.env },
    });
    const url = await new Promise<string>((resolve, reject) => {
      let out = "";
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the server exited with ${code}`)));
      child.stdout.on("data", (chunk: Buffer) => {
        out += chunk.toString();
        const found = /^listening on (\S+)/.exec(out);
        if (found) resolve(found[1] as string);
      });
    });
    return new Server(url, home, child);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill(signal);
    await gone;
  }
}
