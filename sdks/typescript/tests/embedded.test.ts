import { expect, it } from "vitest";
import { ProblemError, SandboxAgent } from "../src/index.js";
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
