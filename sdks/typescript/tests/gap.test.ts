import { expect, it } from "vitest";
import { SandboxAgent, type Session } from "../src/index.js";
import { Script } from "./support/script.js";

const META = { "sandboxagent.dev": { agent: "mock" } };

function update(text: string): Record<string, unknown> {
  const content = { type: "text", text };
  return { jsonrpc: "2.0", method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "agent_message_chunk", content } } };
}

function textsOf(session: Session): string[] {
  const texts: string[] = [];
  session.onUpdate((one) => {
    if (one.sessionUpdate === "agent_message_chunk" && one.content.type === "text") texts.push(one.content.text);
  });
  return texts;
}

it("reads what a gap left out from the session's history, and gives nothing twice", async () => {
  const script = new Script({
    "session/new": () => ({ sessionId: "s", _meta: META }),
    "_sandboxagent/session/events": () => ({
      hasMore: false,
      events: ["1", "2", "3", "4", "5"].map((text, index) => ({
        sequence: index + 1,
        time: "2026-01-01T00:00:00.000Z",
        source: "agent",
        envelope: update(text),
      })),
    }),
  });
  const sandbox = new SandboxAgent({ url: "http://script.invalid", agent: "mock", fetch: script.fetch });
  const session = await sandbox.sessions.create({ cwd: "/tmp" });
  const texts = textsOf(session);
  script.send(update("1"));
  script.send(update("2"));
  script.send({ jsonrpc: "2.0", method: "_sandboxagent/stream/gap", params: { fromId: 4, toId: 4, sessions: ["s"] } });
  script.send(update("4"));
  script.send(update("5"));
  script.answeredUpTo = script.lastId;
  script.send(update("6"));
  await expect.poll(() => texts).toEqual(["1", "2", "3", "4", "5", "6"]);
  await sandbox.close();
});

it("learns where a resumed session's history ends without asking for what cannot be", async () => {
  const history = ["1", "2", "3"].map((text, index) => ({
    sequence: index + 1,
    time: "2026-01-01T00:00:00.000Z",
    source: "agent",
    envelope: update(text),
  }));
  const asked: unknown[] = [];
  const script = new Script({
    "session/resume": () => ({ _meta: META }),
    "_sandboxagent/session/get": () => ({ sessionId: "s", eventCount: 2 }),
    "_sandboxagent/session/events": ({ after }) => {
      asked.push(after);
      return { hasMore: false, events: history.slice(after as number, asked.length === 1 ? 2 : 3) };
    },
  });
  const sandbox = new SandboxAgent({ url: "http://script.invalid", agent: "mock", fetch: script.fetch });
  const texts = textsOf(await sandbox.sessions.resume("s"));
  await expect.poll(() => asked).toEqual([2]);
  script.send({ jsonrpc: "2.0", method: "_sandboxagent/stream/gap", params: { fromId: 1, toId: 1, sessions: ["s"] } });
  await expect.poll(() => texts).toEqual(["3"]);
  expect(asked).toEqual([2, 2]);
  await sandbox.close();
});

it("holds an answer back until the events that preceded it have come", async () => {
  const script = new Script({
    "session/new": () => ({ sessionId: "s", _meta: META }),
    "session/set_mode": () => {
      script.answeredUpTo = script.lastId + 2;
      return {};
    },
  });
  const sandbox = new SandboxAgent({ url: "http://script.invalid", agent: "mock", fetch: script.fetch });
  const session = await sandbox.sessions.create({ cwd: "/tmp" });
  const texts = textsOf(session);
  let seenAtAnswer = -1;
  const answered = session.setMode("code").then(() => {
    seenAtAnswer = texts.length;
  });
  await expect.poll(() => script.calls).toContain("session/set_mode");
  script.send(update("1"));
  script.send(update("2"));
  await answered;
  expect(seenAtAnswer).toBe(2);
  await sandbox.close();
});
