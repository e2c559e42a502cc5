// One conversation with OpenCode's own SDK, of the generation that is named: the same calls as against OpenCode's server.
import assert from "node:assert/strict";

const [generation, baseUrl, token] = process.argv.slice(2);
const isSecond = generation === "v2";
const { createOpencodeClient } = await import(isSecond ? "@opencode-ai/sdk/v2" : "@opencode-ai/sdk");
const headers = { Authorization: `Basic ${Buffer.from(`opencode:${token}`).toString("base64")}` };
const client = createOpencodeClient({ baseUrl, headers, throwOnError: true, directory: process.cwd() });

// The first generation names path, query and body; the second takes them together.
const session = (id) => (isSecond ? { sessionID: id } : { path: { id } });
const withBody = (id, body) => (isSecond ? { sessionID: id, ...body } : { path: { id }, body });
const bodyOf = (body) => (isSecond ? body : { body });
const text = (words) => ({ parts: [{ type: "text", text: words }] });

async function main() {
  const heard = [];
  const abort = new AbortController();
  const events = await (isSecond
    ? client.event.subscribe({}, { signal: abort.signal })
    : client.event.subscribe({ signal: abort.signal }));
  let wake = () => {};
  const reading = (async () => {
    for await (const event of events.stream) {
      heard.push(event);
      wake();
    }
  })().catch(() => {});
  const until = async (found) => {
    for (;;) {
      const event = heard.find(found);
      if (event) return event;
      await new Promise((resolve) => (wake = resolve));
    }
  };
  await until((event) => event.type === "server.connected");

  const { data: config } = await client.config.get();
  assert.equal(config.model, "mock/default");
  const { data: providers } = await client.config.providers();
  assert.ok(providers.providers.some((provider) => provider.id === "mock" && provider.models.default));
  const { data: agents } = await client.app.agents();
  assert.equal(agents[0].mode, "primary");
  assert.ok((await client.provider.list()).data.connected.includes("mock"));
  assert.ok(Array.isArray((await client.command.list()).data));
  assert.equal((await client.path.get()).data.directory, process.cwd());
  assert.equal((await client.project.current()).data.id, "global");
  assert.ok(Array.isArray((await client.file.list(isSecond ? { path: "." } : { query: { path: "." } })).data));
  const found = await client.find.files(isSecond ? { query: "flow" } : { query: { query: "flow" } });
  assert.ok(found.data.includes("flow.mjs"));

  const { data: made } = await client.session.create(bodyOf({ title: "From the SDK" }));
  assert.ok((await client.session.list()).data.some((one) => one.id === made.id));
  const { data: answer } = await client.session.prompt(withBody(made.id, text("thought hm; plan; good day")));
  assert.equal(answer.info.role, "assistant");
  assert.ok(answer.parts.some((part) => part.type === "reasoning" && part.text === "hm"));
  assert.equal((await client.session.todo(session(made.id))).data.length, 3);
  const { data: messages } = await client.session.messages(session(made.id));
  assert.deepEqual(messages.map((message) => message.info.role), ["user", "assistant"]);

  await client.session.promptAsync(withBody(made.id, text("edit notes.txt")));
  const asked = await until((event) => event.type === "permission.asked");
  if (isSecond) {
    assert.equal((await client.permission.list()).data.length, 1);
    await client.permission.reply({ requestID: asked.properties.id, reply: "once" });
  } else {
    const path = { id: made.id, permissionID: asked.properties.id };
    await client.postSessionIdPermissionsPermissionId({ path, body: { response: "once" } });
  }
  await until((event) => event.type === "permission.replied" && event.properties.reply === "once");
  await until((event) => event.type === "session.diff");
  assert.equal((await client.session.diff(session(made.id))).data.length, 1);

  if (isSecond) {
    await client.session.promptAsync(withBody(made.id, text("question")));
    const question = await until((event) => event.type === "question.asked");
    await client.question.reply({ requestID: question.properties.id, answers: [["Red"]] });
    await until((event) => event.type === "question.replied");
  }

  const running = client.session.prompt(withBody(made.id, text("hang")));
  const busy = (event) => event.type === "message.part.updated" && event.properties.part.text === "hang";
  await until(busy);
  await client.session.abort(session(made.id));
  assert.equal((await running).data.info.error.name, "MessageAbortedError");

  await client.session.update(withBody(made.id, { title: "Renamed" }));
  await until((event) => event.type === "session.updated" && event.properties.info.title === "Renamed");
  const { data: fork } = await client.session.fork(withBody(made.id, {}));
  assert.notEqual(fork.id, made.id);
  await client.session.delete(session(fork.id));
  await until((event) => event.type === "session.deleted");
  const terminal = (id, body) => (isSecond ? { ptyID: id, ...body } : { path: { id }, ...(body ? { body } : {}) });
  const { data: pty } = await client.pty.create(bodyOf({ command: "sh", args: ["-i"], title: "Shell" }));
  await until((event) => event.type === "pty.created" && event.properties.info.id === pty.id);
  assert.ok((await client.pty.list()).data.some((one) => one.id === pty.id && one.title === "Shell"));
  assert.equal((await client.pty.get(terminal(pty.id))).data.status, "running");
  const { data: changed } = await client.pty.update(terminal(pty.id, { title: "Mine", size: { rows: 33, cols: 99 } }));
  assert.equal(changed.title, "Mine");
  await client.pty.remove(terminal(pty.id));
  await until((event) => event.type === "pty.deleted" && event.properties.id === pty.id);
  const none = await client.pty.get(terminal(pty.id)).catch((error) => error);
  assert.equal((none.cause?.body ?? none)._tag, "PtyNotFoundError");
  await client.app.log(bodyOf({ service: "test", level: "info", message: "hello" }));
  const problem = await client.session.get(session("ses_missing")).catch((error) => error);
  assert.equal((problem.cause?.body ?? problem).name, "NotFoundError");
  abort.abort();
  await reading;
  console.log("done");
}

await main();
process.exit(0);
