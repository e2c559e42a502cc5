import type { SessionEvent } from "sandbox-agent-client";
import { describe, expect, it } from "vitest";
import type { TextItem } from "../src/state/items";
import { canSteer } from "../src/state/steering";
import { Timeline } from "../src/state/timeline";

let time = 0;

function live(source: SessionEvent["source"], message: object): SessionEvent {
  time += 1;
  return { sequence: null, time, source, message: { jsonrpc: "2.0", ...message } as SessionEvent["message"] };
}

function asked(id: number, method: string, text: string): SessionEvent {
  return live("client", { id, method, params: { sessionId: "s", prompt: [{ type: "text", text }] } });
}

function update(fields: object): SessionEvent {
  return live("agent", { method: "session/update", params: { sessionId: "s", update: fields } });
}

function echo(text: string, messageId: string): SessionEvent {
  return update({ sessionUpdate: "user_message_chunk", messageId, content: { type: "text", text } });
}

function users(timeline: Timeline): [string, boolean][] {
  return timeline.items.filter((item): item is TextItem => item.kind === "user").map(({ body, isAdded }) => [body.text, isAdded === true]);
}

const said = update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "one" } });
const taken = live("agent", { id: 2, result: { outcome: "injected" } });

describe("a prompt for the turn that runs", () => {
  it("is shown once, whether the agent tells it after its answer, before it, or not at all", () => {
    for (const rest of [[taken, echo("more", "b")], [echo("more", "b"), taken], [taken]]) {
      const timeline = new Timeline();
      timeline.feed([asked(1, "session/prompt", "go"), echo("go", "a"), said, asked(2, "_session/steering", "more"), ...rest]);
      expect(users(timeline)).toEqual([["go", false], ["more", true]]);
      expect(timeline.isBusy).toBe(true);
    }
  });

  it("is not shown where the turn was over first, as it is sent as a prompt then", () => {
    const timeline = new Timeline();
    timeline.feed([asked(1, "session/prompt", "go"), asked(2, "_session/steering", "more"), live("agent", { id: 2, result: { outcome: "promptRequired" } })]);
    expect(users(timeline)).toEqual([["go", false]]);
  });

  it("of somebody else is shown as the agent tells it", () => {
    const timeline = new Timeline();
    timeline.feed([asked(1, "session/prompt", "go"), echo("go", "a"), said, echo("more", "b")]);
    expect(users(timeline)).toEqual([["go", false], ["more", false]]);
  });

  it("is offered only where the agent announces it", () => {
    const connection = (meta: unknown): never => ({ initialized: { _meta: meta } }) as never;
    expect([canSteer(connection({ steering: { supported: true } })), canSteer(connection({})), canSteer(connection(null)), canSteer(undefined)]).toEqual([true, false, false, false]);
  });
});

it("what was asked is shown once when the agent repeats it after a notice", () => {
  const timeline = new Timeline();
  timeline.feed([asked(1, "session/prompt", "go on"), update({ sessionUpdate: "notice", severity: "warning", title: "Model not known" }), echo("go", "a"), echo(" on", "a"), said]);
  expect(users(timeline)).toEqual([["go on", false]]);
});
