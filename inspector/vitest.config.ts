import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    alias: { "sandbox-agent-client": fileURLToPath(new URL("../sdks/typescript/src/browser.ts", import.meta.url)) },
    dedupe: ["@agentclientprotocol/sdk"],
  },
  test: { include: ["tests/**/*.test.ts"] },
});
