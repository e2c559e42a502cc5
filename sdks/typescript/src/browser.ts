export * from "./surface.js";
export { SandboxAgent } from "./client.js";
