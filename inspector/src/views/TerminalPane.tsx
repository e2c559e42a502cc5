import type { ProcessInfo } from "sandbox-agent-client";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { ErrorLine, Status } from "../parts/small";
import { type Screen, screenOf } from "../parts/screen";
import { processList } from "../state/processes";
import { reasonOf, sandbox } from "../state/server";
import { useStore } from "../state/store";
import "./FindBar.css";
import "./TerminalPane.css";

/** One process: its screen, and what can be done with it. */
export function TerminalPane({ info, onLeave }: { info: ProcessInfo; onLeave: () => void }) {
  const screen = screenOf(info);
  const box = useRef<HTMLDivElement>(null);
  const [isFinding, setFinding] = useState(false);
  const [isCopied, setCopied] = useState(false);
  const { isForeign, size } = useStore(screen.state);
  useEffect(() => {
    const detach = screen.attach(box.current as HTMLDivElement);
    screen.onFind = () => setFinding(true);
    screen.onLeave = onLeave;
    if (!matchMedia("(pointer: coarse)").matches) screen.focus(); // a keyboard on the glass would cover half of it
    return detach;
  }, [screen, onLeave]);
  const copy = async (): Promise<void> => {
    await screen.copy();
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <section className="pane" aria-label="Terminal">
      <div className="pane-bar">
        <PaneStatus info={info} screen={screen} />
        {isForeign && size !== null && (
          <span className="tag" title="The terminal has the size of the window of whoever typed last. Type to have it as large as yours.">
            {size.cols} × {size.rows}, set in another window
          </span>
        )}
        <span className="spring" />
        <button type="button" className="quiet small" title="Find (Ctrl Shift F)" aria-expanded={isFinding} onClick={() => setFinding(!isFinding)}>
          <Icon name="search" size={14} />
          <span className="word">Find</span>
        </button>
        <button type="button" className="quiet small" title="Copy the selection, or everything (Ctrl Shift C)" onClick={() => void copy()}>
          <Icon name={isCopied ? "check" : "copy"} size={14} />
          <span className="word">{isCopied ? "Copied" : "Copy"}</span>
        </button>
        <Ending info={info} />
      </div>
      <div className="screen">
        <div ref={box} />
      </div>
      {isFinding && <Find screen={screen} onClose={() => setFinding(false)} />}
      {info.tty && info.status === "running" && <Keys screen={screen} />}
      {!info.tty && info.interactive && info.status === "running" && <InputLine info={info} />}
    </section>
  );
}

function PaneStatus({ info, screen }: { info: ProcessInfo; screen: Screen }) {
  const { connection, exit } = useStore(screen.state);
  if (connection === "over") return <Status tone={exit === "Exit code 0" ? "idle" : "bad"}>{exit}</Status>;
  if (connection === "lost") return <Status tone="bad">Reconnecting</Status>;
  if (connection === "opening") return <Status tone="idle">Opening</Status>;
  return <Status tone="good">{info.tty ? "Connected" : "Running"}</Status>;
}

/** Ways to end a process; the hard one once the soft one was tried. */
function Ending({ info }: { info: ProcessInfo }) {
  const [isAsked, setAsked] = useState(false);
  const [error, setError] = useState<string | null>(null);
  if (info.status !== "running") return null;
  const end = async (): Promise<void> => {
    try {
      const process = await sandbox.processes.get(info.id);
      await (isAsked ? process.kill() : process.stop());
      setAsked(true);
      await processList.refresh();
    } catch (reason) {
      setError(reasonOf(reason));
    }
  };
  return (
    <>
      <ErrorLine text={error} />
      <button type="button" className="small" title={isAsked ? "Kill it (SIGKILL)" : "Stop it (SIGTERM)"} onClick={() => void end()}>
        {isAsked ? "Kill" : "Stop"}
      </button>
    </>
  );
}

function Find({ screen, onClose }: { screen: Screen; onClose: () => void }) {
  const [text, setText] = useState("");
  const { found } = useStore(screen.state);
  const close = (): void => {
    screen.endFind();
    onClose();
    screen.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter") screen.find(text, event.shiftKey ? "previous" : "next");
    else return;
    event.preventDefault();
  };
  const isNowhere = found === null || found.count === 0;
  return (
    <div className="find" role="search" onKeyDown={onKey}>
      <input
        type="search"
        aria-label="Find in the terminal"
        placeholder="Find"
        autoFocus
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          screen.find(target.value, "as typed");
        }}
      />
      <span className="muted" aria-live="polite">
        {isNowhere ? "None" : `${found.at + 1} of ${found.count}`}
      </span>
      <button type="button" className="quiet icon-button" aria-label="Previous" disabled={isNowhere} onClick={() => screen.find(text, "previous")}>
        <Icon name="up" />
      </button>
      <button type="button" className="quiet icon-button" aria-label="Next" disabled={isNowhere} onClick={() => screen.find(text, "next")}>
        <Icon name="down" />
      </button>
      <button type="button" className="quiet icon-button" aria-label="Close the search" onClick={close}>
        <Icon name="close" />
      </button>
    </div>
  );
}

const KEYS = [
  ["Esc", "\x1b"],
  ["Tab", "\t"],
  ["Ctrl C", "\x03"],
  ["Ctrl D", "\x04"],
  ["↑", "\x1b[A", "Up"],
  ["↓", "\x1b[B", "Down"],
  ["←", "\x1b[D", "Left"],
  ["→", "\x1b[C", "Right"],
] as const;

/** Keys that a touch screen has not. */
function Keys({ screen }: { screen: Screen }) {
  return (
    <div className="keys" role="toolbar" aria-label="Keys">
      {KEYS.map(([label, keys, name = label]) => (
        <button key={label} type="button" className="small" aria-label={name} onClick={() => screen.type(keys)}>
          {label}
        </button>
      ))}
    </div>
  );
}

/** For a process that reads its input, and has no terminal to type into. */
function InputLine({ info }: { info: ProcessInfo }) {
  const [text, setText] = useState("");
  const [error, setError] = useState<string | null>(null);
  const send = async (): Promise<void> => {
    try {
      const process = await sandbox.processes.get(info.id);
      await process.write(`${text}\n`);
      setText("");
      setError(null);
    } catch (reason) {
      setError(reasonOf(reason));
    }
  };
  return (
    <form
      className="input-line"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <input className="mono" aria-label="Input" placeholder="Input: a line for the process" value={text} onChange={({ target }) => setText(target.value)} />
      <button type="submit">Send</button>
      <ErrorLine text={error} />
    </form>
  );
}
