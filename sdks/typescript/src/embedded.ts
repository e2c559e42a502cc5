import type { ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";

export interface StartOptions {
  /** The program to run; `$SANDBOX_AGENT_BIN` or `sandbox-agent` on the PATH by default. */
  command?: string;
  /** More arguments for `sandbox-agent server`, such as `["--config", "agents.toml"]`. */
  args?: string[];
  /** Added to this process's environment. */
  env?: Record<string, string>;
  cwd?: string;
  /** Milliseconds that the start may take. */
  timeout?: number;
}

/** A server of our own, as a child process on a free port of the loopback interface. */
export interface EmbeddedServer {
  url: string;
  token: string;
  pid: number;
  stop(): Promise<void>;
}

const LISTENING = /^listening on (http:\/\/\S+)/;
const GRACE = 10_000;

/** Start `sandbox-agent server`, which ends with this process at the latest. Throws with what it wrote to stderr when it does not come up. */
export async function startServer(options: StartOptions = {}, given?: string): Promise<EmbeddedServer> {
  const { spawn } = await import("node:child_process");
  const { randomBytes } = await import("node:crypto");
  const token = given ?? randomBytes(24).toString("base64url");
  const command = options.command ?? process.env["SANDBOX_AGENT_BIN"] ?? "sandbox-agent";
  const owned = ["--ends-with", String(process.pid)];
  const child = spawn(command, ["server", "--port", "0", ...(options.args ?? []), ...owned], {
    stdio: ["pipe", "pipe", "pipe"], // it ends when its stdin does: with us, whatever ends us
    detached: true, // Ctrl-C is for this program: it may want to end its turns first
    env: { SANDBOX_AGENT_STORE: "auto", ...process.env, ...options.env, SANDBOX_AGENT_TOKEN: token },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  const kill = (): void => void child.kill("SIGTERM");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
  try {
    const url = await addressOf(child, command, options.timeout ?? 30_000);
    return { url, token, pid: child.pid as number, stop: () => stop(child) };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

async function addressOf(child: Child, command: string, timeout: number): Promise<string> {
  return await new Promise<string>((resolve, reject) => {
    let out = "";
    let err = "";
    const timer = setTimeout(() => reject(new Error(`${command} did not start within ${timeout} ms\n${err}`)), timeout);
    const failed = (why: string): void => {
      clearTimeout(timer);
      reject(new Error(`${command} did not start: ${why}\n${err}`.trim()));
    };
    child.once("error", (error) => failed(error.message));
    child.once("exit", (code) => failed(`it exited with code ${code}`));
    child.stderr.on("data", (chunk: Buffer) => {
      err = (err + chunk.toString()).slice(-4_000);
    });
    child.stdout.on("data", (chunk: Buffer) => {
      out = (out + chunk.toString()).slice(-4_000);
      const found = LISTENING.exec(out);
      if (found === null) return;
      clearTimeout(timer);
      resolve(found[1] as string);
    });
  });
}

async function stop(child: Child): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), GRACE);
    child.once("exit", () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill("SIGTERM");
  });
}
