import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";

const AGENT = `#!${process.execPath}
if (process.argv.includes("--version")) { console.log("tiny 1.0.0"); process.exit(0) }
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line)
  if (method === "initialize") console.log(JSON.stringify({ jsonrpc: "2.0", id, result: { protocolVersion: 1 } }))
})
`;

/** A registry on loopback with one agent in an archive, as agents are published. */
export class AgentSite {
  /** The archive is sent up to its middle and then waits for `goOn`. */
  readonly goOn: () => void;
  readonly #gate: Promise<void>;
  readonly #archive = gzipSync(tarOf("bin/tiny", AGENT));
  readonly #server: Server;

  private constructor(private readonly agent: string, isSlow: boolean, private readonly target: object) {
    let open = (): void => {};
    this.#gate = new Promise((resolve) => (open = resolve));
    this.goOn = open;
    if (!isSlow) open();
    this.#server = createServer((request, response) => {
      if (request.url === "/registry.json") response.end(JSON.stringify(this.#registry()));
      else if (request.url === "/tiny.tar.gz") void this.#sendArchive(response);
      else response.writeHead(404).end();
    });
  }

  static async of(agent: string, options: { isSlow?: boolean; target?: object } = {}): Promise<AgentSite> {
    const site = new AgentSite(agent, options.isSlow ?? false, options.target ?? {});
    await new Promise<void>((resolve) => site.#server.listen(0, "127.0.0.1", resolve));
    return site;
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  async close(): Promise<void> {
    this.goOn();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #registry(): object {
    const binary = { archive: this.url("/tiny.tar.gz"), cmd: "./bin/tiny", args: [], ...this.target };
    const platforms = ["linux-x86_64", "linux-aarch64", "darwin-x86_64", "darwin-aarch64"];
    const distribution = { binary: Object.fromEntries(platforms.map((platform) => [platform, binary])) };
    return { version: "1.0.0", agents: [{ id: this.agent, name: this.agent, version: "1.0.0", distribution }], extensions: [] };
  }

  async #sendArchive(response: import("node:http").ServerResponse): Promise<void> {
    const half = this.#archive.length >> 1;
    response.writeHead(200, { "content-length": this.#archive.length });
    response.write(this.#archive.subarray(0, half));
    await this.#gate;
    response.end(this.#archive.subarray(half));
  }
}

function tarOf(name: string, text: string): Buffer {
  const content = Buffer.from(text);
  const header = Buffer.alloc(512);
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`;
  header.write(name, 0);
  header.write(octal(0o755, 8), 100);
  header.write(octal(0, 8) + octal(0, 8) + octal(content.length, 12) + octal(0, 12) + "        0", 108);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return Buffer.concat([header, content, Buffer.alloc(-content.length & 511), Buffer.alloc(1024)]);
}
