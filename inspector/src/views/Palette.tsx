import { type KeyboardEvent, useMemo, useState } from "react";
import { Dialog } from "../parts/small";
import { sessionList } from "../state/lists";
import { nameOf } from "../state/names";
import { useStore } from "../state/store";
import "./Palette.css";

export interface Act {
  name: string;
  /** What else it may be called, and where it is. */
  hint: string;
  /** As in the list of shortcuts. */
  keys?: string;
  run: () => void;
}

interface Props {
  acts: Act[];
  onOpenSession: (sessionId: string, agent: string) => void;
  onClose: () => void;
}

const SHOWN = 40;

/** Everything that can be done and every session, by typing some of its name. */
export function Palette({ acts, onOpenSession, onClose }: Props) {
  const { sessions } = useStore(sessionList);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const all = useMemo((): Act[] => {
    const open = sessions.map((session): Act => ({ name: nameOf(session), hint: `${session.agent} · ${session.cwd ?? "/"}`, run: () => onOpenSession(session.sessionId, session.agent) }));
    return [...acts, ...open];
  }, [acts, sessions, onOpenSession]);
  const found = all.filter(({ name, hint }) => matches(`${name} ${hint}`.toLowerCase(), text.trim().toLowerCase())).slice(0, SHOWN);
  const chosen = Math.min(at, found.length - 1);
  const run = (act: Act | undefined): void => {
    if (act === undefined) return;
    onClose();
    act.run();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setAt((chosen + 1) % Math.max(1, found.length));
    else if (event.key === "ArrowUp") setAt((chosen - 1 + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <div className="palette" onKeyDown={onKey}>
        <input
          type="text"
          role="combobox"
          data-first
          aria-label="Command or session"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={found.length > 0 ? `palette-${chosen}` : undefined}
          placeholder="Command or session"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }}
        />
        <ul id="palette-list" role="listbox" aria-label="Found">
          {found.map((act, index) => (
            <li key={index} id={`palette-${index}`} role="option" aria-selected={index === chosen} ref={index === chosen ? intoView : null} onClick={() => run(act)}>
              <span className="name">{act.name}</span>
              <span className="muted hint">{act.hint}</span>
              {act.keys !== undefined && <kbd>{act.keys}</kbd>}
            </li>
          ))}
        </ul>
        {found.length === 0 && <p className="muted">Nothing found</p>}
      </div>
    </Dialog>
  );
}

/** Each word of what is wanted stands somewhere. */
function matches(text: string, wanted: string): boolean {
  return wanted.split(/\s+/).every((word) => text.includes(word));
}

function intoView(node: HTMLElement | null): void {
  node?.scrollIntoView({ block: "nearest" });
}

const SHORTCUTS: [string, string][] = [
  ["Ctrl K", "Commands and sessions"],
  ["N", "New session"],
  ["/", "Write a message"],
  ["Ctrl F", "Find in the conversation"],
  ["Alt ↑ / Alt ↓", "Previous or next session"],
  ["Enter", "Send the message"],
  ["Ctrl Enter", "Add the message to the running turn, if the agent can"],
  ["Shift Enter", "Begin a new line"],
  ["↑ in an empty message", "Earlier messages"],
  ["Esc", "Stop the turn; close what is open"],
  ["?", "This list"],
];

export function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="shortcuts">
        {SHORTCUTS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
