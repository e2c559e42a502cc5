// One conversation with @agentclientprotocol/sdk over HTTP or WebSocket: node conversation.mjs http|ws URL TOKEN [AGENT]
import assert from "node:assert/strict";
import { WebSocket } from "ws";
import { client, methods } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const [kind, base, token, agentName = "mock"] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const texts = new Map();
let onText = () => {};
const permissions = [];

const app = client()
  .onRequest("session/request_permission", ({ params }) => {
    permissions.push(params.sessionId);
    const allow = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: allow.optionId } };
  })
  .onNotification("session/update", ({ params }) => {
    const { sessionId, update } = params;
    if (update.sessionUpdate === "agent_message_chunk") {
      texts.set(sessionId, (texts.get(sessionId) ?? "") + update.content.text);
      onText();
    }
  })
  .onNotification("*", () => {});

function open() {
  const stream =
    kind === "http"
      ? createHttpStream(`${base}/acp?agent=${agentName}`, { headers })
      : createWebSocketStream(`${base.replace("http", "ws")}/acp?agent=${agentName}`, { headers, WebSocket });
  return app.connect(stream);
}

async function initialize(agent) {
  const answer = await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  assert.equal(answer.protocolVersion, 1);
  assert.equal(answer.agentCapabilities.loadSession, true);
}

async function said(sessionId, text) {
  while (!(texts.get(sessionId) ?? "").includes(text)) {
    await new Promise((resolve) => (onText = resolve));
  }
}

const prompt = (agent, sessionId, text) =>
  agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
const step = (name) => console.log(`done: ${name}`);

assert.ok(methods);
const first = open();
await initialize(first.agent);
step("initialize");
const setting = { cwd: "/tmp", mcpServers: [] };
const made = await first.agent.request("session/new", setting);
const { sessionId } = made;
assert.equal(made.modes.currentModeId, "ask");
assert.equal(made.configOptions.find(({ category }) => category === "mode").currentValue, "ask");
step("session/new");
assert.equal((await prompt(first.agent, sessionId, "remember the official client")).stopReason, "end_turn");
await said(sessionId, "remember the official client");
step("prompt");
assert.equal((await prompt(first.agent, sessionId, "tool ls")).stopReason, "end_turn");
assert.deepEqual(permissions, [sessionId]);
step("permission");
const turn = prompt(first.agent, sessionId, "slow");
await said(sessionId, "tick 1");
await first.agent.notify("session/cancel", { sessionId });
assert.equal((await turn).stopReason, "cancelled");
step("cancel");
await first.agent.request("session/set_mode", { sessionId, modeId: "code" });
step("mode");
const changed = await first.agent.request("session/set_config_option", { sessionId, configId: "mode", value: "ask" });
assert.equal(changed.configOptions.find(({ id }) => id === "mode").currentValue, "ask");
step("config option");
const { sessions } = await first.agent.request("session/list", {});
assert.ok(sessions.some((session) => session.sessionId === sessionId));
step("session/list");
first.close();
await first.closed.catch(() => {});

texts.clear();
const second = open();
await initialize(second.agent);
const resumed = await second.agent.request("session/resume", { sessionId, ...setting });
assert.equal(resumed.modes.currentModeId, "ask");
assert.equal(texts.size, 0);
step("session/resume");
await second.agent.request("session/load", { sessionId, ...setting });
await said(sessionId, "remember the official client");
step("session/load");
assert.equal((await prompt(second.agent, sessionId, "tool pwd")).stopReason, "end_turn");
assert.deepEqual(permissions, [sessionId, sessionId]);
step("permission after load");
await second.agent.request("session/close", { sessionId });
step("session/close");
second.close();
await second.closed.catch(() => {});
step("close");
