import { afterEach, describe, expect, it } from "vitest";
import { ConnectionLost, type InstallProgress, ProblemError, SandboxAgent } from "../src/index.js";
import { Server } from "./support/server.js";
import { AgentSite } from "./support/site.js";

const AGENT = "gemini";
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function serverWith(site: AgentSite): Promise<{ server: Server; sandbox: SandboxAgent }> {
  closing.push(() => site.close());
  const env = { SANDBOX_AGENT_ACP_REGISTRY_URL: site.url("/registry.json"), PATH: "/usr/bin:/bin" };
  const server = await Server.start({ env });
  closing.push(() => server.stop());
  return { server, sandbox: await SandboxAgent.connect({ url: server.url }) };
}

/** Collects progress; `of(step)` settles when that step is told. */
class Told {
  readonly all: InstallProgress[] = [];
  readonly #waiting = new Map<string, () => void>();
  add = (progress: InstallProgress): void => {
    this.all.push(progress);
    this.#waiting.get(progress.step)?.();
  };
  async of(step: string): Promise<void> {
    await new Promise<void>((resolve) => this.#waiting.set(step, resolve));
  }
}

describe("an install", () => {
  it("tells its steps, how much has arrived, and what was installed", async () => {
    const site = await AgentSite.of(AGENT, { isSlow: true });
    const { sandbox } = await serverWith(site);
    const told = new Told();
    const downloading = told.of("download");
    const installing = sandbox.agents.install(AGENT, { onProgress: told.add });
    await downloading;
    expect(told.all.at(-1)).toMatchObject({ agent: AGENT, step: "download", message: "downloading tiny.tar.gz" });
    site.goOn();
    expect(await installing).toMatchObject({ alreadyInstalled: false, version: "1.0.0", source: "registry" });
    expect([...new Set(told.all.map(({ step }) => step))]).toEqual(["plan", "download", "unpack", "verify", "done"]);
    const sizes = told.all.filter(({ step }) => step === "download");
    expect(sizes.at(-1)).toMatchObject({ fraction: 1, bytes: expect.any(Number) });
    expect(await sandbox.agents.get(AGENT)).toMatchObject({ installed: true, version: "1.0.0" });
    const again = new Told();
    expect(await sandbox.agents.install(AGENT, { onProgress: again.add })).toMatchObject({ alreadyInstalled: true });
    expect(again.all).toEqual([]);
  });

  it("that fails on its way throws the server's problem, and may be tried again", async () => {
    const site = await AgentSite.of(AGENT, { target: { sha256: "0".repeat(64) } });
    const { sandbox } = await serverWith(site);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const told = new Told();
      const error = await sandbox.agents.install(AGENT, { onProgress: told.add }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(ProblemError);
      expect(error).toMatchObject({ status: 502, kind: "install_error" });
      expect(told.all.map(({ step }) => step)).toContain("download");
    }
  });

  it("that is not possible throws before any progress, and one of an unknown agent says so", async () => {
    const { sandbox } = await serverWith(await AgentSite.of(AGENT));
    const told = new Told();
    const installing = sandbox.agents.install("amp", { onProgress: told.add });
    await expect(installing).rejects.toMatchObject({ status: 409, kind: "install_impossible" });
    expect(told.all).toEqual([]);
    const unknown = sandbox.agents.install("nobody", { onProgress: told.add });
    await expect(unknown).rejects.toMatchObject({ status: 404, kind: "unknown_agent" });
  });

  it("goes on when the one who waits for it leaves", async () => {
    const site = await AgentSite.of(AGENT, { isSlow: true });
    const { sandbox } = await serverWith(site);
    const told = new Told();
    const leaving = new AbortController();
    const downloading = told.of("download");
    const left = sandbox.agents.install(AGENT, { onProgress: told.add, signal: leaving.signal });
    await downloading;
    leaving.abort(new Error("enough"));
    await expect(left).rejects.toThrow("enough");
    const next = new Told();
    const joined = sandbox.agents.install(AGENT, { onProgress: next.add });
    site.goOn();
    await joined;
    expect((await sandbox.agents.get(AGENT)).installed).toBe(true);
  });

  it("of a server that dies fails with a lost connection", async () => {
    const site = await AgentSite.of(AGENT, { isSlow: true });
    const { server, sandbox } = await serverWith(site);
    const told = new Told();
    const downloading = told.of("download");
    const installing = sandbox.agents.install(AGENT, { onProgress: told.add });
    const failed = expect(installing).rejects.toBeInstanceOf(ConnectionLost);
    await downloading;
    await server.stop("SIGKILL");
    await failed;
  });
});
