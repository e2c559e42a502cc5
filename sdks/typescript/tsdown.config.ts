import { defineConfig } from "tsdown";

export default defineConfig({
  entry: { index: "src/index.ts", browser: "src/browser.ts", providers: "src/providers/index.ts" },
  format: "esm",
  platform: "neutral",
  target: "es2022",
  dts: true,
  // Our types and those of the ACP SDK use Symbol.asyncDispose, which projects with lib ES2022 do not have.
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
  sourcemap: false,
  deps: { neverBundle: [/^node:/] },
});
