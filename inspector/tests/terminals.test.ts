import type { SessionEvent } from "sandbox-agent-client";
import { describe, expect, it } from "vitest";
import { plainText, spansOf } from "../src/parts/ansi";
import type { ToolItem } from "../src/state/items";
import { Timeline } from "../src/state/timeline";

function event(source: SessionEvent["source"], message: object, sequence: number | null = null): SessionEvent {
  return { sequence, time: 1, source, message: { jsonrpc: "2.0", ...message } as SessionEvent["message"] };
}

function tool(fields: object, kind = "tool_call_update"): SessionEvent {
  const update = { sessionUpdate: kind, toolCallId: "t", ...fields };
  return event("agent", { method: "session/update", params: { sessionId: "s", update } });
}

const begin = tool({ title: "ls", kind: "execute", status: "in_progress", content: [{ type: "terminal", terminalId: "x" }] }, "tool_call");

describe("what a terminal printed", () => {
  it("keeps colours as names and drops every other escape code", () => {
    const spans = spansOf("\u001b[1;31mbad\u001b[0m \u001b]0;title\u0007\u001b[2K\u001b[38;5;2mgood\u001b[39m\u001b(B end");
    expect(spans.filter(({ look }) => look !== "")).toEqual([
      { text: "bad", look: "t-bold t-red" },
      { text: "good", look: "t-green" },
    ]);
    expect(spans.map(({ text }) => text).join("")).toBe("bad good end");
  });

  it("shows rewritten lines once, and nothing of an escape code that is cut off", () => {
    expect(plainText("10 %\r50 %\r100 %\r\nnext\nabc\b\bd\u0000\u001b[3")).toBe("100 %\nnext\nad");
  });

  it("keeps exact colours and those of the 256 as they are", () => {
    expect(spansOf("\u001b[38;2;1;2;3mexact\u001b[48;5;200m \u001b[31mred")).toEqual([
      { text: "exact", look: "", colour: "rgb(1 2 3)" },
      { text: " ", look: "", colour: "rgb(1 2 3)", ground: "rgb(255 0 215)" },
      { text: "red", look: "t-red", ground: "rgb(255 0 215)" },
    ]);
  });
});

describe("the terminals of a tool call", () => {
  it("grow with each update that tells of them, and end with their exit", () => {
    const timeline = new Timeline();
    timeline.feed([begin]);
    const item = timeline.items[0] as ToolItem;
    expect(item.terminals).toEqual([{ id: "x", output: null, exit: null }]);
    const before = item.call;
    timeline.feed([tool({ _meta: { terminal_output: { terminal_id: "x", data: "one\n" } } })]);
    expect(item.call).not.toBe(before);
    timeline.feed([tool({ _meta: { terminal_output: { terminal_id: "x", data: "two\n" } } })]);
    timeline.feed([tool({ status: "failed", _meta: { terminal_exit: { terminal_id: "x", exit_code: null, signal: "SIGTERM" } } })]);
    expect(item.terminals).toEqual([{ id: "x", output: "one\ntwo\n", exit: { code: null, signal: "SIGTERM" } }]);
  });

  it("of the server show what it tells, and that nothing was printed", () => {
    const timeline = new Timeline();
    const told = (news: object) => event("server", { method: "_sandboxagent/terminal/output", params: { sessionId: "s", terminalId: "x", ...news } });
    timeline.feed([begin, told({ output: "one " }), told({ output: "two" })]);
    const item = timeline.items[0] as ToolItem;
    expect(item.terminals).toEqual([{ id: "x", output: "one two", exit: null }]);
    timeline.feed([told({ exitStatus: { exitCode: 2, signal: null } })]);
    expect(item.terminals).toEqual([{ id: "x", output: "one two", exit: { code: 2, signal: null } }]);
    const silent = new Timeline();
    silent.feed([told({ exitStatus: { exitCode: 0, signal: null } }), begin]);
    expect((silent.items[0] as ToolItem).terminals).toEqual([{ id: "x", output: "", exit: { code: 0, signal: null } }]);
  });

  it("of a client show what it answered when the agent asked for the output", () => {
    const timeline = new Timeline();
    timeline.feed([
      begin,
      event("agent", { id: 4, method: "terminal/output", params: { sessionId: "s", terminalId: "x" } }, 2),
      event("client", { id: 4, result: { output: "a b\n", truncated: false, exitStatus: { exitCode: 0, signal: null } } }, 3),
    ]);
    expect((timeline.items[0] as ToolItem).terminals).toEqual([{ id: "x", output: "a b\n", exit: { code: 0, signal: null } }]);
  });
});

describe("a question that another client answered", () => {
  it("is explained by the history", () => {
    const timeline = new Timeline();
    const options = [{ optionId: "y", name: "Yes", kind: "allow_once" }];
    const ask = { id: 7, method: "session/request_permission", params: { sessionId: "s", toolCall: { toolCallId: "t" }, options } };
    timeline.feed([event("agent", ask), event("server", { method: "$/cancel_request", params: { requestId: 7 } })]);
    expect(timeline.isPuzzled).toBe(true);
    const envelope = { jsonrpc: "2.0", id: 7, result: { outcome: { outcome: "selected", optionId: "y" } } };
    timeline.explain([{ sequence: 9, time: "2026-01-01T00:00:00Z", source: "client", envelope }]);
    expect((timeline.items.at(-1) as ToolItem).asks).toMatchObject([{ outcome: "Yes", by: "another client" }]);
    expect(timeline.isPuzzled).toBe(false);
  });
});
