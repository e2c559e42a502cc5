import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { explain, ProblemError, SandboxAgent } from "../src/index.js";
import { BIN, environment, newHome, Server } from "./support/server.js";

it("starts a server with a token of its own and stops it with the client", async () => {
  const sandbox = await SandboxAgent.start({ command: BIN, env: environment(newHome()), agent: "mock" });
  const { url, token } = sandbox.server as { url: string; token: string };
  expect(token.length).toBeGreaterThan(20);
  const session = await sandbox.sessions.create({ cwd: "/tmp" });
  expect(await session.prompt("hello there").text()).toBe("hello there");
  expect((await fetch(`${url}/v1/health`)).status).toBe(401);
  await sandbox.close();
  await expect(fetch(`${url}/v1/health`)).rejects.toThrow();
});

it("does not hand its token to the agent", async () => {
  const sandbox = await SandboxAgent.start({ command: BIN, env: environment(newHome()), agent: "mock" });
  try {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    expect(await session.prompt("env SANDBOX_AGENT_TOKEN").text()).toContain("is not set");
  } finally {
    await sandbox.close();
  }
});

it("says why a server did not start", async () => {
  await expect(SandboxAgent.start({ command: BIN, args: ["--no-such-flag"] })).rejects.toThrow(/no-such-flag/);
  await expect(SandboxAgent.start({ command: "/nonexistent/sandbox-agent" })).rejects.toThrow(/ENOENT/);
});

it("refuses a wrong token when it connects", async () => {
  const server = await Server.start({ token: "right" });
  try {
    await expect(SandboxAgent.connect({ url: server.url, token: "wrong" })).rejects.toMatchObject({ status: 401 });
    const sandbox = await SandboxAgent.connect({ url: server.url, token: "right", agent: "no-such-agent" });
    await expect(sandbox.sessions.create({ cwd: "/tmp" })).rejects.toBeInstanceOf(ProblemError);
    await sandbox.close();
  } finally {
    await server.stop();
  }
});

it("has a history of its own beside another server on the same data directory", async () => {
  const env = environment(newHome());
  const first = await SandboxAgent.start({ command: BIN, env, agent: "mock" });
  const second = await SandboxAgent.start({ command: BIN, env, agent: "mock" });
  try {
    for (const sandbox of [first, second]) {
      const session = await sandbox.sessions.create({ cwd: "/tmp" });
      expect(await session.prompt("hello").text()).toBe("hello");
      expect((await sandbox.sessions.list()).sessions.map(({ sessionId }) => sessionId)).toEqual([session.id]);
    }
    expect((await first.health()).store).toMatchObject({ kind: "sqlite" });
    expect((await second.health()).store).toMatchObject({ kind: "memory", problem: expect.stringContaining("another one") });
  } finally {
    await Promise.all([first.close(), second.close()]);
  }
});

it("logs an agent in, and says why an agent refused and what to do", async () => {
  const home = newHome();
  const config = join(home, "agents.toml");
  const command = [join(dirname(BIN), "python"), "-m", "sandbox_agent.mock_agent", "--needs-auth"];
  writeFileSync(config, `[agents.locked]\ncommand = ${JSON.stringify(command)}\n`);
  const args = ["--config", config];
  const sandbox = await SandboxAgent.start({ command: BIN, env: environment(home), args, agent: "locked" });
  try {
    const refused = await sandbox.sessions.create({ cwd: "/tmp" }).catch(explain);
    expect(refused).toBe("Authentication required: call authenticate with methodId mock-login");
    await sandbox.authenticate("locked", "mock-login");
    await sandbox.sessions.create({ cwd: "/tmp" });
  } finally {
    await sandbox.close();
  }
});

it("refuses a model, a mode and a permission mode that there is not, and lists what there is", async () => {
  const sandbox = await SandboxAgent.start({ command: BIN, env: environment(newHome()), agent: "mock" });
  try {
    const refused = (options: object): Promise<unknown> => sandbox.sessions.create({ cwd: "/tmp", ...options }).catch(explain);
    expect(await refused({ model: "nope" })).toContain("has no model 'nope'; available: mock-small, mock-large");
    expect(await refused({ mode: "nope" })).toContain("has no mode 'nope'; available: ");
    expect(await refused({ permissionMode: "alow" })).toContain("'alow' is not known; available: ask, allow, reject");
    expect(await refused({ mcpServers: [{ name: "x", command: "y" }] })).toContain("has name, command, args, env");
    expect((await sandbox.sessions.list({ ended: false })).sessions).toEqual([]);
  } finally {
    await sandbox.close();
  }
});
