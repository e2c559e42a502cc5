// The npm package sandbox-agent, unchanged: node peer.mjs sessions|flood URL TOKEN
import assert from "node:assert/strict";
import { InMemorySessionPersistDriver, SandboxAgent } from "sandbox-agent";

const [part, baseUrl, token] = process.argv.slice(2);
const step = (name) => console.log(`done: ${name}`);
const text = (value) => [{ type: "text", text: value }];
const updateOf = (event) => event.payload?.params?.update;

function watch(session) {
  const seen = { said: "", chunks: 0, last: 0, onChange: () => {} };
  session.onEvent((event) => {
    const update = updateOf(event);
    if (event.sender === "agent" && update?.sessionUpdate === "agent_message_chunk") {
      seen.chunks += 1;
      const number = Number.parseInt(update.content.text, 10);
      if (number === seen.last + 1) seen.last = number;
      if (seen.said.length < 1_000_000) seen.said += update.content.text;
      seen.onChange();
    }
  });
  seen.until = async (isSo) => {
    while (!isSo(seen)) await new Promise((resolve) => (seen.onChange = resolve));
  };
  return seen;
}

async function sessions() {
  const persist = new InMemorySessionPersistDriver();
  const first = await SandboxAgent.connect({ baseUrl, token, persist });
  const session = await first.createSession({ agent: "mock", cwd: "/tmp" });
  step("createSession");
  const seen = watch(session);
  assert.equal((await session.prompt(text("remember the peer"))).stopReason, "end_turn");
  await seen.until(({ said }) => said.includes("remember the peer"));
  step("prompt");
  const asked = [];
  session.onPermissionRequest((request) => {
    asked.push(request);
    void session.respondPermission(request.id, "once");
  });
  assert.equal((await session.prompt(text("tool ls"))).stopReason, "end_turn");
  assert.equal(asked.length, 1);
  step("permission");
  await assert.rejects(session.prompt(text("fail -32042")));
  assert.equal((await session.prompt(text("alive after an error"))).stopReason, "end_turn");
  step("error");
  await first.dispose();
  step("dispose");

  const second = await SandboxAgent.connect({ baseUrl, token, persist });
  const resumed = await second.resumeSession(session.id);
  const heard = watch(resumed);
  assert.equal((await resumed.prompt(text("and go on"))).stopReason, "end_turn");
  await heard.until(({ said }) => said.includes("and go on"));
  assert.match(heard.said, /remember the peer/); // the package sends what was said before with the first prompt
  step("resumeSession");
  await second.dispose();
}

async function flood() {
  const sandbox = await SandboxAgent.connect({ baseUrl, token });
  const session = await sandbox.createSession({ agent: "mock", cwd: "/tmp" });
  const seen = watch(session);
  assert.equal((await session.prompt(text("chunks 100000 10"))).stopReason, "end_turn");
  await seen.until(({ chunks }) => chunks >= 100000);
  assert.equal(seen.chunks, 100000);
  assert.equal(seen.last, 100000);
  step("100000 events in order");
  await sandbox.dispose();
}

await { sessions, flood }[part]();
process.exit(0);
