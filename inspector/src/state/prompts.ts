import type { ContentBlock } from "@agentclientprotocol/sdk";

const KEY = "sandbox-agent.sent-prompts";
const KEPT = 50;
const LIMIT = 20_000;

/** So that a page that is loaded anew can say what still waits. Attached files are kept by name only. */
export function rememberPrompt(turnId: string, prompt: readonly ContentBlock[]): void {
  const kept = prompt.filter((block) => block.type === "text" && block.text.length < LIMIT);
  write([...read().filter(([id]) => id !== turnId), [turnId, kept] as const].slice(-KEPT));
}

export function rememberedPrompt(turnId: string | null): ContentBlock[] | null {
  return read().find(([id]) => id === turnId)?.[1] ?? null;
}

type Kept = readonly [string, ContentBlock[]];

function read(): Kept[] {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as Kept[];
  } catch {
    return [];
  }
}

function write(kept: Kept[]): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // storage is full or forbidden: then it is not remembered
  }
}
