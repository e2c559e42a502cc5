import { expect, it } from "vitest";
import { RequestError, SandboxAgent } from "../src/index.js";
import { Server } from "./support/server.js";

const FAST = { first: 10, longest: 100 };

it("goes on in the same session after the server was killed and started again", async () => {
  let server = await Server.start();
  const sandbox = await SandboxAgent.connect({ url: server.url, agent: "mock", backoff: FAST });
  try {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    await session.prompt("first");
    await server.stop("SIGKILL");
    server = await Server.start({ home: server.home, port: server.port });
    expect(await session.prompt("recall").text()).toContain("1. first");
  } finally {
    await sandbox.close();
    await server.stop();
  }
});

it("fails the turn that ran when the server was killed, and delivers what it missed of it", async () => {
  let server = await Server.start();
  const states: string[] = [];
  const sandbox = await SandboxAgent.connect({
    url: server.url,
    agent: "mock",
    backoff: FAST,
    onState: (_, state) => states.push(state),
  });
  try {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const texts: string[] = [];
    session.onUpdate((update) => {
      if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") texts.push(update.content.text);
    });
    const turn = session.prompt("slow 10000");
    const failed = turn.then(() => null, (reason: unknown) => reason);
    for await (const _ of turn) {
      if (texts.length >= 3) break;
    }
    await server.stop("SIGKILL");
    server = await Server.start({ home: server.home, port: server.port });
    const error = await failed;
    expect(error).toBeInstanceOf(RequestError);
    expect((error as RequestError).code).toBe(-32010);
    const history = await session.events({ limit: 10_000 });
    const recorded = history.events
      .map(({ envelope }) => (envelope as { params?: { update?: { content?: { text?: string } } } }).params?.update?.content?.text)
      .filter((text) => text?.startsWith("tick"));
    expect(texts.filter((text) => text.startsWith("tick"))).toEqual(recorded);
    expect(states).toContain("reconnecting");
    expect(states.at(-1)).toBe("open");
  } finally {
    await sandbox.close();
    await server.stop();
  }
});

it("withdraws a question that was open when the server was killed", async () => {
  let server = await Server.start();
  const sandbox = await SandboxAgent.connect({ url: server.url, agent: "mock", backoff: FAST });
  try {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    let asked = (): void => {};
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const withdrawn = new Promise<void>((resolve) => {
      session.handlers.onPermission = async (_, { signal }) => {
        asked();
        await new Promise<void>((done) => signal.addEventListener("abort", () => done(), { once: true }));
        resolve();
        return undefined;
      };
    });
    const turn = session.prompt("tool ls").then(() => "ended", () => "failed");
    await isAsked;
    await server.stop("SIGKILL");
    server = await Server.start({ home: server.home, port: server.port });
    await withdrawn;
    expect(await turn).toBe("failed");
  } finally {
    await sandbox.close();
    await server.stop();
  }
});

it("fails what waits when the server stays away for too long", async () => {
  const server = await Server.start();
  const sandbox = await SandboxAgent.connect({ url: server.url, agent: "mock", backoff: FAST, giveUpAfter: 300 });
  const session = await sandbox.sessions.create({ cwd: "/tmp" });
  const turn = session.prompt("hang").then(() => null, (reason: unknown) => reason);
  await server.stop("SIGKILL");
  expect(await turn).toMatchObject({ name: "ConnectionLost" });
  await sandbox.close();
});
