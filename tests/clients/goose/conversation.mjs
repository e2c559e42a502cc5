// One conversation with @aaif/goose-sdk over HTTP: node conversation.mjs URL. It can send no token.
import assert from "node:assert/strict";
import { GooseClient, createHttpStream } from "@aaif/goose-sdk";

const [base] = process.argv.slice(2);
const texts = new Map();
let onText = () => {};
const permissions = [];
const handlers = {
  async requestPermission({ sessionId, options }) {
    permissions.push(sessionId);
    const allow = options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: allow.optionId } };
  },
  async sessionUpdate({ sessionId, update }) {
    if (update.sessionUpdate === "agent_message_chunk") {
      texts.set(sessionId, (texts.get(sessionId) ?? "") + update.content.text);
      onText();
    }
  },
  async extNotification() {},
};

function open() {
  const stream = createHttpStream(base);
  const { readable, writable: pipe } = new TransformStream();
  const done = readable.pipeTo(stream.writable).catch(() => {});
  const client = new GooseClient(() => handlers, { readable: stream.readable, writable: pipe });
  return { client, close: async () => (await pipe.close().catch(() => {}), await done) };
}

async function initialize(client) {
  const answer = await client.initialize({ protocolVersion: 1, clientCapabilities: {} });
  assert.equal(answer.agentCapabilities.loadSession, true);
}

async function said(sessionId, text) {
  while (!(texts.get(sessionId) ?? "").includes(text)) {
    await new Promise((resolve) => (onText = resolve));
  }
}

const prompt = (client, sessionId, text) => client.prompt({ sessionId, prompt: [{ type: "text", text }] });
const step = (name) => console.log(`done: ${name}`);

const first = open();
await initialize(first.client);
step("initialize");
const { sessionId } = await first.client.newSession({ cwd: "/tmp", mcpServers: [] });
step("session/new");
assert.equal((await prompt(first.client, sessionId, "remember the goose")).stopReason, "end_turn");
await said(sessionId, "remember the goose");
step("prompt");
assert.equal((await prompt(first.client, sessionId, "tool ls")).stopReason, "end_turn");
assert.deepEqual(permissions, [sessionId]);
step("permission");
const turn = prompt(first.client, sessionId, "slow");
await said(sessionId, "tick 1");
await first.client.cancel({ sessionId });
assert.equal((await turn).stopReason, "cancelled");
step("cancel");
await first.close();

texts.clear();
const second = open();
await initialize(second.client);
await second.client.loadSession({ sessionId, cwd: "/tmp", mcpServers: [] });
await said(sessionId, "remember the goose");
step("session/load");
assert.equal((await prompt(second.client, sessionId, "tool pwd")).stopReason, "end_turn");
assert.deepEqual(permissions, [sessionId, sessionId]);
step("permission after load");
await second.close();
step("close");
process.exit(0);
