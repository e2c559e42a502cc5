import { type ClientOptions, SandboxAgent as Client } from "./client.js";
import { type EmbeddedServer, type StartOptions, startServer } from "./embedded.js";
import { type Machine, type Provider, started } from "./providers/provider.js";

export * from "./surface.js";
export { type EmbeddedServer, type StartOptions, startServer } from "./embedded.js";

export interface SandboxOptions extends ClientOptions {
  /** Where the server runs: one of `sandbox-agent-client/providers`, such as `docker("my-image")`. */
  sandbox: Provider;
  /** Added to the server's environment. */
  env?: Record<string, string>;
  /** Milliseconds that the server may take to answer; two minutes by default. */
  within?: number;
}

/** A Sandbox Agent server, and everything that can be done with it. */
export class SandboxAgent extends Client {
  #server: EmbeddedServer | null = null;
  #machine: Machine | null = null;

  /** Start a server of our own, with a random token, that ends with `close()`: in `sandbox`, or as a child process (Node only). */
  static async start(options: (ClientOptions & StartOptions & { sandbox?: undefined }) | SandboxOptions = {}): Promise<SandboxAgent> {
    if (options.sandbox !== undefined) {
      const machine = await started(options.sandbox, options.env ?? {}, options.within ?? 120_000);
      const way = machine.fetch === undefined ? {} : { fetch: machine.fetch };
      const sandbox = new SandboxAgent({ ...options, ...way, url: machine.url, token: machine.token });
      sandbox.#machine = machine;
      return sandbox;
    }
    const server = await startServer(options);
    const sandbox = new SandboxAgent({ ...options, url: server.url, token: server.token });
    sandbox.#server = server;
    return sandbox;
  }

  /** The child process that `start` started; null for a server in a sandbox, or one that was there already. */
  get server(): EmbeddedServer | null {
    return this.#server;
  }

  /** Close the connections, and stop the server, or destroy its sandbox, if it is ours. */
  override async close(): Promise<void> {
    await super.close();
    await this.#server?.stop();
    const machine = this.#machine;
    this.#machine = null;
    await machine?.destroy();
  }
}
