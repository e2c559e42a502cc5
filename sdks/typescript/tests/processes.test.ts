import { afterAll, beforeAll, expect, it } from "vitest";
import { ProblemError, SandboxAgent } from "../src/index.js";
import { Server } from "./support/server.js";

let server: Server;
let sandbox: SandboxAgent;

beforeAll(async () => {
  server = await Server.start();
  sandbox = await SandboxAgent.connect({ url: server.url });
});

afterAll(async () => {
  await sandbox.close();
  await server.stop();
});

const textOf = (data: Uint8Array) => new TextDecoder().decode(data);

it("runs a command to its end", async () => {
  const result = await sandbox.processes.run("sh", { args: ["-c", "echo $A; exit 3"], env: { A: "b" } });
  expect(result).toMatchObject({ exitCode: 3, stdout: "b\n", timedOut: false });
  await expect(sandbox.processes.run("no-such-program")).rejects.toThrow(ProblemError);
});

it("gives the output as it comes, and how it exited", async () => {
  const process = await sandbox.processes.start("sh", { args: ["-c", "echo one; sleep 0.1; echo two >&2; exit 4"], hold: true });
  const seen: string[] = [];
  for await (const { stream, data } of process) seen.push(`${stream} ${textOf(data)}`);
  expect(seen).toEqual(["stdout one\n", "stderr two\n"]);
  expect(process.info).toMatchObject({ status: "exited", exitCode: 4 });
  expect((await sandbox.processes.list({ owner: "user" })).map(({ id }) => id)).toContain(process.id);
  await process.delete();
});

it("writes to the input and stops", async () => {
  const process = await sandbox.processes.start("cat", { interactive: true });
  const given = "hello\n".repeat(20_000);
  const reading = (async () => {
    let text = "";
    for await (const { data } of process) text += textOf(data);
    return text;
  })();
  await process.write(given);
  await process.closeInput();
  expect(await reading).toBe(given);
  const sleeper = await sandbox.processes.start("sleep", { args: ["1000"] });
  expect(await sleeper.stop({ waitMs: 20_000 })).toMatchObject({ signal: "SIGTERM" });
  expect(await (await sandbox.processes.get(sleeper.id)).wait()).toMatchObject({ signal: "SIGTERM" });
  expect(await sandbox.processes.setConfig({ maxConcurrentProcesses: 63 })).toMatchObject({ maxConcurrentProcesses: 63 });
});
