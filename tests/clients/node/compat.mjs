// The npm package sandbox-agent, unchanged: node compat.mjs sessions|flood|services URL TOKEN FOLDER
import assert from "node:assert/strict";
import { InMemorySessionPersistDriver, SandboxAgent } from "sandbox-agent";

const [part, baseUrl, token, folder] = process.argv.slice(2);
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

async function services() {
  const sandbox = await SandboxAgent.connect({ baseUrl, token });
  const { agents } = await sandbox.listAgents();
  assert.equal(agents.find(({ id }) => id === "mock").installed, true);
  assert.equal((await sandbox.getAgent("mock")).id, "mock");
  for (const { capabilities } of agents) {
    for (const name of ["permissions", "images", "sharedProcess"]) assert.equal(typeof capabilities[name], "boolean");
  }
  await assert.rejects(sandbox.getAgent("nobody"), { status: 404 });
  step("listAgents");
  assert.equal((await sandbox.installAgent("mock")).already_installed, true);
  step("installAgent");
  const path = `${folder}/deep/file.bin`;
  const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 251);
  await sandbox.mkdirFs({ path: `${folder}/deep` });
  assert.equal((await sandbox.writeFsFile({ path }, bytes)).bytesWritten, bytes.length);
  assert.deepEqual(await sandbox.readFsFile({ path }), bytes);
  assert.equal((await sandbox.statFs({ path })).size, bytes.length);
  await sandbox.moveFs({ from: path, to: `${folder}/moved.bin`, overwrite: false });
  const names = (await sandbox.listFsEntries({ path: folder })).map(({ name, entryType }) => [name, entryType]).sort();
  assert.deepEqual(names, [["deep", "directory"], ["moved.bin", "file"]]);
  await sandbox.deleteFsEntry({ path: `${folder}/deep`, recursive: true });
  assert.equal((await sandbox.listFsEntries({ path: folder })).length, 1);
  assert.ok((await sandbox.listFsEntries()).every(({ path }) => path.startsWith("/"))); // the server's directory
  step("files");
  await sandbox.createSession({ agent: "mock", cwd: folder });
  assert.equal((await sandbox.listAcpServers()).servers.filter(({ agent }) => agent === "mock").length > 0, true);
  await sandbox.dispose();
  step("dispose");
}

await { sessions, flood, services }[part]();
process.exit(0);
