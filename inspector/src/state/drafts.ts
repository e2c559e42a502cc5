/** What was written and not sent. */
export interface Draft {
  text: string;
  files: File[];
}

const KEY = "sandbox-agent.drafts";
const files = new Map<string, File[]>();
const listeners = new Map<string, (draft: Draft) => void>();

/** Each session has its own; the text outlives a reload of the page, attached files do not. */
export function draftOf(session: string): Draft {
  return { text: texts()[session] ?? "", files: files.get(session) ?? [] };
}

export function keepDraft(session: string, draft: Draft): void {
  if (draft.files.length > 0) files.set(session, draft.files);
  else files.delete(session);
  const { [session]: _, ...rest } = texts();
  try {
    sessionStorage.setItem(KEY, JSON.stringify(draft.text === "" ? rest : { ...rest, [session]: draft.text }));
  } catch {
    // storage is full or forbidden: then a reload forgets it
  }
}

/** Put words where they can be edited before they are sent, whoever shows them. */
export function writeDraft(session: string, text: string): void {
  const draft = { ...draftOf(session), text };
  keepDraft(session, draft);
  listeners.get(session)?.(draft);
}

/** Be told when somebody else writes it; gives the way to stop. */
export function watchDraft(session: string, listener: (draft: Draft) => void): () => void {
  listeners.set(session, listener);
  return () => listeners.delete(session);
}

function texts(): Record<string, string> {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
}
