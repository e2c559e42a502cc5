import { createServer, connect, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

/** A TCP proxy whose connections can be cut at any byte. */
export class CuttingProxy {
  readonly #pairs = new Set<[Socket, Socket]>();
  readonly #server: Server;
  cuts = 0;
  bytes = 0;
  /** Called with every piece that the server sends; may cut. */
  onBytes: (proxy: CuttingProxy) => void = () => {};

  private constructor(server: Server) {
    this.#server = server;
  }

  static async to(port: number): Promise<CuttingProxy> {
    const server = createServer();
    const proxy = new CuttingProxy(server);
    server.on("connection", (down) => {
      const up = connect(port, "127.0.0.1");
      const pair: [Socket, Socket] = [down, up];
      proxy.#pairs.add(pair);
      for (const [from, to] of [pair, [up, down] as [Socket, Socket]]) {
        from.on("data", (chunk: Buffer) => {
          if (from === up) proxy.bytes += chunk.length;
          if (!to.write(chunk)) from.pause();
          if (from === up) proxy.onBytes(proxy);
        });
        to.on("drain", () => from.resume());
        from.on("close", () => {
          proxy.#pairs.delete(pair);
          to.destroy();
        });
        from.on("error", () => to.destroy());
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Reset every connection, in both directions. */
  cut(): void {
    this.cuts += 1;
    for (const [down, up] of this.#pairs) {
      down.resetAndDestroy();
      up.destroy();
    }
  }

  async close(): Promise<void> {
    for (const [down] of this.#pairs) down.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
