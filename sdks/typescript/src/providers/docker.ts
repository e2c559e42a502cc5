import { command, environment, orRemove, PORT, type Provider } from "./provider.js";

export interface DockerOptions {
  /** As for `docker run --volume`: `["/my/project:/workspace"]`. */
  volumes?: string[];
  /** Further words for `docker run`. */
  options?: string[];
  /** `docker` by default; `podman` takes the same words. */
  program?: string;
  /** A shell command that installs sandbox-agent, for an image without it. */
  setup?: string;
}

/** A container of `image`, removed in the end, and reachable from this machine only. Node only. */
export function docker(image = "sandbox-agent", options: DockerOptions = {}): Provider {
  const program = options.program ?? "docker";
  const run = (words: string[], env: Record<string, string> = {}): Promise<string> => output(program, words, env);
  return {
    async create(token, env) {
      const variables = environment(token, env);
      // Names on the command line, values in the environment of `docker`: command lines can be read by everybody.
      const named = Object.keys(variables).flatMap((name) => ["--env", name]);
      const mounted = (options.volumes ?? []).flatMap((volume) => ["--volume", volume]);
      const first = ["run", "--detach", "--rm", "--init", "--publish", `127.0.0.1::${PORT}`, ...named, ...mounted];
      const inside = ["sh", "-c", command(options.setup)];
      const container = (await run([...first, ...(options.options ?? []), image, ...inside], variables)).trim();
      const destroy = async (): Promise<void> => void (await run(["rm", "--force", "--volumes", container]));
      const [address] = (await orRemove(destroy, () => run(["port", container, `${PORT}/tcp`]))).split("\n");
      return { url: `http://${(address as string).trim()}`, token, destroy };
    },
  };
}

async function output(program: string, words: string[], env: Record<string, string>): Promise<string> {
  const { execFile } = await import("node:child_process");
  return await new Promise((resolve, reject) => {
    execFile(program, words, { env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else if (error.code === ("ENOENT" as unknown)) reject(new Error(`"${program}" is not installed, or not on the PATH`));
      else reject(new Error(`${program} ${words[0]} failed: ${stderr.trim()}`));
    });
  });
}
