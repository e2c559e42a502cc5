import type { SessionEvent } from "sandbox-agent-client";
import { describe, expect, it } from "vitest";
import { Rows } from "../src/state/rows";
import type { NoteItem, PlanItem, TextItem, ToolItem } from "../src/state/items";
import { Timeline } from "../src/state/timeline";

let sequence = 0;

function past(source: SessionEvent["source"], message: object): SessionEvent {
  sequence += 1;
  return { sequence, time: sequence, source, message: { jsonrpc: "2.0", ...message } as SessionEvent["message"] };
}

const live = (source: SessionEvent["source"], message: object): SessionEvent => ({ ...past(source, message), sequence: null });
const told = (sessionUpdate: string, fields: object = {}): object => ({ method: "session/update", params: { sessionId: "s", update: { sessionUpdate, ...fields } } });
const text = (words: string): object => ({ type: "text", text: words });
const prompt = (id: number, words: string): object => ({ id, method: "session/prompt", params: { sessionId: "s", prompt: [text(words)] } });
const begun = [told("user_message", { messageId: "u1", content: [text("hi")] }), told("state_update", { state: "running" })];

/** A turn of version 2 as the history has it, up to where the agent works. */
function working(): Timeline {
  const timeline = new Timeline();
  timeline.feed([past("client", prompt(1, "hi")), ...begun.map((one) => past("agent", one)), past("agent", { id: 1, result: { messageId: "u1" } })]);
  return timeline;
}

const words = (timeline: Timeline): string[] => timeline.items.map((item) => ("body" in item ? (item as TextItem).body.text : item.kind));

describe("a conversation of version 2", () => {
  it("goes on after the acknowledgement, until the agent says that it is idle", () => {
    const timeline = working();
    expect(timeline.isBusy).toBe(true);
    timeline.feed([past("agent", told("state_update", { state: "requires_action" }))]);
    expect(timeline.isBusy).toBe(true);
    timeline.feed([past("agent", told("state_update", { state: "idle", stopReason: "refusal" }))]);
    expect(timeline.isBusy).toBe(false);
    expect(timeline.items.at(-1)).toMatchObject({ kind: "note", text: "The agent refused" });
    expect(words(timeline).filter((one) => one === "hi")).toHaveLength(1);
  });

  it("tells an end that is an error", () => {
    const timeline = working();
    timeline.feed([past("server", told("state_update", { state: "idle", stopReason: "error", error: { code: -32000, message: "killed" } }))]);
    expect(timeline.items.at(-1)).toMatchObject({ tone: "error", detail: "killed" });
  });

  it("works without a prompt when the agent says so", () => {
    const timeline = new Timeline();
    timeline.feed([live("agent", told("state_update", { state: "running" }))]);
    expect([timeline.isBusy, timeline.isUnsure]).toEqual([true, true]);
    timeline.settle();
    expect(timeline.isBusy).toBe(false);
  });

  it("replaces whole messages, clears them, and gathers chunks by their message", () => {
    const timeline = working();
    const chunk = (messageId: string, more: string): SessionEvent => past("agent", told("agent_message_chunk", { messageId, content: text(more) }));
    timeline.feed([chunk("a", "one "), past("agent", told("agent_thought", { messageId: "t", content: [text("hm")] })), chunk("b", "two"), chunk("a", "more")]);
    expect(words(timeline)).toEqual(["hi", "one more", "hm", "two"]);
    timeline.feed([past("agent", told("agent_message", { messageId: "a", content: [text("instead")] })), past("agent", told("agent_message", { messageId: "b", content: null }))]);
    timeline.feed([past("agent", told("agent_message", { messageId: "a" })), past("agent", told("agent_message", { messageId: "never", content: null }))]);
    expect(words(timeline)).toEqual(["hi", "instead", "hm", ""]);
    timeline.feed([chunk("a", ", and on")]);
    expect(words(timeline)[1]).toBe("instead, and on");
  });

  it("draws a message anew that has changed above the end", () => {
    const timeline = working();
    const rows = new Rows();
    timeline.feed([past("agent", told("agent_message", { messageId: "a", content: [text("x\n\n".repeat(3_000))] })), past("agent", told("agent_message", { messageId: "b", content: [text("end")] }))]);
    const before = rows.of(timeline.items).length;
    timeline.feed([past("agent", told("agent_message", { messageId: "a", content: [text("short")] }))]);
    expect(rows.of(timeline.items).length).toBeLessThan(before);
  });

  it("clears what a tool call had, adds to its content, and knows that cancelled is over", () => {
    const timeline = working();
    const call = (fields: object): SessionEvent => past("agent", told("tool_call_update", { toolCallId: "t", ...fields }));
    const content = (more: string): object => ({ type: "content", content: text(more) });
    timeline.feed([call({ title: "Watch", kind: "execute", content: [content("a")] }), past("agent", told("tool_call_content_chunk", { toolCallId: "t", content: content("b") }))]);
    const item = timeline.items.at(-1) as ToolItem;
    expect(item.call.content).toHaveLength(2);
    timeline.feed([call({ title: null, content: null, status: "cancelled" })]);
    expect(item.call).toMatchObject({ title: "t", content: [], status: "cancelled" });
    expect(item.ended).not.toBeNull();
  });

  it("shows a patch of several files as diffs, and what has no text by its name", () => {
    const timeline = working();
    const section = (path: string): string => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n`;
    const changes = [{ operation: "modify", path: "/a" }, { operation: "add", path: "/b" }];
    const diff = { type: "diff", changes, patch: { format: "git_patch", text: section("a") + section("b") } };
    const moved = { type: "diff", changes: [{ operation: "move", oldPath: "/a", path: "/c" }] };
    timeline.feed([past("agent", told("tool_call_update", { toolCallId: "t", content: [diff, moved] }))]);
    const shown = (timeline.items.at(-1) as ToolItem).call.content;
    expect(shown).toEqual([
      { type: "diff", path: "/a", oldText: "same\nold", newText: "same\nnew" },
      { type: "diff", path: "/b", oldText: null, newText: "same\nnew" },
      { type: "content", content: { type: "text", text: "move /a /c" } },
    ]);
  });

  it("shows what a terminal of the agent's own prints in its tool call", () => {
    const timeline = working();
    const data = (more: string): string => btoa(more);
    timeline.feed([past("agent", told("terminal_update", { terminalId: "x", command: "serve" })), past("agent", told("tool_call_update", { toolCallId: "t", content: [{ type: "terminal", terminalId: "x" }] }))]);
    timeline.feed([past("agent", told("terminal_output_chunk", { terminalId: "x", data: data("one ") })), past("agent", told("terminal_output_chunk", { terminalId: "x", data: "no base64!" })), past("agent", told("terminal_output_chunk", { terminalId: "x", data: data("two") }))]);
    const item = timeline.items.at(-1) as ToolItem;
    expect(item.terminals).toMatchObject([{ output: "one two", exit: null }]);
    timeline.feed([past("agent", told("terminal_update", { terminalId: "x", output: { data: data("all") }, exitStatus: { exitCode: 3 } }))]);
    expect(item.terminals).toMatchObject([{ output: "all", exit: { code: 3 } }]);
  });

  it("asks for a permission with a title, about a tool call, a command or nothing that is named", () => {
    const options = [{ optionId: "y", name: "Yes", kind: "allow_once" }];
    const ask = (id: number, more: object): SessionEvent => live("agent", { id, method: "session/request_permission", params: { sessionId: "s", title: "May I?", options, ...more } });
    const timeline = working();
    timeline.feed([ask(1, { subject: { type: "tool_call", toolCall: { toolCallId: "t", title: "Edit" } } }), ask(2, { subject: { type: "command", command: "ls", cwd: "/" } }), ask(3, {}), ask(4, { subject: null })]);
    expect(timeline.openAsks()).toHaveLength(4);
    expect(timeline.items.filter(({ kind }) => kind === "tool")).toHaveLength(2); // the last three are about the same
    timeline.feed([live("client", { id: 1, result: { outcome: { outcome: "selected", optionId: "y" } } })]);
    expect((timeline.items.find(({ kind }) => kind === "tool") as ToolItem).asks[0]).toMatchObject({ outcome: "Yes", by: "you" });
  });

  it("keeps plans by their names, and takes one away", () => {
    const timeline = working();
    const steps = (planId: string, content: string): SessionEvent => past("agent", told("plan_update", { plan: { type: "items", planId, entries: [{ content, priority: "high", status: "pending" }] } }));
    timeline.feed([steps("main", "first"), steps("main", "second"), past("agent", told("plan_update", { plan: { type: "markdown", planId: "other", content: "# All" } }))]);
    const plans = (): string[] => timeline.items.flatMap((item) => (item.kind === "plan" ? (item as PlanItem).plan.entries.map(({ content }) => content) : []));
    expect(plans()).toEqual(["second", "# All"]);
    timeline.feed([past("agent", told("plan_removed", { planId: "other" }))]);
    expect(plans()).toEqual(["second"]);
  });

  it("shows notices, compactions and subagents, each once", () => {
    const timeline = working();
    timeline.feed([past("agent", told("notice", { severity: "error", title: "Full", description: "no space" })), past("agent", told("compaction_update", { compactionId: "c", status: "in_progress" })), past("agent", told("compaction_update", { compactionId: "c", status: "completed", summary: [text("short")] }))]);
    timeline.feed([past("agent", told("subagent_update", { sessionId: "child", title: "Helper" })), past("agent", told("subagent_update", { sessionId: "child", title: "Helper" }))]);
    const notes = timeline.items.filter((item): item is NoteItem => item.kind === "note").map(({ tone, text: said, detail }) => [tone, said, detail]);
    expect(notes).toEqual([["error", "Full", "no space"], ["info", "Compaction completed", "short"], ["info", "Subagent: Helper", null]]);
  });

  it("survives members of the wrong type", () => {
    const timeline = working();
    const odd = [null, 7, "x", [], {}];
    const kinds = ["user_message", "agent_message", "state_update", "tool_call_content_chunk", "tool_call_update", "plan_update", "plan_removed", "terminal_update", "terminal_output_chunk", "notice", "compaction_update", "subagent_update", "session_message", "_own"];
    for (const kind of kinds) for (const wrong of odd) expect(() => timeline.feed([live("agent", told(kind, { messageId: wrong, content: wrong, state: wrong, plan: wrong, planId: wrong, toolCallId: "t", terminalId: wrong, output: wrong, data: wrong, title: wrong, status: wrong, summary: wrong, background: wrong }))]), `${kind} ${JSON.stringify(wrong)}`).not.toThrow();
  });
});
