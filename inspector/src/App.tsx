import { lazy, Suspense, useCallback, useEffect, useMemo, useState } from "react";
import { Icon } from "./parts/Icon";
import { Empty } from "./parts/small";
import { wantedText } from "./state/find";
import { sessionList } from "./state/lists";
import { nodeList } from "./state/nodes";
import { notifies, toggleNotifications, watchForNotifications } from "./state/notify";
import { address, go, useRoute } from "./state/route";
import { isSignedOut } from "./state/server";
import { useStore } from "./state/store";
import { nextTheme, type Theme, useTheme } from "./state/theme";
import type { Act } from "./views/Palette";
import { SessionList } from "./views/SessionList";
import "./views/SessionView.css"; // shared with pages that come without a session
import "./views/Asks.css";
import "./App.css";

// What is not in sight at first is fetched when it is.
const AgentsView = lazy(async () => ({ default: (await import("./views/AgentsView")).AgentsView }));
const SessionView = lazy(async () => ({ default: (await import("./views/SessionView")).SessionView }));
const NodesView = lazy(async () => ({ default: (await import("./views/NodesView")).NodesView }));
const ProcessesPage = lazy(async () => ({ default: (await import("./views/ProcessesView")).ProcessesPage }));
const NewSession = lazy(async () => ({ default: (await import("./views/NewSession")).NewSession }));
const Palette = lazy(async () => ({ default: (await import("./views/Palette")).Palette }));
const Shortcuts = lazy(async () => ({ default: (await import("./views/Palette")).Shortcuts }));

type Opened = "new" | "palette" | "shortcuts" | null;

export function App() {
  const { path, query } = useRoute();
  const isOut = useStore(isSignedOut);
  const [opened, setOpened] = useState<Opened>(null);
  const [theme, setTheme] = useTheme();
  const section = path[0] === "agents" || path[0] === "processes" || path[0] === "nodes" ? path[0] : "sessions";
  const session = section === "sessions" ? (path[1] ?? null) : null;
  const agent = query.get("agent");
  useEffect(() => {
    if (session === null && section !== "processes" && section !== "nodes") document.title = section === "agents" ? "Agents · Sandbox Agent" : "Sandbox Agent";
  }, [section, session]);
  useEffect(() => watchForNotifications(), []);
  useEffect(() => void nodeList.refresh(), []);
  useShortcuts(session, setOpened);
  const close = useCallback(() => setOpened(null), []);
  const openSession = useCallback((id: string, of: string) => go(["sessions", id], { agent: of }), []);
  const acts = useMemo(() => actsOf(session, agent, setOpened, () => setTheme(nextTheme(theme))), [session, agent, setTheme, theme]);
  const Body = session === null ? "main" : "div"; // an open session is the main thing itself
  if (isOut) return <SignedOut />;
  return (
    <div className={`app ${section} ${session === null ? "no-session" : "with-session"}`}>
      <TopBar section={section} theme={theme} onTheme={() => setTheme(nextTheme(theme))} onOpen={setOpened} />
      {section === "agents" ? (
        <Suspense fallback={<main className="agents-page" />}>
          <AgentsView />
        </Suspense>
      ) : section === "nodes" ? (
        <Suspense fallback={<main className="nodes-page" />}>
          <NodesView />
        </Suspense>
      ) : section === "processes" ? (
        <Suspense fallback={<main className="processes-page" />}>
          <ProcessesPage />
        </Suspense>
      ) : (
        <Body className="body">
          {session === null && <h1 className="visually-hidden">Sessions</h1>}
          <SessionList current={session} onNew={() => setOpened("new")} />
          {session === null ? (
            <NoSession onNew={() => setOpened("new")} />
          ) : (
            <Suspense fallback={<main className="session" />}>
              <SessionView key={session} id={session} agent={agent} />
            </Suspense>
          )}
        </Body>
      )}
      <Suspense fallback={null}>
        {opened === "new" && <NewSession onClose={close} />}
        {opened === "palette" && <Palette acts={acts} onOpenSession={openSession} onClose={close} />}
        {opened === "shortcuts" && <Shortcuts onClose={close} />}
      </Suspense>
    </div>
  );
}

function NoSession({ onNew }: { onNew: () => void }) {
  useEffect(() => void import("./views/SessionView"), []); // which is wanted next
  return (
    <section className="session none" aria-label="No session">
      <Empty title="No session is open">
        <p className="muted">Open one on the left, or start a new one.</p>
        <div className="choices">
          <button type="button" className="primary" onClick={onNew}>
            New session
          </button>
          <a className="button" href={address(["agents"])}>
            Install an agent
          </a>
        </div>
        <p className="muted">
          <kbd>Ctrl K</kbd> finds everything, <kbd>?</kbd> lists the shortcuts.
        </p>
      </Empty>
    </section>
  );
}

const TABS = ["Conversation", "Protocol", "Both", "Files", "Changes", "Terminal"];

/** What the palette offers besides the sessions. */
function actsOf(session: string | null, agent: string | null, open: (what: Opened) => void, onTheme: () => void): Act[] {
  const views = session === null ? [] : TABS.map((tab): Act => ({ name: tab, hint: "View of this session", run: () => go(["sessions", session], { agent, tab: tab === "Conversation" ? null : tab.toLowerCase() }) }));
  const find: Act[] = session === null ? [] : [{ name: "Find in the conversation", hint: "Search this session", keys: "Ctrl F", run: () => wantedText.set("") }];
  return [
    { name: "New session", hint: "Start an agent", keys: "N", run: () => open("new") },
    ...views,
    ...find,
    { name: "Agents", hint: "Install, models, logs", run: () => go(["agents"]) },
    { name: "Processes", hint: "Commands and terminals", run: () => go(["processes"]) },
    { name: "All sessions", hint: "Overview", run: () => go(["sessions"]) },
    { name: "Switch the theme", hint: "Light, dark, as the system", run: onTheme },
    { name: "Notifications", hint: "Tell when something is asked or done", run: () => void toggleNotifications() },
    { name: "Keyboard shortcuts", hint: "Help", keys: "?", run: () => open("shortcuts") },
  ];
}

/** Keys that work wherever one is; single letters only where nobody is writing. */
function useShortcuts(session: string | null, open: (what: Opened) => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (document.querySelector("dialog[open]") !== null) return;
      if (event.target instanceof Element && event.target.closest(".xterm") !== null) return; // the program has the keys
      const isWriting = event.target instanceof Element && event.target.matches("input, textarea, select");
      const isCommand = event.ctrlKey || event.metaKey;
      const key = event.key.toLowerCase();
      if (isCommand && key === "k") open("palette");
      else if (isCommand && key === "f" && session !== null && document.querySelector(".conversation") !== null) wantedText.set(wantedText.value ?? "");
      else if (event.altKey && (key === "arrowup" || key === "arrowdown")) goBy(session, key === "arrowdown" ? 1 : -1);
      else if (isWriting || isCommand || event.altKey) return;
      else if (key === "n") open("new");
      else if (key === "?") open("shortcuts");
      else if (key === "/" && session !== null) document.querySelector<HTMLElement>("#prompt")?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [session, open]);
}

/** To the session before or after this one in the list. */
function goBy(session: string | null, step: number): void {
  const { sessions } = sessionList.value;
  const next = sessions[sessions.findIndex(({ sessionId }) => sessionId === session) + step];
  if (next !== undefined) go(["sessions", next.sessionId], { agent: next.agent });
}

const THEMES: Record<Theme, string> = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

interface BarProps {
  section: string;
  theme: Theme;
  onTheme: () => void;
  onOpen: (what: Opened) => void;
}

function TopBar({ section, theme, onTheme, onOpen }: BarProps) {
  const isTold = useStore(notifies);
  const hasNodes = useStore(nodeList).nodes.length > 0;
  const bell = isTold ? "Notifications are on" : "Notifications are off";
  return (
    <header className="topbar">
      <a className="brand" href={address(["sessions"])}>
        <img src="./icon.svg" alt="" width="22" height="22" />
        Sandbox Agent
      </a>
      <nav aria-label="Main">
        <a href={address(["sessions"])} aria-current={section === "sessions" ? "page" : undefined}>
          Sessions
        </a>
        <a href={address(["agents"])} aria-current={section === "agents" ? "page" : undefined}>
          Agents
        </a>
        <a href={address(["processes"])} aria-current={section === "processes" ? "page" : undefined}>
          Processes
        </a>
        {hasNodes && (
          <a href={address(["nodes"])} aria-current={section === "nodes" ? "page" : undefined}>
            Nodes
          </a>
        )}
      </nav>
      <button type="button" className="quiet icon-button" aria-label="Commands and sessions" title="Commands and sessions (Ctrl K)" onClick={() => onOpen("palette")}>
        <Icon name="command" />
      </button>
      <button type="button" className="quiet icon-button" aria-label={bell} title={bell} aria-pressed={isTold} onClick={() => void toggleNotifications()}>
        <Icon name={isTold ? "bell" : "bell-off"} />
      </button>
      <button type="button" className="quiet icon-button" aria-label={THEMES[theme]} title={THEMES[theme]} onClick={onTheme}>
        <Icon name={theme} />
      </button>
    </header>
  );
}

/** The server knows this browser no more. Loading the page anew leads to its sign-in. */
function SignedOut() {
  return (
    <main className="signed-out">
      <div className="card">
        <h1>Signed out</h1>
        <p>The server asks for its token again. Sessions go on meanwhile.</p>
        <button type="button" className="primary" onClick={() => location.reload()}>
          Sign in
        </button>
      </div>
    </main>
  );
}
