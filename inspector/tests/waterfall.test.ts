import type { SessionEvent } from "sandbox-agent-client";
import { expect, it } from "vitest";
import { Timeline } from "../src/state/timeline";
import { turnsOf } from "../src/state/waterfall";

let time = 0;

function live(source: SessionEvent["source"], message: object): SessionEvent {
  time += 100;
  return { sequence: null, time, source, message: { jsonrpc: "2.0", ...message } as SessionEvent["message"] };
}

function prompt(id: number, text: string): SessionEvent {
  return live("client", { id, method: "session/prompt", params: { sessionId: "s", prompt: [{ type: "text", text }], _meta: { "sandboxagent.dev": { turnId: text } } } });
}

function told(what: string, text: string, more: object = {}): SessionEvent {
  return live("server", { method: `_sandboxagent/session/turn_${what}`, params: { sessionId: "s", promptId: `p-${text}`, turnId: text, ...more } });
}

it("shows a prompt that waited from when it ran, and none that never did", () => {
  const tool = live("agent", { method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "tool_call", toolCallId: "t", title: "Read" } } });
  const events = [
    prompt(1, "first"),
    told("started", "first"),
    prompt(2, "second"),
    told("queued", "second", { position: 1 }),
    prompt(3, "taken back"),
    told("queued", "taken back", { position: 2 }),
    told("ended", "taken back", { hasRun: false }),
    live("agent", { id: 3, error: { code: -32800, message: "cancelled" } }),
    tool,
    told("ended", "first"),
    live("agent", { id: 1, result: { stopReason: "end_turn" } }),
  ].map((event, index) => ({ ...event, time: (index + 1) * 100 }));
  const started = { ...told("started", "second"), time: 2000 };
  const timeline = new Timeline();
  timeline.feed([...events, started]);
  const turns = turnsOf(timeline);
  expect(turns.map(({ prompt: text }) => text)).toEqual(["second", "first"]);
  expect(turns[0]?.began).toBe(2000);
  expect(turns[1]?.spans.map(({ name }) => name)).toEqual(["session/prompt", "Read"]);
});
