import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SessionEvent, SandboxAgent } from "../src/index.js";
import { Server } from "./support/server.js";

let server: Server;
let sandbox: SandboxAgent;
const asked: string[] = [];

beforeAll(async () => {
  server = await Server.start({ env: { SANDBOX_AGENT_MOCK_PROTOCOL: "2" } });
  sandbox = await SandboxAgent.connect({
    url: server.url,
    agent: "mock",
    onPermission: ({ toolCall }) => {
      asked.push(toolCall.title ?? "");
      return "allow_once";
    },
  });
});

afterAll(async () => {
  await sandbox.close();
  await server.stop();
});

const kindsOf = (events: readonly SessionEvent[]): string[] =>
  events.flatMap(({ message }) => {
    const update = (message as { params?: { update?: { sessionUpdate?: string } } }).params?.update;
    return update?.sessionUpdate === undefined ? [] : [update.sessionUpdate];
  });

describe("an agent of version 2", () => {
  it("is told in version 1: updates, permissions and the end of the turn", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const turn = session.prompt("edit a.txt; plan; kinds");
    const kinds = new Set<string>();
    for await (const update of turn) kinds.add(update.sessionUpdate);
    expect((await turn).stopReason).toBe("end_turn");
    expect([...kinds]).toEqual(expect.arrayContaining(["tool_call", "tool_call_update", "plan", "agent_message_chunk"]));
    expect([...kinds]).not.toContain("state_update");
    expect(asked).toEqual(["Edit /tmp/a.txt"]);
  });

  it("shows whether it works, and is cancelled", async () => {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const turn = session.prompt("hang");
    await expect.poll(async () => (await sandbox.sessions.get(session.id)).isBusy, { timeout: 20_000 }).toBe(true);
    await session.cancel();
    expect((await turn).stopReason).toBe("cancelled");
    expect((await sandbox.sessions.get(session.id)).isBusy).toBe(false);
  });

  it("is heard as it speaks by a client that asks for it, live as in the history", async () => {
    const reader = await SandboxAgent.connect({ url: server.url, agent: "mock", asSpoken: true });
    const session = await reader.sessions.create({ cwd: "/tmp" });
    const seen: SessionEvent[] = [];
    const follower = session.follow((events) => void seen.push(...events));
    await follower.ready;
    expect((await session.prompt("hello")).stopReason).toBe("end_turn");
    await expect.poll(() => kindsOf(seen).filter((kind) => kind === "state_update").length, { timeout: 20_000 }).toBe(2);
    const live = kindsOf(seen.filter(({ sequence }) => sequence === null));
    const { events } = await session.events({ limit: 500 });
    const past = events.map(({ envelope }) => (envelope["params"] as { update?: { sessionUpdate?: string } } | undefined)?.update?.sessionUpdate).filter(Boolean);
    expect(past.slice(-live.length)).toEqual(live);
    follower.close();
    await reader.close();
  });
});
