import { type AskContext, type ConnectionState, explain, ProblemError, SandboxAgent } from "sandbox-agent-client";
import { plainReason } from "./failures";
import { paced } from "./pace";
import { Store, useStore } from "./store";

/** Where the server is: above `/ui/`, whatever the base path. */
export const ROOT = location.origin + location.pathname.replace(/\/ui(\/.*)?$/, "");

export const connections = new Store<Record<string, ConnectionState>>({});
export const isSignedOut = new Store(false);

type Give = (answer: unknown) => void;
/** What waits for an answer of the person at this page, by request id. */
const waiting = new Store<ReadonlyMap<string, Give>>(new Map());

/** How to answer a request of an agent; null when it is not ours to answer (any more). */
export function useAnswer(id: unknown): Give | null {
  return useStore(waiting).get(JSON.stringify(id)) ?? null;
}

function askPerson<T>(_: unknown, { signal, requestId }: AskContext): Promise<T | undefined> {
  const key = JSON.stringify(requestId);
  return new Promise((resolve) => {
    const settle = (answer: unknown): void => {
      const rest = new Map(waiting.value);
      rest.delete(key);
      waiting.set(rest);
      resolve(answer as T | undefined);
    };
    waiting.set(new Map(waiting.value).set(key, settle));
    signal.addEventListener("abort", () => settle(undefined));
  });
}

export const sandbox = new SandboxAgent({
  url: ROOT,
  name: "inspector",
  asSpoken: true,
  fetch: async (input, init) => {
    const response = await fetch(input, init);
    if (response.status === 401) isSignedOut.set(true);
    return paced(response);
  },
  onPermission: askPerson,
  onQuestion: askPerson,
  onElicitation: askPerson,
  onState: (agent, state) => connections.set({ ...connections.value, [agent]: state }),
});

addEventListener("online", () => sandbox.wake());
let hiddenAt = 0;
document.addEventListener("visibilitychange", () => {
  if (document.hidden) hiddenAt = Date.now();
  else if (Date.now() - hiddenAt > 60_000) sandbox.wake();
});

export function reasonOf(error: unknown): string {
  return plainReason(error instanceof ProblemError ? error.message : explain(error));
}
