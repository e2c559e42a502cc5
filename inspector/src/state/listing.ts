import type { SessionSummary } from "sandbox-agent-client";
import { keyOf, type Live } from "./liveness";
import { nameOf } from "./names";
import { Store } from "./store";

export const SHOWN = ["all", "asking", "working", "failed", "ended", "archived"] as const;
export type Shown = (typeof SHOWN)[number];
export const GROUPS = ["none", "day", "directory", "agent"] as const;
export type Grouping = (typeof GROUPS)[number];

/** Which sessions are listed, and how. */
export interface Listing {
  shown: Shown;
  /** "" is any. */
  agent: string;
  cwd: string;
  group: Grouping;
}

export interface Group {
  /** "" where nothing is grouped. */
  name: string;
  sessions: SessionSummary[];
}

const KEY = "sandbox-agent.listing";
const PLAIN: Listing = { shown: "all", agent: "", cwd: "", group: "none" };

/** What is grouped is remembered by this browser; what is left out is not, as one would look for it in vain. */
export const listing = new Store<Listing>({ ...PLAIN, group: remembered() });

export function narrow(more: Partial<Listing>): void {
  listing.set({ ...listing.value, ...more });
  if (more.group !== undefined) localStorage.setItem(KEY, more.group);
}

export function isArchived({ metadata }: SessionSummary): boolean {
  return metadata["archived"] === true;
}

export function isShown(session: SessionSummary, shown: Shown, live: Readonly<Record<string, Live>>): boolean {
  const { agent, sessionId, ended, lastError } = session;
  if (shown === "archived" || isArchived(session)) return shown === "archived" && isArchived(session);
  if (shown === "all") return true;
  if (shown === "ended") return ended;
  if (shown === "failed") return lastError != null && live[keyOf(agent, sessionId)] !== "working";
  return !ended && live[keyOf(agent, sessionId)] === shown;
}

/** Those that are wanted, by group; pinned ones first. */
export function arrange(sessions: readonly SessionSummary[], wanted: Listing & { text: string }, live: Readonly<Record<string, Live>>, pinned: ReadonlySet<string>): Group[] {
  const text = wanted.text.trim().toLowerCase();
  const groups = new Map<string, SessionSummary[]>();
  for (const session of sessions) {
    const isWanted =
      isShown(session, wanted.shown, live) &&
      (wanted.agent === "" || session.agent === wanted.agent) &&
      (wanted.cwd === "" || session.cwd === wanted.cwd) &&
      (text === "" || wordsOf(session).includes(text));
    if (!isWanted) continue;
    const name = pinned.has(session.sessionId) ? (wanted.group === "none" ? "" : "Pinned") : groupOf(session, wanted.group);
    const group = groups.get(name) ?? [];
    if (group.length === 0) groups.set(name, group);
    group.push(session);
  }
  if (wanted.group === "none") {
    const all = groups.get("") ?? [];
    return [{ name: "", sessions: [...all.filter(({ sessionId }) => pinned.has(sessionId)), ...all.filter(({ sessionId }) => !pinned.has(sessionId))] }];
  }
  const found = [...groups].map(([name, members]) => ({ name, sessions: members }));
  return [...found.filter(({ name }) => name === "Pinned"), ...found.filter(({ name }) => name !== "Pinned")];
}

function groupOf({ agent, cwd, updatedAt }: SessionSummary, group: Grouping): string {
  switch (group) {
    case "none":
      return "";
    case "agent":
      return agent;
    case "directory":
      return cwd ?? "/";
    case "day":
      return dayOf(new Date(updatedAt));
  }
}

function dayOf(date: Date): string {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.ceil((midnight - date.getTime()) / 86_400_000);
  if (days <= 0) return "Today";
  return days === 1 ? "Yesterday" : days < 7 ? "This week" : "Earlier";
}

function wordsOf(session: SessionSummary): string {
  const { alias, sessionId, agent, cwd } = session;
  return [nameOf(session), alias, sessionId, agent, cwd].filter(Boolean).join(" ").toLowerCase();
}

function remembered(): Grouping {
  const group = localStorage.getItem(KEY);
  return GROUPS.find((one) => one === group) ?? "none";
}
