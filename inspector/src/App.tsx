import { lazy, Suspense, useEffect, useState } from "react";
import { Empty } from "./parts/small";
import { address, useRoute } from "./state/route";
import { isSignedOut } from "./state/server";
import { useStore } from "./state/store";
import { nextTheme, type Theme, useTheme } from "./state/theme";
import { SessionList } from "./views/SessionList";
import { SessionView } from "./views/SessionView";
import { Icon } from "./parts/Icon";
import "./App.css";

// What is not in sight at first is fetched when it is.
const AgentsView = lazy(async () => ({ default: (await import("./views/AgentsView")).AgentsView }));
const NewSession = lazy(async () => ({ default: (await import("./views/NewSession")).NewSession }));

export function App() {
  const { path, query } = useRoute();
  const isOut = useStore(isSignedOut);
  const [isMaking, setMaking] = useState(false);
  const section = path[0] === "agents" ? "agents" : "sessions";
  const session = section === "sessions" ? (path[1] ?? null) : null;
  useEffect(() => {
    if (session === null) document.title = section === "agents" ? "Agents · Sandbox Agent" : "Sandbox Agent";
  }, [section, session]);
  if (isOut) return <SignedOut />;
  return (
    <div className={`app ${section} ${session === null ? "no-session" : "with-session"}`}>
      <TopBar section={section} />
      {section === "agents" ? (
        <Suspense fallback={<main className="agents-page" />}>
          <AgentsView />
        </Suspense>
      ) : (
        <div className="body">
          <SessionList current={session} onNew={() => setMaking(true)} />
          {session === null ? (
            <main className="session none">
              <Empty title="No session is open">
                <p className="muted">Pick one on the left, or start a new one.</p>
              </Empty>
            </main>
          ) : (
            <SessionView key={session} id={session} agent={query.get("agent")} />
          )}
        </div>
      )}
      {isMaking && (
        <Suspense fallback={null}>
          <NewSession onClose={() => setMaking(false)} />
        </Suspense>
      )}
    </div>
  );
}

const THEMES: Record<Theme, string> = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

function TopBar({ section }: { section: string }) {
  const [theme, setTheme] = useTheme();
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
      </nav>
      <button type="button" className="quiet icon-button" aria-label={THEMES[theme]} title={THEMES[theme]} onClick={() => setTheme(nextTheme(theme))}>
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
