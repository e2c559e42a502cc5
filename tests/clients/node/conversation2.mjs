// One conversation in ACP version 2 with @agentclientprotocol/sdk over HTTP, WebSocket or the agent's own stdio:
// node conversation2.mjs http|ws URL TOKEN AGENT, or node conversation2.mjs stdio COMMAND…
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { WebSocket } from "ws";
import { client, ndJsonStream } from "@agentclientprotocol/sdk/experimental/v2";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const [kind, ...rest] = process.argv.slice(2);
const permissions = [];
let updates = [];
let onUpdate = () => {};

const app = client()
  .onRequest("session/request_permission", ({ params }) => {
    assert.equal(typeof params.title, "string");
    assert.equal(params.subject.type, "tool_call");
    permissions.push(params.sessionId);
    const allow = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: allow.optionId } };
  })
  .onNotification("session/update", ({ params }) => {
    updates.push(params);
    onUpdate();
  })
  .onNotification("*", () => {});

function open() {
  if (kind === "stdio") {
    const child = spawn(rest[0], rest.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
    return { ...pick(app.connect(stream)), stop: () => child.kill() };
  }
  const [base, token, agent] = rest;
  const headers = { Authorization: `Bearer ${token}` };
  const stream =
    kind === "http"
      ? createHttpStream(`${base}/acp?agent=${agent}`, { headers })
      : createWebSocketStream(`${base.replace("http", "ws")}/acp?agent=${agent}`, { headers, WebSocket });
  return { ...pick(app.connect(stream)), stop: () => {} };
}

const pick = (connection) => ({
  agent: connection.agent,
  close: async () => {
    connection.close();
    await connection.closed.catch(() => {});
  },
});

async function initialize(agent) {
  const info = { name: "conversation2", version: "1" };
  const answer = await agent.request("initialize", { protocolVersion: 2, info, capabilities: {} });
  assert.equal(answer.protocolVersion, 2);
  assert.ok(answer.info.name);
  assert.ok(answer.capabilities.session);
}

const of = (sessionId, type) =>
  updates.filter((one) => one.sessionId === sessionId && one.update.sessionUpdate === type).map((one) => one.update);

async function until(holds) {
  while (!holds()) {
    await new Promise((resolve) => (onUpdate = resolve));
  }
}

const text = (sessionId) =>
  of(sessionId, "agent_message_chunk")
    .map((update) => update.content.text)
    .join("");
// States since work began: an idle before that is a snapshot of an earlier resume.
function idle(sessionId) {
  const states = of(sessionId, "state_update");
  const begun = states.findIndex((update) => update.state === "running");
  return begun < 0 ? [] : states.slice(begun).filter((update) => update.state === "idle");
}

async function begin(agent, sessionId, words) {
  updates = [];
  const answer = await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: words }] });
  await until(() => of(sessionId, "user_message").some((update) => update.messageId === answer.messageId));
  await until(() => of(sessionId, "state_update").some((update) => update.state === "running"));
}

async function ended(sessionId) {
  await until(() => idle(sessionId).length > 0);
  return idle(sessionId)[0].stopReason;
}

const step = (name) => console.log(`done: ${name}`);
const setting = { cwd: "/tmp", mcpServers: [] };

const first = open();
await initialize(first.agent);
step("initialize");
const answer = await first.agent.request("session/new", setting);
const { sessionId } = answer;
const mode = answer.configOptions.find((option) => option.category === "mode");
assert.equal(mode.currentValue, "ask");
step("session/new");
await begin(first.agent, sessionId, "remember the second version");
assert.equal(await ended(sessionId), "end_turn");
assert.equal(text(sessionId), "remember the second version");
assert.equal(new Set(of(sessionId, "agent_message_chunk").map((update) => update.messageId)).size, 1);
step("prompt");
await begin(first.agent, sessionId, "tool ls; edit a.txt; plan");
assert.equal(await ended(sessionId), "end_turn");
assert.deepEqual(permissions, [sessionId, sessionId]);
assert.ok(of(sessionId, "state_update").some((update) => update.state === "requires_action"));
const diffs = of(sessionId, "tool_call_update").flatMap((update) => update.content ?? []).filter((c) => c.type === "diff");
assert.equal(diffs[0].changes[0].path, "/tmp/a.txt");
assert.ok(diffs[0].patch.text.includes("+hello, world"));
assert.equal(of(sessionId, "plan_update").at(-1).plan.entries.length, 3);
step("permission");
await begin(first.agent, sessionId, "slow");
await until(() => text(sessionId).includes("tick 1"));
await first.agent.notify("session/cancel", { sessionId });
assert.equal(await ended(sessionId), "cancelled");
step("cancel");
updates = [];
const change = { sessionId, configId: mode.configId, type: "id", value: "code" };
const changed = await first.agent.request("session/set_config_option", change);
assert.equal(changed.configOptions.find((option) => option.category === "mode").currentValue, "code");
await until(() => of(sessionId, "config_option_update").length > 0);
step("config option");
const { sessions } = await first.agent.request("session/list", {});
assert.ok(sessions.some((session) => session.sessionId === sessionId));
step("session/list");
await first.close();
first.stop();

updates = [];
const second = open();
await initialize(second.agent);
const resumed = await second.agent.request("session/resume", { sessionId, ...setting });
assert.equal(resumed.configOptions.find((option) => option.category === "mode").currentValue, "code");
assert.equal(of(sessionId, "user_message").length, 0);
step("resume");
updates = [];
await second.agent.request("session/resume", { sessionId, ...setting, replayFrom: { type: "start" } });
await until(() => text(sessionId).includes("remember the second version"));
const said = () => [...of(sessionId, "user_message"), ...of(sessionId, "user_message_chunk")]; // an agent's choice
await until(() => said().length >= 2);
const replayed = said().map((update) => [update.content].flat()[0].text);
assert.deepEqual(replayed.slice(0, 2), ["remember the second version", "tool ls; edit a.txt; plan"]);
step("resume with replay");
await begin(second.agent, sessionId, "tool pwd");
assert.equal(await ended(sessionId), "end_turn");
assert.equal(permissions.length, 3);
step("permission after resume");
await second.agent.request("session/close", { sessionId });
step("session/close");
await second.close();
second.stop();
step("close");
process.exit(0);
