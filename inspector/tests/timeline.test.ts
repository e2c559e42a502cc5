import type { SessionEvent } from "sandbox-agent-client";
import { describe, expect, it } from "vitest";
import { diffLines, sideBySide, withContext } from "../src/parts/diff";
import type { GrowingText } from "../src/state/text";
import type { TextItem, ToolItem } from "../src/state/items";
import { Timeline } from "../src/state/timeline";

let sequence = 0;

function past(source: SessionEvent["source"], message: object): SessionEvent {
  sequence += 1;
  return { sequence, time: sequence, source, message: { jsonrpc: "2.0", ...message } as SessionEvent["message"] };
}

function live(source: SessionEvent["source"], message: object): SessionEvent {
  return { ...past(source, message), sequence: null };
}

function update(fields: object): object {
  return { method: "session/update", params: { sessionId: "s", update: fields } };
}

function said(text: string, kind = "agent_message_chunk"): object {
  return update({ sessionUpdate: kind, content: { type: "text", text } });
}

function prompt(id: number, text: string): object {
  return { id, method: "session/prompt", params: { sessionId: "s", prompt: [{ type: "text", text }] } };
}

const ask = {
  method: "session/request_permission",
  params: { sessionId: "s", toolCall: { toolCallId: "t" }, options: [{ optionId: "y", name: "Yes", kind: "allow_once" }] },
};

describe("a timeline", () => {
  it("joins chunks to messages and keeps turns apart", () => {
    const timeline = new Timeline();
    timeline.feed([live("client", prompt(1, "hi")), live("agent", said("Hel")), live("agent", said("lo"))]);
    expect(timeline.isBusy).toBe(true);
    timeline.feed([live("agent", { id: 1, result: { stopReason: "end_turn" } }), live("client", prompt(2, "more"))]);
    expect(timeline.items.map(({ kind }) => kind)).toEqual(["user", "agent", "user"]);
    expect(timeline.items[1]).toMatchObject({ body: { text: "Hello" } });
  });

  it("shows why an agent failed and what to do, which its message may not say", () => {
    const timeline = new Timeline();
    const data = { details: "cannot be used as root", hint: "set IS_SANDBOX=1 in a sandbox" };
    timeline.feed([live("client", prompt(1, "hi")), live("agent", { id: 1, error: { code: -32603, message: "Internal error", data } })]);
    expect(timeline.items.at(-1)).toMatchObject({ detail: "Internal error\ncannot be used as root\nset IS_SANDBOX=1 in a sandbox" });
  });

  it("is busy with a turn of the history only until that turn's answer", () => {
    const timeline = new Timeline();
    timeline.feed([past("client", prompt(7, "hi"))]);
    expect([timeline.isBusy, timeline.isForeign]).toEqual([true, true]);
    timeline.feed([past("agent", { id: 7, result: { stopReason: "cancelled" } })]);
    expect(timeline.isBusy).toBe(false);
    expect(timeline.items.at(-1)).toMatchObject({ kind: "note", text: "Stopped" });
  });

  it("is busy with a turn of another client until the server tells that it ended", () => {
    const timeline = new Timeline();
    timeline.feed([past("client", prompt(7, "hi"))]);
    timeline.feed([live("server", { method: "_sandboxagent/session/turn_ended", params: { sessionId: "s", promptedBy: "c", result: { stopReason: "end_turn" } } })]);
    expect([timeline.isBusy, timeline.isForeign]).toEqual([false, false]);
  });

  it("keeps what a tool call said when an update says less", () => {
    const timeline = new Timeline();
    timeline.feed([
      live("agent", update({ sessionUpdate: "tool_call", toolCallId: "t", title: "Run", kind: "execute", status: "pending" })),
      live("agent", update({ sessionUpdate: "tool_call_update", toolCallId: "t", status: "completed", title: null })),
    ]);
    expect(timeline.items).toHaveLength(1);
    expect((timeline.items[0] as ToolItem).call).toMatchObject({ title: "Run", kind: "execute", status: "completed" });
  });

  it("shows a question once though it comes from the history and again for us, and says who answered", () => {
    const timeline = new Timeline();
    timeline.feed([past("client", prompt(1, "x")), past("agent", { id: 5, ...ask })]);
    timeline.feed([live("agent", { id: 5, ...ask })]);
    expect(timeline.openAsks()).toHaveLength(1);
    timeline.feed([live("client", { id: 5, result: { outcome: { outcome: "selected", optionId: "y" } } })]);
    expect((timeline.items.at(-1) as ToolItem).asks).toMatchObject([{ outcome: "Yes", by: "you" }]);
  });

  it("closes questions that were settled elsewhere or left behind by their turn", () => {
    const timeline = new Timeline();
    timeline.feed([live("client", prompt(1, "x")), live("agent", { id: 5, ...ask }), live("agent", { id: 6, ...ask })]);
    timeline.feed([live("agent", { method: "$/cancel_request", params: { requestId: 5 } })]);
    timeline.feed([live("agent", { id: 1, error: { code: -32010, message: "it exited", data: { stderr: { head: ["boom"], tail: [] } } } })]);
    const asks = timeline.items.flatMap((item) => (item.kind === "tool" ? item.asks : []));
    expect(asks.map(({ outcome }) => outcome)).toEqual(["Settled elsewhere or withdrawn", "Not answered"]);
    expect(timeline.items.at(-1)).toMatchObject({ tone: "error", detail: "it exited\nboom" });
  });

  it("settles long text outside code fences, so that only its end is drawn again", () => {
    const timeline = new Timeline();
    const fence = `\`\`\`\n${"code\n\n".repeat(600)}`;
    timeline.feed([live("agent", said(`${"para\n\n".repeat(500)}${fence}`))]);
    const text = (timeline.items[0] as TextItem).body.parts[0] as GrowingText;
    expect(text.settled.length).toBeGreaterThan(0);
    expect(text.tail.startsWith("```")).toBe(true);
    expect(text.settled.join("") + text.tail).toBe(`${"para\n\n".repeat(500)}${fence}`);
  });
});

describe("a diff", () => {
  it("finds what changed and keeps line numbers", () => {
    const lines = diffLines("a\nb\nc\n", "a\nB\nc\nd\n");
    expect(lines.map(({ kind, text }) => `${kind[0]}${text}`)).toEqual(["sa", "rb", "aB", "sc", "ad"]);
    expect(lines.at(-1)).toMatchObject({ old: null, new: 4 });
    expect(sideBySide(lines)[1]).toMatchObject([{ text: "b" }, { text: "B" }]);
  });

  it("leaves far lines out", () => {
    const before = Array.from({ length: 100 }, (_, index) => `line ${index}`).join("\n");
    const shown = withContext(diffLines(before, before.replace("line 50", "changed")));
    expect(shown.filter((line) => line === null)).toHaveLength(2);
    expect(shown).toHaveLength(10);
  });
});
