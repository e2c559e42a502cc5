import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { licenses } from "./licenses.ts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  base: "./",
  plugins: [react(), licenses()],
  resolve: {
    alias: { "sandbox-agent-client": here("../sdks/typescript/src/browser.ts") },
    dedupe: ["@agentclientprotocol/sdk"],
  },
  build: {
    outDir: here("../src/sandbox_agent/http/ui_assets"),
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // as they have light-dark()
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
  },
});
