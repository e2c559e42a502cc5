import { expect, it } from "vitest";
import { SandboxAgent } from "../src/index.js";
import { CuttingProxy } from "./support/proxy.js";
import { Server } from "./support/server.js";

const UPDATES = 20_000;
const CUTS = 20;

it(`loses and doubles nothing over ${CUTS} cuts at random places of a turn with ${UPDATES} updates`, async () => {
  const server = await Server.start();
  const proxy = await CuttingProxy.to(server.port);
  const sandbox = await SandboxAgent.connect({ url: proxy.url, agent: "mock", backoff: { first: 5, longest: 50 } });
  try {
    const session = await sandbox.sessions.create({ cwd: "/tmp" });
    const expected = UPDATES * 220;
    const places = Array.from({ length: CUTS }, () => Math.random() * expected * 0.9).sort((a, b) => a - b);
    proxy.bytes = 0;
    proxy.onBytes = () => {
      const next = places[proxy.cuts];
      if (next !== undefined && proxy.bytes >= next) proxy.cut();
    };
    const numbers: number[] = [];
    const turn = session.prompt(`chunks ${UPDATES} 60`);
    for await (const update of turn) {
      if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
        numbers.push(Number.parseInt(update.content.text, 10));
      }
    }
    expect((await turn).stopReason).toBe("end_turn");
    expect(numbers.length).toBe(UPDATES);
    expect(numbers.every((number, index) => number === index + 1)).toBe(true);
    expect(proxy.cuts).toBe(CUTS);
  } finally {
    await sandbox.close();
    await proxy.close();
    await server.stop();
  }
});
