// Every call of the npm package sandbox-agent about processes, MCP servers and skills; prints the shapes of the answers:
// node processes.mjs URL TOKEN FOLDER
import { SandboxAgent } from "sandbox-agent";
import WebSocket from "ws";

const [baseUrl, token, folder] = process.argv.slice(2);
const sandbox = await SandboxAgent.connect({ baseUrl, ...(token ? { token } : {}) });
const shapes = {};

function shapeOf(value) {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return value.length > 0 ? [shapeOf(value[0])] : [];
  if (typeof value !== "object") return typeof value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, shapeOf(value[key])]));
}

async function note(name, work) {
  try {
    const value = await work();
    shapes[name] = shapeOf(value);
    return value;
  } catch (error) {
    shapes[name] = { failed: error.status ?? error.name };
    return undefined;
  }
}

async function until(isSo, what) {
  for (let tries = 0; tries < 400; tries += 1) {
    if (await isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`timed out: ${what}`);
}

const limits = await note("getProcessConfig", () => sandbox.getProcessConfig());
await note("setProcessConfig", () => sandbox.setProcessConfig({ ...limits, maxConcurrentProcesses: 32 }));
await note("runProcess", () => sandbox.runProcess({ command: "sh", args: ["-c", "echo out; echo err >&2; exit 3"] }));
await note("runProcess, too slow", () => sandbox.runProcess({ command: "sleep", args: ["10"], timeoutMs: 200 }));
await note("runProcess, empty command", () => sandbox.runProcess({ command: "" }));
const plain = await note("createProcess", () => sandbox.createProcess({ command: "cat", interactive: true, cwd: folder }));
await note("listProcesses", () => sandbox.listProcesses());
await note("listProcesses, of users", () => sandbox.listProcesses({ owner: "user" }));
await note("getProcess", () => sandbox.getProcess(plain.id));
await note("getProcess, unknown", () => sandbox.getProcess("proc_none"));
const followed = [];
const following = await sandbox.followProcessLogs(plain.id, (entry) => followed.push(entry));
await note("sendProcessInput", () => sandbox.sendProcessInput(plain.id, { data: "hello\n", encoding: "utf8" }));
await until(() => followed.length > 0, "a followed log");
shapes["followProcessLogs"] = shapeOf(followed[0]);
following.close();
await following.closed;
await note("getProcessLogs", () => sandbox.getProcessLogs(plain.id, { stream: "stdout", tail: 1 }));
await note("resizeProcessTerminal, no terminal", () => sandbox.resizeProcessTerminal(plain.id, { cols: 80, rows: 24 }));
await note("deleteProcess, running", () => sandbox.deleteProcess(plain.id));
await note("stopProcess", () => sandbox.stopProcess(plain.id, { waitMs: 5000 }));
await note("sendProcessInput, exited", () => sandbox.sendProcessInput(plain.id, { data: "x", encoding: "utf8" }));
await note("deleteProcess", () => sandbox.deleteProcess(plain.id));

const shell = await note("createProcess, tty", () => sandbox.createProcess({ command: "sh", tty: true, interactive: true }));
await note("resizeProcessTerminal", () => sandbox.resizeProcessTerminal(shell.id, { cols: 100, rows: 30 }));
const terminal = sandbox.connectProcessTerminal(shell.id, { WebSocket });
let screen = "";
terminal.onReady((status) => (shapes["terminal, ready"] = { processId: shapeOf(status.processId), type: status.type }));
terminal.onData((bytes) => (screen += new TextDecoder().decode(bytes)));
terminal.onExit((status) => (shapes["terminal, exit"] = { exitCode: shapeOf(status.exitCode), type: status.type }));
terminal.onError((error) => (shapes["terminal, error"] = String(error.message ?? error)));
await until(() => shapes["terminal, ready"] !== undefined, "a terminal");
terminal.resize({ cols: 90, rows: 20 });
terminal.sendInput("echo from-$((20+22))\n");
await until(() => screen.includes("from-42"), "the screen");
terminal.sendInput(new TextEncoder().encode("exit 4\n"));
await until(() => shapes["terminal, exit"] !== undefined, "the exit");
terminal.close();
const sleeper = await sandbox.createProcess({ command: "sleep", args: ["1000"] });
await note("killProcess", () => sandbox.killProcess(sleeper.id, { waitMs: 5000 }));

const mcp = { directory: folder, mcpName: "one" };
await note("getMcpConfig, unknown", () => sandbox.getMcpConfig(mcp));
await note("setMcpConfig", () => sandbox.setMcpConfig(mcp, { type: "local", command: "true", args: ["a"], env: { K: "v" } }));
await note("getMcpConfig", () => sandbox.getMcpConfig(mcp));
const remote = { type: "remote", url: "http://127.0.0.1:9/", bearerTokenEnvVar: "T", enabled: false };
await note("setMcpConfig, remote", () => sandbox.setMcpConfig({ ...mcp, mcpName: "two" }, remote));
await note("getMcpConfig, remote", () => sandbox.getMcpConfig({ ...mcp, mcpName: "two" }));
await note("deleteMcpConfig", () => sandbox.deleteMcpConfig(mcp));
const skills = { directory: folder, skillName: "some" };
await note("getSkillsConfig, unknown", () => sandbox.getSkillsConfig(skills));
await note("setSkillsConfig", () =>
  sandbox.setSkillsConfig(skills, { sources: [{ type: "github", source: "o/r", skills: ["a"], ref: "main", subpath: "s" }] }));
await note("getSkillsConfig", () => sandbox.getSkillsConfig(skills));
await note("deleteSkillsConfig", () => sandbox.deleteSkillsConfig(skills));
await sandbox.dispose();
console.log(JSON.stringify(shapes, null, 2));
process.exit(0);
