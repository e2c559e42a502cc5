// One conversation through a library that starts ACP agents: node conversation.mjs LIBRARY CWD COMMAND ARGS…
import { createACPProvider } from "@mcpc-tech/acp-ai-provider";
import { AgentFactory } from "acp-factory";
import { streamText } from "ai";

const [library, cwd, command, ...args] = process.argv.slice(2);

const libraries = {
  async "acp-ai-provider"() {
    const provider = createACPProvider({ command, args, session: { cwd, mcpServers: [] }, persistSession: true });
    const say = async (prompt) => {
      let text = "";
      for await (const part of streamText({ model: provider.languageModel(), prompt }).textStream) text += part;
      return text;
    };
    const told = [await say("remember the provider"), await say("recall")];
    const existingSessionId = provider.getSessionId();
    provider.cleanup();
    const again = createACPProvider({ command, args, session: { cwd, mcpServers: [] }, existingSessionId });
    let text = "";
    for await (const part of streamText({ model: again.languageModel(), prompt: "recall" }).textStream) text += part;
    again.cleanup();
    return [...told, text];
  },
  async "acp-factory"() {
    AgentFactory.register("ours", { command, args, env: {} });
    const agent = await AgentFactory.spawn("ours", { permissionMode: "auto-approve" });
    const session = await agent.createSession(cwd);
    const say = async (prompt) => {
      let text = "";
      for await (const update of session.prompt(prompt))
        if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") text += update.content.text;
      return text;
    };
    const told = [await say("remember the factory"), await say("tool ls"), await say("recall")];
    let isCancelled = false;
    for await (const _ of session.prompt("slow 10000")) {
      if (isCancelled) continue;
      isCancelled = true;
      await session.cancel();
    }
    const id = session.id;
    await agent.close();
    const later = await AgentFactory.spawn("ours", { permissionMode: "auto-approve" });
    const loaded = await later.loadSession(id, cwd);
    let kinds = 0;
    for await (const _ of loaded.prompt("recall")) kinds += 1;
    await later.close();
    return [...told, kinds > 0 ? "again" : ""];
  },
};

console.log(JSON.stringify(await libraries[library]()));
process.exit(0);
