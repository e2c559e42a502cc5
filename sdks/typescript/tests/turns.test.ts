import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type QuestionRequest, RequestError, SandboxAgent } from "../src/index.js";
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

describe("a turn", () => {
  it("streams its updates in order and ends with the stop reason", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const turn = session.prompt("chunks 500 20");
    const numbers: number[] = [];
    for await (const update of turn) {
      if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
        numbers.push(Number.parseInt(update.content.text, 10));
      }
    }
    expect(numbers).toEqual(Array.from({ length: 500 }, (_, index) => index + 1));
    expect((await turn).stopReason).toBe("end_turn");
  });

  it("has given every update before its answer", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    let seen = 0;
    session.onUpdate((update) => {
      if (update.sessionUpdate === "agent_message_chunk") seen += 1;
    });
    await session.prompt("chunks 2000 10");
    expect(seen).toBe(2000);
  });

  it("ends with cancelled when it is cancelled right after it was sent", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const turn = session.prompt("hang");
    await session.cancel();
    expect((await turn).stopReason).toBe("cancelled");
  });

  it("is cancelled by its signal", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const abort = new AbortController();
    const turn = session.prompt("slow 1000", { signal: abort.signal });
    for await (const _ of turn) abort.abort();
    expect((await turn).stopReason).toBe("cancelled");
  });

  it("runs once when the same turnId is sent twice", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const [first, second] = await Promise.all([
      session.prompt("once", { turnId: "t-1" }),
      session.prompt("once", { turnId: "t-1" }),
    ]);
    expect(first).toEqual(second);
    expect(await session.prompt("recall").text()).toBe("1. once");
  });

  it("fails with the agent's error", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const error = await session.prompt("fail -32050").then(() => null, (reason: unknown) => reason);
    expect(error).toBeInstanceOf(RequestError);
    expect((error as RequestError).code).toBe(-32050);
  });

  it("passes updates on that the schema does not know", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const kinds: string[] = [];
    session.onUpdate((update) => kinds.push(update.sessionUpdate));
    await session.prompt("plan; usage; thought deep");
    expect(kinds).toEqual(expect.arrayContaining(["plan", "usage_update", "agent_thought_chunk"]));
  });
});

describe("a turn at a session that others use as well", () => {
  it("has only its own text when it waited behind another client's", async () => {
    const other = await SandboxAgent.connect({ url: server.url, agent: "mock" });
    try {
      const session = await sandbox.sessions.create({ cwd: "/tmp" });
      const same = await other.sessions.resume(session.id);
      const first = session.prompt("slow 8");
      let second: Promise<string> | null = null;
      let text = "";
      for await (const update of first) {
        if (update.sessionUpdate !== "agent_message_chunk" || update.content.type !== "text") continue;
        text += update.content.text;
        second ??= same.prompt("mine").text();
      }
      expect(text).toBe("tick 1 tick 2 tick 3 tick 4 tick 5 tick 6 tick 7 tick 8 ");
      expect(await second).toBe("mine");
    } finally {
      await other.close();
    }
  });

  it("is taken back by its signal while it waits, and the turn before it goes on", async () => {
    const other = await SandboxAgent.connect({ url: server.url, agent: "mock" });
    try {
      const session = await sandbox.sessions.create({ cwd: "/tmp" });
      const same = await other.sessions.resume(session.id);
      const abort = new AbortController();
      const first = session.prompt("slow 10");
      let second: Promise<string> | null = null;
      let ticks = 0;
      for await (const update of first) {
        if (update.sessionUpdate !== "agent_message_chunk") continue;
        second ??= same.prompt("never", { signal: abort.signal }).then(({ stopReason }) => stopReason);
        if (++ticks === 5) abort.abort();
      }
      expect(ticks).toBe(10);
      expect((await first).stopReason).toBe("end_turn");
      expect(await second).toBe("cancelled");
    } finally {
      await other.close();
    }
  });
});

describe("what an agent asks without a handler", () => {
  it("is a permission that is rejected, so that the turn goes on", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    expect(await session.prompt("tool ls").text()).toBe("The permission was rejected.");
  });

  it("is a question that is rejected", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    expect(await session.prompt("question").text()).toContain('"outcome":"rejected"');
  });
});

describe("what an agent asks", () => {
  it("is answered by the session's permission handler", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const asked: string[] = [];
    session.handlers.onPermission = (request) => {
      asked.push(request.toolCall.title ?? "");
      return "allow_once";
    };
    expect(await session.prompt("tool ls").text()).toBe("The tool ran.");
    expect(asked).toEqual(["Run ls"]);
  });

  it("is refused by a handler that rejects", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    session.handlers.onPermission = () => "reject_once";
    expect(await session.prompt("tool ls").text()).toBe("The permission was rejected.");
  });

  it("is a question with options", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    let question: QuestionRequest | null = null;
    session.handlers.onQuestion = (request) => {
      question = request;
      return ["green"];
    };
    expect(await session.prompt("question").text()).toContain('"answers":[["green"]]');
    expect(question).toMatchObject({ prompt: "Which colour?", multiSelect: false });
  });

  it("is withdrawn when another client answers first", async () => {
    const other = await SandboxAgent.connect({ url: server.url, agent: "mock" });
    try {
      const session = await sandbox.sessions.create({ cwd: "/tmp" });
      const aborted = new Promise<void>((resolve) => {
        session.handlers.onPermission = async (_, { signal }) => {
          await new Promise<void>((done) => signal.addEventListener("abort", () => done(), { once: true }));
          resolve();
          return undefined;
        };
      });
      const turn = session.prompt("tool ls");
      const same = await other.sessions.resume(session.id);
      same.handlers.onPermission = () => "allow_always";
      await other.sessions.resume(session.id);
      await aborted;
      expect((await turn).stopReason).toBe("end_turn");
    } finally {
      await other.close();
    }
  });
});
