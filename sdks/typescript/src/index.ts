import { type ClientOptions, SandboxAgent as Client } from "./client.js";
import { type EmbeddedServer, type StartOptions, startServer } from "./embedded.js";

export * from "./surface.js";
export { type EmbeddedServer, type StartOptions, startServer } from "./embedded.js";

/** A Sandbox Agent server, and everything that can be done with it. */
export class SandboxAgent extends Client {
  #server: EmbeddedServer | null = null;

  /** Start a server of our own, with a random token, that ends with `close()`. Node only. */
  static async start(options: ClientOptions & StartOptions = {}): Promise<SandboxAgent> {
    const server = await startServer(options);
    const sandbox = new SandboxAgent({ ...options, url: server.url, token: server.token });
    sandbox.#server = server;
    return sandbox;
  }

  /** The server that `start` started; null for one that was there already. */
  get server(): EmbeddedServer | null {
    return this.#server;
  }

  /** Close the connections, and stop the server if it is ours. */
  override async close(): Promise<void> {
    await super.close();
    await this.#server?.stop();
  }
}
