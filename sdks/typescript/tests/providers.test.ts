import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { SandboxAgent } from "../src/index.js";
import { cloudflare, daytona, docker, e2b, fly, local, modal, type Provider, vercel } from "../src/providers/index.js";
import { BIN, environment, newHome } from "./support/server.js";

/** A vendor whose sandboxes are real servers of this machine. `rented` is what still costs something. */
class Vendor {
  readonly home = newHome();
  readonly rented = new Set<Rented>();
  fails = false;

  constructor() {
    mkdirSync(join(this.home, "bin"));
    const program = join(this.home, "bin", "sandbox-agent");
    writeFileSync(program, `#!/bin/sh\n[ "$*" = "server --host 0.0.0.0 --port 2468" ] || exit 9\nexec ${BIN} server --port 0\n`);
    chmodSync(program, 0o755);
  }

  get env(): Record<string, string> {
    return { ...environment(this.home), PATH: `${join(this.home, "bin")}:${process.env["PATH"]}` };
  }

  rent(): Rented {
    const one = new Rented(this);
    this.rented.add(one);
    return one;
  }
}

class Rented {
  child: ChildProcess | null = null;
  url = "";

  constructor(readonly vendor: Vendor) {}

  async run(shell: string, env: Record<string, string>): Promise<void> {
    const child = spawn("sh", ["-c", shell], { env: { ...this.vendor.env, ...env }, stdio: ["ignore", "pipe", "ignore"] });
    this.child = child;
    this.url = await new Promise((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`exited with ${code}`)));
      child.stdout.once("data", (line: Buffer) => resolve(line.toString().trim().replace("listening on ", "")));
    });
  }

  last<T>(gives: T): T {
    if (this.vendor.fails) throw new Error("the last step failed");
    return gives;
  }

  async end(): Promise<void> {
    this.vendor.rented.delete(this);
    if (this.child === null) return;
    const gone = new Promise((resolve) => this.child?.once("exit", resolve));
    this.child.kill();
    await gone;
  }
}

const vendors: Vendor[] = [];
afterEach(async () => {
  for (const vendor of vendors.splice(0)) for (const one of [...vendor.rented]) await one.end();
});

type Env = Record<string, string>;
const VENDORS: Record<string, (vendor: Vendor) => Provider> = {
  e2b: (vendor) =>
    e2b("my-template", {
      sdk: {
        Sandbox: {
          async create(template) {
            expect(template).toBe("my-template");
            const one = vendor.rent();
            return {
              commands: { run: (cmd: string, { envs }: { envs: Env }) => one.run(cmd, envs) },
              getHost: () => one.last(one.url.replace("http://", "")),
              kill: () => one.end(),
            };
          },
        },
      },
    }),
  daytona: (vendor) =>
    daytona({
      snapshot: "my-snapshot",
      sdk: {
        Daytona: class {
          async create(params: { envVars: Env; public: boolean; snapshot?: string; image?: string }) {
            expect(params).toMatchObject({ snapshot: "my-snapshot", public: true });
            const one = vendor.rent();
            return {
              process: {
                createSession: async () => {},
                executeSessionCommand: (_: string, { command }: { command: string }) => one.run(command, params.envVars),
              },
              getPreviewLink: async () => one.last({ url: one.url }),
              delete: () => one.end(),
            };
          }
        },
      },
    }),
  modal: (vendor) =>
    modal("my/image", {
      sdk: {
        ModalClient: class {
          apps = { fromName: async (name: string) => ({ app: name }) };
          images = { fromRegistry: (tag: string) => ({ image: tag }) };
          sandboxes = {
            create: async (app: { app: string }, image: { image: string }, params: { command: string[]; env: Env }) => {
              expect([app, image]).toEqual([{ app: "sandbox-agent" }, { image: "my/image" }]);
              const one = vendor.rent();
              await one.run(params.command[2] as string, params.env);
              return { tunnels: async () => one.last({ 2468: { url: one.url } }), terminate: () => one.end() };
            },
          };
        },
      },
    }),
  vercel: (vendor) =>
    vercel({
      sdk: {
        Sandbox: {
          async create({ env, ports }) {
            expect(ports).toEqual([2468]);
            const one = vendor.rent();
            return {
              runCommand: ({ args }: { args: string[] }) => one.run(args[1] as string, env),
              domain: () => one.last(one.url),
              delete: () => one.end(),
            };
          },
        },
      },
    }),
  cloudflare: (vendor) => {
    const one = vendor.rent();
    return cloudflare({
      startProcess: async (command, { env }) => one.last(await one.run(`exec ${command}`, env)),
      containerFetch: async (request, port) => {
        expect(port).toBe(2468);
        const target = new URL(request.url);
        const init = { method: request.method, headers: request.headers, signal: request.signal };
        const body = request.method === "POST" ? { body: await request.text() } : {};
        return await fetch(one.url + target.pathname + target.search, { ...init, ...body });
      },
      destroy: () => one.end(),
    });
  },
};

function world(name: string): { vendor: Vendor; provider: Provider } {
  const vendor = new Vendor();
  vendors.push(vendor);
  return { vendor, provider: (VENDORS[name] as (vendor: Vendor) => Provider)(vendor) };
}

async function turn(sandbox: SandboxAgent): Promise<void> {
  expect((await fetch(`${sandbox.url}/v1/health`).catch(() => ({ status: 401 }))).status).toBe(401);
  const session = await sandbox.sessions.create({ agent: "mock", cwd: "/tmp" });
  expect(await session.prompt("hello").text()).toBe("hello");
  expect(await session.prompt("env TZ").text()).toContain("Asia/Tokyo");
}

it.each(Object.keys(VENDORS))("%s: a turn runs in a sandbox that is gone afterwards", async (name) => {
  const { vendor, provider } = world(name);
  const sandbox = await SandboxAgent.start({ sandbox: provider, env: { TZ: "Asia/Tokyo" } });
  await turn(sandbox);
  expect(vendor.rented.size).toBe(1);
  await sandbox.close();
  expect(vendor.rented.size).toBe(0);
});

it.each(Object.keys(VENDORS))("%s: a sandbox whose last step fails is removed", async (name) => {
  const { vendor, provider } = world(name);
  vendor.fails = true;
  await expect(SandboxAgent.start({ sandbox: provider })).rejects.toThrow("the last step failed");
  expect(vendor.rented.size).toBe(0);
});

it("runs on this machine", async () => {
  const env = { ...environment(newHome()), TZ: "Asia/Tokyo" };
  const sandbox = await SandboxAgent.start({ sandbox: local({ command: BIN }), env });
  await turn(sandbox);
  await sandbox.close();
  await expect(fetch(`${sandbox.url}/v1/health`)).rejects.toThrow();
});

it("gives docker no secret on its command line, and raises what it says", async () => {
  const vendor = new Vendor();
  const program = join(vendor.home, "docker");
  const said = join(vendor.home, "said");
  writeFileSync(
    program,
    `#!/bin/sh\necho "$@" >> ${said}\ncase $1 in\nrun) for inside; do :; done; ( sh -c "$inside" > ${said}.out 2>/dev/null & echo $! );;\n` +
      `port) until grep -q listening ${said}.out; do sleep 0.05; done; sed 's|listening on http://||' ${said}.out;;\nrm) for id; do :; done; kill $id;;\nesac\n`,
  );
  chmodSync(program, 0o755);
  const env = { ...vendor.env, TZ: "Asia/Tokyo", API_KEY: "s3cret" };
  const sandbox = await SandboxAgent.start({ sandbox: docker("my-image", { program, volumes: ["/a:/b"] }), env });
  await turn(sandbox);
  await sandbox.close();
  const words = readFileSync(said, "utf8");
  expect(words).toContain("--publish 127.0.0.1::2468");
  expect(words).toContain("--volume /a:/b");
  expect(words).toContain("--env IS_SANDBOX");
  expect(words).toContain("rm --force");
  expect(words).not.toContain("s3cret");
  await expect(SandboxAgent.start({ sandbox: docker("x", { program: "/no/docker" }) })).rejects.toThrow("is not installed");
  writeFileSync(program, "#!/bin/sh\necho no such image >&2; exit 1\n");
  await expect(SandboxAgent.start({ sandbox: docker("x", { program }) })).rejects.toThrow("run failed: no such image");
});

it("makes a Machine of Fly's by its API and names it in every request", async () => {
  const vendor = new Vendor();
  vendors.push(vendor);
  const one = vendor.rent();
  const api = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", async () => {
      expect(request.headers.authorization).toBe("Bearer secret");
      if (request.method === "POST") {
        expect(request.url).toBe("/v1/apps/my-app/machines");
        const { config } = JSON.parse(body);
        await one.run(config.init.exec[2], config.env);
      } else {
        expect(request.url).toBe("/v1/apps/my-app/machines/m1?force=true");
        await one.end();
      }
      response.end(JSON.stringify({ id: "m1" }));
    });
  });
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  const apiUrl = `http://127.0.0.1:${(api.address() as { port: number }).port}`;
  const provider: Provider = {
    async create(token, env) {
      const made = await fly("my-app", "my/image", { apiToken: "secret", apiUrl }).create(token, env);
      expect(made.url).toBe("https://my-app.fly.dev");
      return { ...made, url: one.url };
    },
  };
  const sandbox = await SandboxAgent.start({ sandbox: provider, env: { TZ: "Asia/Tokyo" } });
  await turn(sandbox);
  await sandbox.close();
  expect(vendor.rented.size).toBe(0);
  api.close();
});

it("says what to install where the vendor's SDK is missing", async () => {
  await expect(SandboxAgent.start({ sandbox: e2b("t") })).rejects.toThrow("run: npm install e2b");
  await expect(SandboxAgent.start({ sandbox: daytona() })).rejects.toThrow("run: npm install @daytonaio/sdk");
  await expect(SandboxAgent.start({ sandbox: modal("i") })).rejects.toThrow("run: npm install modal");
  await expect(SandboxAgent.start({ sandbox: vercel() })).rejects.toThrow("run: npm install @vercel/sandbox");
});

it("destroys a sandbox whose server never answers", async () => {
  let destroyed = 0;
  const dead: Provider = { create: async (token) => ({ url: "http://127.0.0.1:9", token, destroy: async () => void destroyed++ }) };
  await expect(SandboxAgent.start({ sandbox: dead, within: 500 })).rejects.toThrow("did not answer within 500 ms");
  expect(destroyed).toBe(1);
});
