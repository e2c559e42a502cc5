import type { SessionEvent } from "sandbox-agent-client";
import { describe, expect, it } from "vitest";
import type { ToolItem } from "../src/state/items";
import { Timeline } from "../src/state/timeline";
import { ofOpenTurns } from "../src/state/turns";

let now = 0;

function live(source: SessionEvent["source"], message: object): SessionEvent {
  now += 1;
  return { sequence: null, time: now, source, message: { jsonrpc: "2.0", ...message } as SessionEvent["message"] };
}

function sent(id: number, text: string): SessionEvent {
  const _meta = { "sandboxagent.dev": { turnId: `t${id}` } };
  return live("client", { id, method: "session/prompt", params: { sessionId: "s", prompt: [{ type: "text", text }], _meta } });
}

function told(what: "queued" | "started" | "ended", id: number, more: object = {}): SessionEvent {
  const params = { sessionId: "s", promptId: `p${id}`, promptedBy: "us", requestId: id, turnId: `t${id}`, ...more };
  return live("server", { method: `_sandboxagent/session/turn_${what}`, params });
}

const done = { hasRun: true, result: { stopReason: "end_turn" } };

function said(text: string): SessionEvent {
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
  return live("agent", { method: "session/update", params: { sessionId: "s", update } });
}

function asked(id: number): SessionEvent {
  const options = [{ optionId: "y", name: "Yes", kind: "allow_once" }];
  return live("agent", { id, method: "session/request_permission", params: { sessionId: "s", toolCall: { toolCallId: "c" }, options } });
}

function words(timeline: Timeline): string[] {
  return timeline.items.map((item) => (item.kind === "user" || item.kind === "agent" ? `${item.kind} ${item.body.text}` : item.kind));
}

function waiting(timeline: Timeline): string[] {
  return timeline.turns.waiting.map(({ turnId, state }) => `${turnId} ${state}`);
}

const both = [
  ["a server that tells of turns", true],
  ["a server that does not", false],
] as const;

describe.each(both)("with %s", (_, tells) => {
  const tell = (...events: SessionEvent[]): SessionEvent[] => (tells ? events : []);

  it("a prompt that waits neither closes the open question nor splits the answer", () => {
    const timeline = new Timeline();
    timeline.feed([sent(1, "first"), ...tell(told("started", 1)), said("Hel"), asked(9)]);
    timeline.feed([sent(2, "second"), ...tell(told("queued", 2, { position: 1 })), said("lo")]);
    expect(timeline.openAsks()).toHaveLength(1);
    expect(waiting(timeline)).toEqual(["t2 queued"]);
    expect(words(timeline)).toEqual(["user first", "agent Hel", "tool", "agent lo"]);
    timeline.feed([live("client", { id: 9, result: { outcome: { outcome: "selected", optionId: "y" } } })]);
    timeline.feed([...tell(told("ended", 1, done)), live("agent", { id: 1, result: { stopReason: "end_turn" } }), ...tell(told("started", 2))]);
    expect(words(timeline).slice(4)).toEqual(["user second"]);
    expect([timeline.isBusy, waiting(timeline)]).toEqual([true, []]);
  });

  it("a cancelled turn says so once, and what waited is held for whoever wrote it", () => {
    const timeline = new Timeline();
    timeline.feed([sent(1, "first"), ...tell(told("started", 1)), sent(2, "second"), sent(3, "third")]);
    const cancelled = { result: { stopReason: "cancelled" } };
    for (const id of [2, 3]) timeline.feed([...tell(told("ended", id, { hasRun: false, ...cancelled })), live("agent", { id, ...cancelled })]);
    timeline.feed([...tell(told("ended", 1, { hasRun: true, ...cancelled })), live("agent", { id: 1, ...cancelled })]);
    expect(timeline.items.filter(({ kind }) => kind === "note")).toHaveLength(1);
    expect(waiting(timeline)).toEqual(["t2 held", "t3 held"]);
    expect(timeline.isBusy).toBe(false);
  });

  it("a prompt that was taken back is gone", () => {
    const timeline = new Timeline();
    timeline.feed([sent(1, "first"), ...tell(told("started", 1)), sent(2, "second"), ...tell(told("queued", 2, { position: 1 }))]);
    const [turn] = timeline.turns.waiting;
    if (turn) turn.isTakenBack = true;
    const error = { code: -32800, message: "cancelled while it waited in the session's queue" };
    timeline.feed([...tell(told("ended", 2, { hasRun: false, error })), live("agent", { id: 2, error })]);
    expect(waiting(timeline)).toEqual([]);
    expect(timeline.items.filter(({ kind }) => kind === "note")).toEqual([]);
  });
});

describe("turns of others", () => {
  it("run, wait and end as the server tells, though nobody here knows their words", () => {
    const timeline = new Timeline();
    timeline.feed([told("started", 1, { turnId: null }), said("Hello"), told("queued", 2, { turnId: null, position: 1 })]);
    expect([timeline.isBusy, timeline.isForeign, timeline.turns.waiting.length]).toEqual([true, true, 1]);
    timeline.feed([told("ended", 1, { turnId: null, ...done }), told("started", 2, { turnId: null })]);
    expect([timeline.isBusy, timeline.turns.waiting.length]).toEqual([true, 0]);
    timeline.feed([told("ended", 2, { turnId: null, ...done })]);
    expect(timeline.isBusy).toBe(false);
    timeline.feed([told("started", 2, { turnId: null })]); // a server that was restarted begins to count anew
    expect(timeline.isBusy).toBe(true);
  });

  it("that were quicker than ours put ours behind them", () => {
    const timeline = new Timeline();
    timeline.feed([sent(1, "ours"), told("started", 7, { turnId: "x", requestId: 1 })]);
    timeline.feed([told("queued", 1, { position: 1 })]);
    expect(waiting(timeline)).toEqual(["t1 queued"]);
    expect(words(timeline)).toEqual([]);
  });
});

describe("notices that were kept while the history was read", () => {
  it("are those of turns that are not over", () => {
    const kept = [told("started", 1), told("queued", 2), told("ended", 1, done), told("started", 2), told("queued", 1)];
    const open = ofOpenTurns(kept.map(({ message }) => message as unknown as { method: string; params: { promptId: string } }));
    expect(open.map(({ method, params }) => `${method.split("_").at(-1)} ${params.promptId}`)).toEqual(["queued p2", "started p2", "queued p1"]);
  });
});

describe("who settled a question", () => {
  it.each([
    [{ by: "client", clientInfo: { name: "phone" }, result: { outcome: { outcome: "selected", optionId: "y" } } }, "Yes", "another client (phone)"],
    [{ by: "policy", result: { outcome: { outcome: "selected", optionId: "y" } } }, "Yes", "the server’s policy"],
    [{ by: "timeout" }, "Not answered in time", null],
    [{ by: "agent" }, "Withdrawn by the agent", null],
  ])("is told by the server: %o", (settled, outcome, by) => {
    const timeline = new Timeline();
    timeline.feed([sent(1, "x"), asked(9), live("agent", { method: "$/cancel_request", params: { requestId: 9 } })]);
    timeline.feed([live("server", { method: "_sandboxagent/session/settled", params: { sessionId: "s", requestId: 9, method: "session/request_permission", ...settled } })]);
    const tool = timeline.items.find((item): item is ToolItem => item.kind === "tool");
    expect(tool?.asks).toMatchObject([{ outcome, by }]);
    expect(timeline.isPuzzled).toBe(false);
  });
});
