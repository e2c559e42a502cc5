import type { ContentBlock } from "@agentclientprotocol/sdk";
import { sandbox } from "./server";

const SHOWN = 20;
/** A mention that is being written at the end of a text: `@src/ma`. */
const OPEN = /(?:^|\s)@([^\s@]*)$/;

export function openMention(text: string): string | null {
  return OPEN.exec(text)?.[1] ?? null;
}

/** The text with the mention completed; a directory goes on. */
export function completeMention(text: string, path: string): string {
  return `${text.replace(/@[^\s@]*$/, "")}@${path}${path.endsWith("/") ? "" : " "}`;
}

/** Files and directories below the session's directory whose path begins so. */
export async function filesLike(partial: string, root: string, sessionId: string): Promise<string[]> {
  const directory = partial.slice(0, partial.lastIndexOf("/") + 1);
  const wanted = partial.slice(directory.length).toLowerCase();
  const entries = await sandbox.files.list(`${root.replace(/\/$/, "")}/${directory}`, { sessionId });
  return entries
    .filter(({ name }) => name.toLowerCase().startsWith(wanted) && (wanted.startsWith(".") || !name.startsWith(".")))
    .map(({ name, entryType }) => `${directory}${name}${entryType === "directory" ? "/" : ""}`)
    .sort((one, other) => one.localeCompare(other, undefined, { numeric: true }))
    .slice(0, SHOWN);
}

/** The files that a text mentions, as links that every agent takes. Only what was chosen from the list counts. */
export function linksIn(text: string, chosen: ReadonlySet<string>, root: string): ContentBlock[] {
  const named = [...text.matchAll(/(?:^|\s)@([^\s@]+)/g)].map(([, path]) => path as string);
  return [...new Set(named)]
    .filter((path) => chosen.has(path))
    .map((path) => ({ type: "resource_link", name: path, uri: `file://${encodeURI(`${root.replace(/\/$/, "")}/${path}`)}` }));
}
