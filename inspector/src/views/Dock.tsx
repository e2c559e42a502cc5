import { type RefObject, useEffect, useRef } from "react";
import { Boundary } from "../parts/Boundary";
import { Icon } from "../parts/Icon";
import type { Conversation, View } from "../state/conversation";
import { writeDraft } from "../state/drafts";
import { connections } from "../state/server";
import { useStore } from "../state/store";
import type { PlanItem } from "../state/items";
import { textOf } from "../state/timeline";
import type { Turn } from "../state/turns";
import { OpenAsk } from "./Asks";
import { Composer } from "./Composer";
import { ComposerOptions } from "./ComposerOptions";
import { PlanSteps } from "./Plan";
import "./Dock.css";

/** The bottom of a conversation: what the agent asks, what waits to be run, and where one writes. */
export function Dock({ conversation, view, isLocked }: { conversation: Conversation; view: View; isLocked: boolean }) {
  const { timeline, session } = view;
  const asks = timeline.openAsks();
  const ask = asks[0] ?? null;
  const isOffline = useStore(connections)[session?.agent ?? ""] === "reconnecting";
  const box = useRef<HTMLDivElement>(null);
  useFocusAfterAnswer(box, ask?.key ?? null);
  return (
    <div className="dock" ref={box}>
      <div className="column">
        <PinnedPlan item={timeline.plan} />
        {ask !== null && (
          <Boundary key={ask.key} what="What the agent asks">
            <OpenAsk item={ask} count={asks.length} isOffline={isOffline} />
          </Boundary>
        )}
        <Waiting conversation={conversation} turns={timeline.turns.waiting} />
        <Composer
          key={conversation.id}
          session={conversation.id}
          root={String(session?.setup.meta["cwd"] ?? "/")}
          isSlim={ask !== null}
          isBusy={timeline.isBusy}
          isLocked={isLocked}
          commands={timeline.commands}
          capabilities={session?.connection.initialized.agentCapabilities?.promptCapabilities ?? {}}
          history={() => timeline.prompts()}
          onSend={(prompt) => conversation.send(prompt)}
          onSteer={timeline.isBusy && conversation.canSteer ? (prompt) => void conversation.steer(prompt) : null}
          onCancel={() => conversation.cancel()}
        >
          <ComposerOptions view={view} isLocked={isLocked} />
        </Composer>
      </div>
    </div>
  );
}

/** Where the turn stands, while it runs; all steps on demand. */
function PinnedPlan({ item }: { item: PlanItem | null }) {
  const entries = item?.plan.entries ?? [];
  if (item === null || entries.length === 0) return null;
  const done = entries.filter(({ status }) => status === "completed").length;
  const now = entries.find(({ status }) => status === "in_progress") ?? entries.find(({ status }) => status === "pending");
  return (
    <details className="pinned-plan">
      <summary>
        <Icon name={now === undefined ? "done" : "running"} size={14} />
        <span className="now">{now?.content ?? "All steps are done"}</span>
        <span className="muted">
          {done} of {entries.length}
        </span>
      </summary>
      <PlanSteps item={item} />
    </details>
  );
}

/** Prompts that wait behind the turn that runs, and those that were never run. */
function Waiting({ conversation, turns }: { conversation: Conversation; turns: readonly Turn[] }) {
  if (turns.length === 0) return null;
  const own = turns.filter(({ requestId, state }) => requestId !== null && state === "queued");
  const edit = (turn: Turn): void => {
    conversation.takeBack(turn);
    writeDraft(conversation.id, textOf(turn.prompt));
  };
  return (
    <ol className="waiting" aria-label="Queued prompts">
      {turns.map((turn) => {
        const isQueued = turn.state === "queued";
        const text = textOf(turn.prompt) || (turn.prompt === null ? "A prompt of another client" : "Attached files");
        return (
          <li key={turn.key} className={turn.state}>
            <span className="muted state">{turn.state === "held" ? "Not sent" : "Queued"}</span>
            <span className="text" title={turn.reason ?? text}>
              {text}
              {turn.reason !== null && <small className="bad">{turn.reason}</small>}
            </span>
            {turn.state === "held" && (
              <button type="button" className="small" onClick={() => conversation.sendAgain(turn)}>
                Send
              </button>
            )}
            {own.includes(turn) && conversation.canSteer && <Act icon="steer" label={`Add to the running turn: ${text}`} onClick={() => void conversation.steerWith(turn)} />}
            {isQueued && turn.prompt !== null && <Act icon="now" label={`Stop the turn and send now: ${text}`} onClick={() => void conversation.sendNow(turn)} />}
            {own.indexOf(turn) > 0 && <Act icon="up" label={`Run before the one above: ${text}`} onClick={() => void conversation.advance(turn)} />}
            {turn.prompt !== null && <Act icon="pencil" label={`Edit: ${text}`} onClick={() => edit(turn)} />}
            {(isQueued || turn.requestId !== null) && <Act icon="close" label={`Remove: ${text}`} onClick={() => conversation.takeBack(turn)} />}
          </li>
        );
      })}
    </ol>
  );
}

function Act({ icon, label, onClick }: { icon: "up" | "pencil" | "close" | "now" | "steer"; label: string; onClick: () => void }) {
  return (
    <button type="button" className="quiet small icon-button" aria-label={label} title={label.split(":")[0]} onClick={onClick}>
      <Icon name={icon} size={14} />
    </button>
  );
}

/**
 * The button that was pressed is gone with its question: go on where one writes, and at the next question as soon as
 * there is one, unless something has been written meanwhile.
 */
function useFocusAfterAnswer(box: RefObject<HTMLDivElement | null>, ask: number | null): void {
  const before = useRef<number | null>(null);
  const isAnswering = useRef(false);
  useEffect(() => {
    const isNew = before.current !== ask;
    if (!isNew) return;
    const focused = document.activeElement;
    const prompt = box.current?.querySelector<HTMLTextAreaElement>("#prompt") ?? null;
    if (before.current !== null) isAnswering.current = focused === document.body;
    else if (focused !== prompt || prompt?.value !== "") isAnswering.current = false;
    before.current = ask;
    if (!isAnswering.current) return;
    const first = ask === null ? null : box.current?.querySelector<HTMLElement>(".ask.open :is(button, input, select, textarea)");
    (first ?? prompt)?.focus();
  }, [box, ask]);
}
