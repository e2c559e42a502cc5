import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errorKind, ProblemError, SandboxAgent, type SessionEvent } from "../src/index.js";
import { Server } from "./support/server.js";

let server: Server;
let sandbox: SandboxAgent;

beforeAll(async () => {
  server = await Server.start();
  sandbox = await SandboxAgent.connect({ url: server.url, agent: "mock" });
});

afterAll(async () => {
  await sandbox.close();
  await server.stop();
});

describe("sessions", () => {
  it("are made with a name, a title, a model and a mode, and found by the name", async () => {
    const made = await sandbox.sessions.create({ cwd: "/tmp", id: "mine", title: "A title", model: "mock-large" });
    const found = await sandbox.sessions.get("mine");
    expect(found).toMatchObject({ sessionId: made.id, alias: "mine", title: "A title", cwd: "/tmp", agent: "mock" });
    expect(made.setup.meta["model"]).toMatchObject({ applied: true });
  });

  it("are listed page by page, newest first", async () => {
    const made = [];
    for (let index = 0; index < 3; index += 1) made.push((await sandbox.sessions.create({ cwd: "/var" })).id);
    const first = await sandbox.sessions.list({ cwd: "/var", limit: 2 });
    const second = await sandbox.sessions.list({ cwd: "/var", limit: 2, cursor: first.nextCursor as string });
    const ids = [...first.sessions, ...second.sessions].map(({ sessionId }) => sessionId);
    expect(new Set(ids)).toEqual(new Set(made));
  });

  it("are loaded with a replay by another client", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    await session.prompt("remember me");
    const other = await SandboxAgent.connect({ url: server.url });
    try {
      let text = "";
      const loaded = await other.sessions.load(session.id, {
        onReplay: (replayed) =>
          replayed.onUpdate((update) => {
            if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") text += update.content.text;
          }),
      });
      expect(text).toBe("remember me");
      expect(await loaded.prompt("recall").text()).toContain("1. remember me");
    } finally {
      await other.close();
    }
  });

  it("are forked with what they know, in the directory that they are in", async () => {
    const session = await sandbox.sessions.create({ cwd: "/var/tmp" });
    await session.prompt("shared past");
    const fork = await session.fork();
    expect(fork.id).not.toBe(session.id);
    expect((await sandbox.sessions.get(fork.id)).cwd).toBe("/var/tmp");
    expect(await fork.prompt("recall").text()).toContain("1. shared past");
  });

  it("can be configured", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    await session.setMode("code");
    await session.setModel("mock-large");
    const { configOptions } = await session.setConfigOption("model", "mock-small");
    expect(configOptions.length).toBeGreaterThan(0);
    await session.rename("Renamed");
    expect(await sandbox.sessions.get(session.id)).toMatchObject({ title: "Renamed", mode: "code", model: "mock-small" });
  });

  it("end when they are terminated, and stay readable", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    await session.prompt("last words");
    const ended = new Promise((resolve) => session.onEnded(resolve));
    await session.terminate();
    expect(await ended).toMatchObject({ reason: "terminated" });
    await expect(session.prompt("more")).rejects.toSatisfy((error) => errorKind(error) === "session_ended");
    const opened = await sandbox.sessions.open(session.id);
    expect(opened.setup.meta.readOnly).toBe(true);
    const { events } = await opened.events();
    expect(JSON.stringify(events)).toContain("last words");
    expect(await (await sandbox.sessions.transcript(session.id, "markdown")).text()).toContain("last words");
  });

  it("are followed from their first event on, each event once, while a turn runs", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const turn = session.prompt("chunks 5000 20");
    const other = await SandboxAgent.connect({ url: server.url });
    try {
      const watched = await other.sessions.resume(session.id);
      const numbers: number[] = [];
      let finish = (): void => {};
      const isWhole = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const follower = watched.follow((events) => {
        for (const number of events.map(numberOf)) if (number !== null) numbers.push(number);
        if (numbers.length >= 5000) finish();
      });
      await follower.ready;
      await turn;
      await isWhole;
      follower.close();
      expect(numbers).toEqual(Array.from({ length: 5000 }, (_, index) => index + 1));
    } finally {
      await other.close();
    }
  });
});

function numberOf({ message }: SessionEvent): number | null {
  const { update } = ((message as { params?: unknown }).params ?? {}) as { update?: { sessionUpdate: string; content: { text: string } } };
  return update?.sessionUpdate === "agent_message_chunk" ? Number.parseInt(update.content.text, 10) : null;
}

describe("agents", () => {
  it("are listed and shown, with what they offer when asked for", async () => {
    expect((await sandbox.agents.list()).map(({ id }) => id)).toContain("mock");
    const mock = await sandbox.agents.get("mock", { config: true });
    expect(mock).toMatchObject({ id: "mock", installed: true });
    expect(mock.models?.length).toBeGreaterThan(0);
    expect((await sandbox.agents.install("mock")).already_installed).toBe(true);
    expect((await sandbox.agents.logs("mock")).agent).toBe("mock");
  });

  it("that are unknown are refused with a problem", async () => {
    const error = await sandbox.agents.get("nobody").then(() => null, (reason: unknown) => reason);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({ status: 404, kind: "unknown_agent" });
  });
});

describe("files", () => {
  it("are written, listed, read, moved and deleted, relative to a session", async () => {
    const cwd = mkdtempSync(join(tmpdir(), "files-"));
    const { id: sessionId } = await sandbox.sessions.create({ cwd });
    const here = { sessionId };
    const name = "a b/ü & #1.bin";
    const content = new Uint8Array([0, 1, 2, 255]);
    expect((await sandbox.files.write(name, content, here)).bytesWritten).toBe(4);
    expect(await sandbox.files.read(name, here)).toEqual(content);
    expect((await sandbox.files.list("a b", here)).map((entry) => entry.name)).toEqual(["ü & #1.bin"]);
    expect(await (await sandbox.files.open(name, { ...here, range: "bytes=1-2" })).arrayBuffer()).toHaveProperty("byteLength", 2);
    await sandbox.files.mkdir("c", here);
    await sandbox.files.move(name, "c/moved.txt", here);
    expect((await sandbox.files.stat("c/moved.txt", here)).size).toBe(4);
    await sandbox.files.delete("c", { ...here, recursive: true });
    await expect(sandbox.files.stat("c", here)).rejects.toMatchObject({ status: 404 });
  });
});
