import { command, environment, PORT, type Provider } from "./provider.js";

export interface FlyOptions {
  /** `fly tokens create deploy` gives one. */
  apiToken: string;
  region?: string;
  cpus?: number;
  memoryMb?: number;
  /** A shell command that installs sandbox-agent, for an image without it. */
  setup?: string;
  apiUrl?: string;
  /** The address of the app, `https://APP.fly.dev` unless it has one of its own. */
  url?: string;
}

/** A Machine in an app of yours that has a public address, destroyed in the end. Fly has no SDK for TypeScript: its HTTP API is used. */
export function fly(app: string, image: string, options: FlyOptions): Provider {
  const machines = `${options.apiUrl ?? "https://api.machines.dev"}/v1/apps/${app}/machines`;
  const ask = async (method: string, path: string, body?: object): Promise<{ id: string }> => {
    const response = await fetch(machines + path, {
      method,
      headers: { authorization: `Bearer ${options.apiToken}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`Fly answered ${response.status} to ${method} of a Machine: ${text.slice(0, 500)}`);
    return JSON.parse(text || "{}") as { id: string };
  };
  return {
    async create(token, env) {
      const config = {
        image,
        env: environment(token, env),
        init: { exec: ["sh", "-c", command(options.setup)] },
        guest: { cpu_kind: "shared", cpus: options.cpus ?? 2, memory_mb: options.memoryMb ?? 2048 },
        restart: { policy: "no" },
        auto_destroy: true,
        services: [{ protocol: "tcp", internal_port: PORT, ports: [{ port: 443, handlers: ["tls", "http"] }] }],
      };
      const { id } = await ask("POST", "", { config, ...(options.region === undefined ? {} : { region: options.region }) });
      // The app's address leads to any of its Machines: the header names ours.
      const toOurs = (input: string, init: RequestInit = {}): Promise<Response> =>
        fetch(input, { ...init, headers: { ...(init.headers as Record<string, string>), "fly-force-instance-id": id } });
      const destroy = async (): Promise<void> => void (await ask("DELETE", `/${id}?force=true`));
      return { url: options.url ?? `https://${app}.fly.dev`, token, destroy, fetch: toOurs };
    },
  };
}
