// One conversation through the React hook of use-acp, over its WebSocket: node use-acp.mjs URL CWD
import assert from "node:assert/strict";
import { createElement } from "react";
import { create } from "react-test-renderer";
import { useAcpClient } from "use-acp";
import { WebSocket } from "ws";

const [url, cwd] = process.argv.slice(2);
globalThis.WebSocket = WebSocket; // what a browser has
console.log = () => {}; // it tells of every session
console.error = () => {}; // the renderer tells that there are newer ones
const step = (name) => process.stdout.write(`done: ${name}\n`);

let hook;
let heard = "";
const clientOptions = {
  onSessionNotification: ({ update }) => {
    if (update.sessionUpdate === "agent_message_chunk") heard += update.content.text;
  },
};

function Host() {
  hook = useAcpClient({ wsUrl: url, autoConnect: true, reconnectAttempts: 0, clientOptions });
  return null;
}

async function until(isSo) {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
}

async function opened() {
  hook = undefined;
  const root = create(createElement(Host));
  await until(() => hook?.agent);
  const hello = await hook.agent.initialize({ protocolVersion: 1, clientCapabilities: {} });
  assert.equal(hello.agentCapabilities.loadSession, true);
  return root;
}

const ended = async (turn) => (await turn).stopReason;
const say = (sessionId, text) => hook.agent.prompt({ sessionId, prompt: [{ type: "text", text }] });
const timeline = () => JSON.stringify(hook.notifications);

async function allow() {
  await until(() => hook.pendingPermission !== null);
  const { optionId } = hook.pendingPermission.options.find(({ kind }) => kind === "allow_once");
  hook.resolvePermission({ outcome: { outcome: "selected", optionId } });
}

const first = await opened();
step("initialize");
const { sessionId } = await hook.agent.newSession({ cwd, mcpServers: [] });
await until(() => hook.activeSessionId === sessionId);
step("session/new");
assert.equal(await ended(say(sessionId, "remember the hook")), "end_turn");
await until(() => heard === "remember the hook");
step("prompt");
let turn = say(sessionId, "tool ls");
await allow();
assert.equal(await ended(turn), "end_turn");
await until(() => timeline().includes("The tool ran."));
step("permission");
turn = say(sessionId, "slow 1000");
await until(() => heard.includes("tick 1"));
await hook.agent.cancel({ sessionId });
assert.equal(await ended(turn), "cancelled");
step("cancel");
assert.equal(await ended(say(sessionId, "recall")), "end_turn");
await until(() => heard.includes("1. remember the hook"));
step("prompt after cancel");
first.unmount();

heard = "";
const second = await opened();
await hook.agent.loadSession({ sessionId, cwd, mcpServers: [] });
await until(() => heard.includes("remember the hook"));
step("session/load");
turn = say(sessionId, "tool pwd");
await allow();
assert.equal(await ended(turn), "end_turn");
step("permission after load");
second.unmount();
process.exit(0);
