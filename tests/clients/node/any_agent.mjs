// A whole conversation with whichever agent, in either version: node any_agent.mjs http|ws URL AGENT 1|2 CWD FILE WORD
// The agent's model does what it is told: `RUN:` runs a command, `SLOW:` speaks slowly, anything else is echoed.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { WebSocket } from "ws";
import * as one from "@agentclientprotocol/sdk";
import * as two from "@agentclientprotocol/sdk/experimental/v2";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const [kind, base, name, wanted, cwd, file, word] = process.argv.slice(2);
const version = Number(wanted);
let heard = "";
let states = [];
let permissions = 0;
const waiting = new Set();

const app = (version === 1 ? one : two)
  .client()
  .onRequest("session/request_permission", ({ params }) => {
    permissions += 1;
    const allow = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: allow.optionId } };
  })
  .onNotification("session/update", ({ params: { update } }) => {
    const { sessionUpdate: said, content } = update;
    if (said === "agent_message_chunk") heard += content.text ?? "";
    if (said === "agent_message") heard += (content ?? []).map(({ text }) => text ?? "").join("");
    if (said === "state_update") states.push(update);
    for (const look of waiting) look();
  })
  .onNotification("*", () => {});

function open() {
  const address = `${base}/acp?agent=${name}`;
  return app.connect(kind === "http" ? createHttpStream(address) : createWebSocketStream(address.replace("http", "ws"), { WebSocket }));
}

/** Several may wait at the same time. */
async function until(holds) {
  await new Promise((resolve) => {
    const look = () => {
      if (!holds()) return;
      waiting.delete(look);
      resolve();
    };
    waiting.add(look);
    look();
  });
}

async function initialize(agent) {
  const info = { name: "any-agent", version: "1" };
  const params = version === 1 ? { clientCapabilities: {}, clientInfo: info } : { capabilities: {}, info };
  assert.equal((await agent.request("initialize", { protocolVersion: version, ...params })).protocolVersion, version);
}

/** Gives the promise of the stop reason. */
async function begin(agent, sessionId, text) {
  heard = "";
  states = [];
  const answer = agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  if (version === 1) return { reason: answer.then(({ stopReason }) => stopReason) };
  assert.ok((await answer).messageId);
  const ended = () => states.slice(states.findIndex(({ state }) => state === "running")).find(({ state }) => state === "idle");
  await until(() => states.some(({ state }) => state === "running"));
  return { reason: until(() => ended() !== undefined).then(() => ended().stopReason ?? "end_turn") };
}

const run = async (...given) => await (await begin(...given)).reason;
const step = (done) => console.log(`done: ${done}`);
const setting = { cwd, mcpServers: [] };
const idOf = (option) => option.configId ?? option.id;
const modeOf = ({ configOptions }) => (configOptions ?? []).find(({ category }) => category === "mode");
const choicesOf = (option) => option.options.flatMap((choice) => choice.options ?? [choice]).map(({ value }) => value);

const first = open();
await initialize(first.agent);
step("initialize");
const made = await first.agent.request("session/new", setting);
const { sessionId } = made;
step("session/new");
assert.equal(await run(first.agent, sessionId, `RUN:touch ${file}`), "end_turn");
assert.ok(existsSync(file));
assert.ok(permissions > 0);
step("permission");
const slow = await begin(first.agent, sessionId, `${word} SLOW:40`);
await until(() => heard.includes("slow0"));
await first.agent.notify("session/cancel", { sessionId });
assert.equal(await slow.reason, "cancelled");
step("cancel");
const mode = modeOf(made);
const value = choicesOf(mode).find((choice) => choice !== mode.currentValue);
const choice = { sessionId, configId: idOf(mode), value };
const changed = await first.agent.request("session/set_config_option", version === 1 ? choice : { ...choice, type: "id" });
assert.equal(modeOf(changed).currentValue, value);
step("config option");
if (version === 1) {
  await first.agent.request("session/set_mode", { sessionId, modeId: mode.currentValue });
  step("mode");
}
assert.ok((await first.agent.request("session/list", {})).sessions.some((session) => session.sessionId === sessionId));
step("session/list");
first.close();
await first.closed.catch(() => {});

const second = open();
await initialize(second.agent);
heard = "";
await second.agent.request("session/resume", { sessionId, ...setting });
assert.equal(heard, "");
step("resume");
if (version === 1) await second.agent.request("session/load", { sessionId, ...setting });
else await second.agent.request("session/resume", { sessionId, ...setting, replayFrom: { type: "start" } });
await until(() => heard.includes("slow0"));
step("replay");
assert.equal(await run(second.agent, sessionId, `again ${word}`), "end_turn");
await until(() => heard.includes(`ECHO[again ${word}]`));
step("prompt");
await second.agent.request("session/close", { sessionId });
step("session/close");
second.close();
await second.closed.catch(() => {});
process.exit(0);
