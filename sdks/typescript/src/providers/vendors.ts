import { command, environment, orRemove, PORT, type Provider, vendor } from "./provider.js";

const NAME = "sandbox-agent";
const HOUR = 3_600_000;

interface Common<Sdk> {
  /** A shell command that installs sandbox-agent, where the image or template is without it. */
  setup?: string;
  /** The vendor's SDK, for bundlers, which do not see what is imported by name: `{ sdk: await import("e2b") }`. */
  sdk?: Sdk;
}

interface E2bSandbox {
  commands: { run(cmd: string, options: { background: true; envs: Record<string, string>; timeoutMs: number }): Promise<unknown> };
  getHost(port: number): string;
  kill(): Promise<unknown>;
}

export interface E2bSdk {
  Sandbox: { create(template: string, options: { envs: Record<string, string>; timeoutMs: number }): Promise<E2bSandbox> };
}

/** An E2B sandbox of `template`, killed in the end, and by E2B after `timeoutMs` (an hour). Needs E2B_API_KEY. */
export function e2b(template: string, options: Common<E2bSdk> & { timeoutMs?: number } = {}): Provider {
  return {
    async create(token, env) {
      const { Sandbox } = await vendor(options.sdk, "e2b");
      const sandbox = await Sandbox.create(template, { envs: env, timeoutMs: options.timeoutMs ?? HOUR });
      const destroy = async (): Promise<void> => void (await sandbox.kill());
      return await orRemove(destroy, async () => {
        const envs = environment(token, env);
        await sandbox.commands.run(command(options.setup), { background: true, envs, timeoutMs: 0 });
        return { url: address(sandbox.getHost(PORT)), token, destroy };
      });
    },
  };
}

interface DaytonaSandbox {
  process: {
    createSession(id: string): Promise<unknown>;
    executeSessionCommand(id: string, request: { command: string; runAsync: boolean }): Promise<unknown>;
  };
  getPreviewLink(port: number): Promise<{ url: string }>;
  delete(): Promise<unknown>;
}

interface DaytonaParams {
  envVars: Record<string, string>;
  public: boolean;
  autoStopInterval: number;
}

export interface DaytonaSdk {
  Daytona: new () => {
    create(params: DaytonaParams & { snapshot?: string }): Promise<DaytonaSandbox>;
    create(params: DaytonaParams & { image: string }): Promise<DaytonaSandbox>;
  };
}

export interface DaytonaOptions extends Common<DaytonaSdk> {
  /** Made of a snapshot, or of an image. */
  snapshot?: string;
  image?: string;
  /** Daytona stops it after so many minutes without activity; 60 by default, 0: never. */
  autoStopMinutes?: number;
}

/** A Daytona sandbox, deleted in the end. Needs DAYTONA_API_KEY. */
export function daytona(options: DaytonaOptions = {}): Provider {
  return {
    async create(token, env) {
      const { Daytona } = await vendor(options.sdk, "@daytonaio/sdk");
      // Public: the address needs no login of Daytona's. The server behind it takes nobody without the token.
      const envVars = environment(token, env);
      const shared = { envVars, public: true, autoStopInterval: options.autoStopMinutes ?? 60 };
      const { image, snapshot } = options;
      const client = new Daytona();
      const made =
        image !== undefined
          ? client.create({ ...shared, image })
          : client.create({ ...shared, ...(snapshot === undefined ? {} : { snapshot }) });
      const sandbox = await made;
      const destroy = async (): Promise<void> => void (await sandbox.delete());
      return await orRemove(destroy, async () => {
        await sandbox.process.createSession(NAME);
        await sandbox.process.executeSessionCommand(NAME, { command: command(options.setup), runAsync: true });
        return { url: (await sandbox.getPreviewLink(PORT)).url, token, destroy };
      });
    },
  };
}

interface ModalSandbox {
  tunnels(): Promise<Record<number, { url: string }>>;
  terminate(): Promise<unknown>;
}

interface ModalParams {
  command: string[];
  env: Record<string, string>;
  encryptedPorts: number[];
  timeoutMs: number;
}

/** The client of Modal's SDK: `new ModalClient()`. */
export interface ModalClient<App, Image> {
  apps: { fromName(name: string, params: { createIfMissing: boolean }): Promise<App> };
  images: { fromRegistry(tag: string): Image };
  sandboxes: { create(app: App, image: Image, params: ModalParams): Promise<ModalSandbox> };
}

export interface ModalOptions<App, Image> {
  app?: string;
  setup?: string;
  timeoutMs?: number;
  sdk?: { ModalClient: new () => ModalClient<App, Image> };
}

/** A Modal Sandbox of an image in a registry, terminated in the end, and by Modal after `timeoutMs` (an hour). */
export function modal<App, Image>(image: string, options: ModalOptions<App, Image> = {}): Provider {
  return {
    async create(token, env) {
      const { ModalClient } = await vendor(options.sdk, "modal");
      const client = new ModalClient();
      const app = await client.apps.fromName(options.app ?? NAME, { createIfMissing: true });
      const sandbox = await client.sandboxes.create(app, client.images.fromRegistry(image), {
        command: ["sh", "-c", command(options.setup)],
        env: environment(token, env),
        encryptedPorts: [PORT],
        timeoutMs: options.timeoutMs ?? HOUR,
      });
      const destroy = async (): Promise<void> => void (await sandbox.terminate());
      const tunnel = (await orRemove(destroy, () => sandbox.tunnels()))[PORT] as { url: string };
      return { url: tunnel.url, token, destroy };
    },
  };
}

interface VercelSandbox {
  runCommand(params: { cmd: string; args: string[]; detached: true }): Promise<unknown>;
  domain(port: number): string;
  delete(): Promise<unknown>;
}

// A type, no interface: Vercel's parameters have an index signature, to which interfaces are not assignable.
type VercelParams = { ports: number[]; timeout: number; env: Record<string, string>; persistent: boolean };

export interface VercelSdk {
  Sandbox: { create(params: VercelParams | (VercelParams & { image: string })): Promise<VercelSandbox> };
}

/** A Vercel Sandbox, deleted in the end, and stopped by Vercel after `timeoutMs` (an hour). Needs VERCEL_OIDC_TOKEN. */
export function vercel(options: Common<VercelSdk> & { image?: string; timeoutMs?: number } = {}): Provider {
  return {
    async create(token, env) {
      const { Sandbox } = await vendor(options.sdk, "@vercel/sandbox");
      const sandbox = await Sandbox.create({
        ports: [PORT],
        timeout: options.timeoutMs ?? HOUR,
        env: environment(token, env),
        persistent: false,
        ...(options.image === undefined ? {} : { image: options.image }),
      });
      const destroy = async (): Promise<void> => void (await sandbox.delete());
      return await orRemove(destroy, async () => {
        await sandbox.runCommand({ cmd: "sh", args: ["-c", command(options.setup)], detached: true });
        return { url: sandbox.domain(PORT), token, destroy };
      });
    },
  };
}

/** What `getSandbox(env.Sandbox, id)` of `@cloudflare/sandbox` gives, as far as it is used. */
export interface CloudflareSandbox {
  startProcess(command: string, options: { env: Record<string, string> }): Promise<unknown>;
  containerFetch(request: Request, port: number): Promise<Response>;
  destroy(): Promise<void>;
}

/** A Cloudflare Sandbox, destroyed in the end. In a Worker only: requests go through its binding, not the internet. */
export function cloudflare(sandbox: CloudflareSandbox, options: { setup?: string } = {}): Provider {
  return {
    async create(token, env) {
      const variables = environment(token, env);
      const quoted = `'${command(options.setup).replaceAll("'", "'\\''")}'`;
      const destroy = (): Promise<void> => sandbox.destroy();
      await orRemove(destroy, () => sandbox.startProcess(`sh -c ${quoted}`, { env: variables }));
      const through = (input: string, init?: RequestInit): Promise<Response> => {
        const { cache, credentials, ...known } = init ?? {}; // Workers refuse what only browsers have
        return sandbox.containerFetch(new Request(input, known), PORT);
      };
      return { url: `http://localhost:${PORT}`, token, destroy, fetch: through };
    },
  };
}

/** What a vendor gives as host is served with TLS, unless it is this machine (the vendor's debug mode). */
function address(host: string): string {
  return `${/^(localhost|127\.)/.test(host) ? "http" : "https"}://${host}`;
}
