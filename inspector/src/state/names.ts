import type { SessionSummary } from "sandbox-agent-client";

type Named = Pick<SessionSummary, "title" | "alias" | "sessionId"> & { firstPrompt?: string | null };

const KEY = "sandbox-agent.first-prompts";
const KEPT = 500;
const LENGTH = 80;

/** What people call a session: its title, the name it was given, what was asked first, or that nothing was asked yet. */
export function nameOf({ title, alias, firstPrompt, sessionId }: Named): string {
  return title ?? alias ?? firstPrompt ?? read()[sessionId] ?? "New session";
}

/** Agents that give no titles leave it to us: what was asked first tells sessions apart. */
export function noteFirstPrompt(sessionId: string, text: string): void {
  const known = read();
  const words = text.trim().split("\n")[0]?.slice(0, LENGTH) ?? "";
  if (words === "" || known[sessionId] !== undefined) return;
  names = Object.fromEntries([...Object.entries(known), [sessionId, words] as const].slice(-KEPT));
  try {
    localStorage.setItem(KEY, JSON.stringify(names));
  } catch {
    // storage is full or forbidden: then it is known until the page is left
  }
}

let names: Record<string, string> | null = null;

function read(): Record<string, string> {
  if (names !== null) return names;
  try {
    return (names = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Record<string, string>);
  } catch {
    return (names = {});
  }
}
