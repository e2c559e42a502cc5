import { type FormEvent, useEffect, useState } from "react";
import { Menu } from "../parts/Menu";
import { Dialog, ErrorLine, save } from "../parts/small";
import type { View } from "../state/conversation";
import { isArchived } from "../state/listing";
import { sessionList } from "../state/lists";
import { pins, togglePin } from "../state/pins";
import { address, go } from "../state/route";
import { reasonOf, ROOT, sandbox } from "../state/server";
import { useStore } from "../state/store";

/** What can be done with a session as a whole. */
export function SessionActions({ view, title }: { view: View; title: string }) {
  const { session, timeline } = view;
  const [dialog, setDialog] = useState<"rename" | "terminate" | null>(null);
  const [error, setError] = useState<string | null>(null);
  /** What failed outside a dialog, and how to try it again. */
  const [failed, setFailed] = useState<{ what: string; again: () => void } | null>(null);
  useEffect(() => setError(null), [session]);
  const isPinned = useStore(pins).has(session?.id ?? "");
  const { sessions } = useStore(sessionList);
  const isPutAway = sessions.some((one) => one.sessionId === session?.id && isArchived(one));
  if (session === null) return null;
  const run = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    setError(null);
    try {
      await work();
      setDialog(null);
      await sessionList.refresh();
    } catch (reason) {
      setError(reasonOf(reason));
      setFailed({ what, again: () => void run(what, work) });
    }
  };
  const close = (): void => {
    setDialog(null);
    setError(null);
  };
  const canFork = forks(session);
  const isOver = timeline.ended !== null || session.setup.meta.readOnly === true;
  const exportAs = (format: "jsonl" | "markdown"): void =>
    void run("The session could not be exported", async () => {
      const name = `${session.id}.${format === "jsonl" ? "jsonl" : "md"}`;
      save(name, await sandbox.sessions.transcript(session.id, format, { agent: session.agent }));
    });
  const fork = (): void =>
    void run("The session could not be forked", async () => {
      const child = await session.fork();
      await sessionList.refresh();
      go(["sessions", child.id], { agent: child.agent });
    });
  /** A ticket in the link signs its reader in, once and within half a minute. */
  const share = async (): Promise<void> => {
    const answer = await fetch(`${ROOT}/v1/tickets`, { method: "POST" });
    const { ticket } = answer.ok ? ((await answer.json()) as { ticket?: string }) : {};
    const place = address(["sessions", session.id], { agent: session.agent });
    await navigator.clipboard.writeText(`${ROOT}/ui/${ticket === undefined ? "" : `?ticket=${ticket}`}${place}`);
  };
  const rename = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("title") ?? "").trim();
    if (name !== "") void run("", () => session.rename(name));
  };
  return (
    <>
      <Menu label="What to do with the session">
        <button type="button" onClick={() => setDialog("rename")}>
          Rename
        </button>
        <button type="button" onClick={() => togglePin(session.id)}>
          {isPinned ? "Unpin" : "Pin to the top"}
        </button>
        <button type="button" disabled={isOver || !canFork} title={canFork ? undefined : "This agent cannot fork sessions"} onClick={fork}>
          Fork
        </button>
        <hr />
        <button type="button" onClick={() => void run("The link could not be copied", share)}>
          Copy a link to share
        </button>
        <button type="button" onClick={() => exportAs("markdown")}>
          Export as Markdown
        </button>
        <button type="button" onClick={() => exportAs("jsonl")}>
          Export as JSON lines
        </button>
        <hr />
        <button type="button" onClick={() => void run("The session could not be archived", () => session.setMetadata({ archived: isPutAway ? null : true }))}>
          {isPutAway ? "Take out of the archive" : "Archive"}
        </button>
        <button type="button" className="danger" disabled={timeline.ended !== null} onClick={() => setDialog("terminate")}>
          Terminate
        </button>
      </Menu>
      {dialog === null && error !== null && failed !== null && (
        <Dialog title={failed.what} onClose={close}>
          <ErrorLine text={error} />
          <footer>
            <button type="button" data-first onClick={close}>
              Close
            </button>
            <button type="button" className="primary" onClick={failed.again}>
              Try again
            </button>
          </footer>
        </Dialog>
      )}
      {dialog === "rename" && (
        <Dialog title="Rename the session" onClose={close}>
          <form onSubmit={rename}>
            <label className="field">
              <span>Title</span>
              <input name="title" defaultValue={title} data-first onFocus={(event) => event.target.select()} />
            </label>
            <ErrorLine text={error} />
            <footer>
              <button type="button" onClick={close}>
                Cancel
              </button>
              <button type="submit" className="primary">
                Rename
              </button>
            </footer>
          </form>
        </Dialog>
      )}
      {dialog === "terminate" && (
        <Dialog title="Terminate the session?" onClose={close}>
          <p>It ends for everybody who uses it. Its history stays readable.</p>
          <ErrorLine text={error} />
          <footer>
            <button type="button" data-first onClick={close}>
              Keep it
            </button>
            <button type="button" className="danger" onClick={() => void run("", () => session.terminate())}>
              Terminate
            </button>
          </footer>
        </Dialog>
      )}
    </>
  );
}

/** An agent that lists what it can do with sessions, and not this, would refuse it. */
function forks({ connection }: NonNullable<View["session"]>): boolean {
  const { sessionCapabilities } = (connection.initialized.agentCapabilities ?? {}) as { sessionCapabilities?: Record<string, unknown> | null };
  return sessionCapabilities == null || sessionCapabilities["fork"] != null;
}
