import { type StartOptions, startServer } from "../embedded.js";
import type { Provider } from "./provider.js";

/** A server on this machine, as a child process that ends with this program at the latest. Node only. */
export function local(options: Omit<StartOptions, "env"> = {}): Provider {
  return {
    async create(token, env) {
      const server = await startServer({ ...options, env }, token);
      return { url: server.url, token: server.token, pid: server.pid, destroy: () => server.stop() };
    },
  };
}
