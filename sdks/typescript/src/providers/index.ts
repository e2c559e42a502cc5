export { docker, type DockerOptions } from "./docker.js";
export { fly, type FlyOptions } from "./fly.js";
export { local } from "./local.js";
export { type Machine, PORT, type Provider, started } from "./provider.js";
export * from "./vendors.js";
