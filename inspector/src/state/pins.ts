import { Store } from "./store";

const KEY = "sandbox-agent.pinned";

/** Sessions that stay on top of the list, in this browser. */
export const pins = new Store<ReadonlySet<string>>(read());

export function togglePin(sessionId: string): void {
  const changed = new Set(pins.value);
  if (!changed.delete(sessionId)) changed.add(sessionId);
  pins.set(changed);
  localStorage.setItem(KEY, JSON.stringify([...changed]));
}

function read(): ReadonlySet<string> {
  try {
    return new Set(JSON.parse(localStorage.getItem(KEY) ?? "[]") as string[]);
  } catch {
    return new Set();
  }
}
