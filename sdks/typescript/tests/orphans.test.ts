import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";
import { beforeAll, expect, it } from "vitest";
import { BIN, environment, newHome } from "./support/server.js";

const PROGRAM = `
import { SandboxAgent } from "./sdk.mjs";
const sandbox = await SandboxAgent.start({ agent: "mock" });
const session = await sandbox.sessions.create({ cwd: "/tmp" });
for await (const update of session.prompt("say running; hang")) console.log("running", sandbox.server.pid);
`;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sandbox-agent-sdk-"));
  const entry = join(import.meta.dirname, "../src/index.ts");
  const output = { entryFileNames: "sdk.mjs" };
  await build({
    logLevel: "error",
    configFile: false,
    ssr: { noExternal: true },
    build: { ssr: entry, outDir: folder, rollupOptions: { output } },
  });
  writeFileSync(join(folder, "program.mjs"), PROGRAM);
});

it.each(["SIGTERM", "SIGHUP", "SIGKILL"] as const)(
  "leaves no server and no agent behind when the program ends by %s",
  async (signal) => {
    const home = newHome();
    const env = { ...process.env, ...environment(home), SANDBOX_AGENT_BIN: BIN };
    const program = spawn(process.execPath, [join(folder, "program.mjs")], { env, stdio: ["ignore", "pipe", "inherit"] });
    await line(program, /^running \d+/m);
    expect(processesOf(home).length).toBeGreaterThanOrEqual(3);
    program.kill(signal);
    await expect.poll(() => processesOf(home), { timeout: 30_000, interval: 50 }).toEqual([]);
  },
  60_000,
);

async function line(program: ChildProcess, wanted: RegExp): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let out = "";
    program.once("exit", (code) => reject(new Error(`it ended with ${code}: ${out}`)));
    program.stdout?.on("data", (chunk: Buffer) => {
      out += chunk.toString();
      if (wanted.test(out)) resolve();
    });
  });
}

/** The live processes that have this home, by what the kernel says of their environment. */
function processesOf(home: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`HOME=${home}`);
    } catch {
      return false;
    }
  });
}
