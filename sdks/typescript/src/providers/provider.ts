import { ConnectionLost } from "../errors.js";
import type { Fetch } from "../http.js";

/** Where the server listens inside a sandbox. */
export const PORT = 2468;

/** A sandbox in which a server starts or runs. `destroy` removes it with all that is in it. */
export interface Machine {
  url: string;
  token: string;
  destroy(): Promise<void>;
  /** How requests get there, where that is not the plain `fetch`. */
  fetch?: Fetch;
  /** Of the server's process, where it runs on this machine. */
  pid?: number;
}

/** Makes sandboxes with a server in them. One object may be asked for several. */
export interface Provider {
  /**
   * A sandbox whose server takes `token` (`SANDBOX_AGENT_TOKEN`) and has `env`. It need not answer yet.
   * Whoever throws leaves nothing behind that costs anything.
   */
  create(token: string, env: Record<string, string>): Promise<Machine>;
}

/** A sandbox whose server answers. One that does not within so many milliseconds is destroyed. Throws ConnectionLost. */
export async function started(provider: Provider, env: Record<string, string>, within: number): Promise<Machine> {
  const bytes = crypto.getRandomValues(new Uint8Array(24));
  const machine = await provider.create(Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""), env);
  if (machine.pid !== undefined) return machine; // it has said that it listens
  try {
    await answering(machine, within);
  } catch (error) {
    await machine.destroy().catch(() => {}); // what went wrong before is what the caller has to know
    throw error;
  }
  return machine;
}

/** For a shell: start the server on all addresses of the sandbox, after `setup` if there is something to set up. */
export function command(setup: string | undefined): string {
  const server = `exec sandbox-agent server --host 0.0.0.0 --port ${PORT}`;
  return setup === undefined ? server : `${setup} && ${server}`;
}

/** Of a server in a sandbox. IS_SANDBOX is what agents look at that refuse to run as root elsewhere. */
export function environment(token: string, env: Record<string, string>): Record<string, string> {
  return { IS_SANDBOX: "1", ...env, SANDBOX_AGENT_TOKEN: token };
}

/** Do the steps after the first; if one fails, remove what the first has made. */
export async function orRemove<T>(remove: () => Promise<unknown>, steps: () => Promise<T>): Promise<T> {
  try {
    return await steps();
  } catch (error) {
    await remove().catch(() => {});
    throw error;
  }
}

/** The vendor's SDK: as given, or imported. Throws an error that says what to install. */
export async function vendor<T>(given: T | undefined, name: string): Promise<T> {
  if (given !== undefined) return given;
  try {
    return (await import(/* @vite-ignore */ name)) as T;
  } catch (cause) {
    throw new Error(`the package "${name}" cannot be imported; run: npm install ${name}`, { cause });
  }
}

async function answering(machine: Machine, within: number): Promise<void> {
  const ask = machine.fetch ?? ((input: string, init?: RequestInit) => fetch(input, init));
  const headers = { authorization: `Bearer ${machine.token}` };
  const deadline = Date.now() + within;
  let said = "nothing answered";
  for (let left = within; left > 0; left = deadline - Date.now()) {
    try {
      const response = await ask(`${machine.url}/v1/health`, { headers, signal: AbortSignal.timeout(Math.min(left, 10_000)) });
      if (response.ok) return void (await response.body?.cancel());
      said = `the last answer was ${response.status}: ${(await response.text()).slice(0, 200)}`;
    } catch (error) {
      said = error instanceof Error ? error.message : String(error);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, Math.min(250, deadline - Date.now()))));
  }
  throw new ConnectionLost(`the server at ${machine.url} did not answer within ${within} ms: ${said}`);
}
