import type { SearchHit, SearchResult } from "sandbox-agent-client";
import { useEffect, useState } from "react";
import { Icon, type IconName } from "../parts/Icon";
import { ago, ErrorLine } from "../parts/small";
import { nameOf } from "../state/names";
import { address } from "../state/route";
import { reasonOf, sandbox } from "../state/server";
import "./SearchResults.css";

/** Milliseconds after the last key, and until an answer that is not complete is asked for again. */
const PAUSE = 150;
const AGAIN = 700;
const TIMES = 4;
const KINDS: Record<SearchHit["kind"], { name: string; icon: IconName }> = {
  prompt: { name: "You", icon: "person" },
  message: { name: "Agent", icon: "agent" },
  thought: { name: "Thought", icon: "think" },
  tool: { name: "Tool", icon: "other" },
  title: { name: "Title", icon: "pencil" },
};

/** What the server finds in all conversations; each hit leads to its place. */
export function SearchResults({ text }: { text: string }) {
  const { result, error } = useSearch(text);
  const count = result?.sessions.length ?? 0;
  return (
    <section className="search-results" aria-label="In conversations">
      <h2 className="group-name" aria-live="polite">
        In conversations
        <span className="muted">{result === null ? "" : count === 0 ? "nothing found" : `${count} session${count === 1 ? "" : "s"}`}</span>
      </h2>
      <ErrorLine text={error} />
      <ul>
        {result?.sessions.map(({ session, hits, moreHits }) => (
          <li key={`${session.agent} ${session.sessionId}`}>
            <p className="found-in">
              <span className="name" dir="auto">
                {nameOf(session)}
              </span>
              <span className="muted">{ago(session.updatedAt)}</span>
            </p>
            {hits.map((hit) => (
              <a key={`${hit.sequence} ${hit.kind}`} className="hit" href={address(["sessions", session.sessionId], { agent: session.agent, at: String(hit.sequence), find: wordsOf(hit).join(" ") })}>
                <Icon name={KINDS[hit.kind].icon} size={14} />
                <span className="visually-hidden">{KINDS[hit.kind].name}: </span>
                <span className="snippet" dir="auto">
                  {hit.snippet.map((part, index) => (part.isMatch ? <mark key={index}>{part.text}</mark> : part.text))}
                </span>
              </a>
            ))}
            {moreHits > 0 && <p className="muted more-hits">and {moreHits} more</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function wordsOf({ snippet }: SearchHit): string[] {
  return [...new Set(snippet.filter(({ isMatch }) => isMatch).map((part) => part.text.toLowerCase()))];
}

/** What was said a moment ago is indexed a moment later: an answer that is not complete is asked for again. */
function useSearch(text: string): { result: SearchResult | null; error: string | null } {
  const [found, setFound] = useState<{ result: SearchResult | null; error: string | null }>({ result: null, error: null });
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout>;
    const ask = async (times: number): Promise<void> => {
      try {
        const result = await sandbox.sessions.search(text, { limit: 20 });
        if (isOver) return;
        setFound({ result, error: null });
        if (!result.isComplete && times > 1) timer = setTimeout(() => void ask(times - 1), AGAIN);
      } catch (reason) {
        if (!isOver) setFound({ result: null, error: /at least one word/.test(reasonOf(reason)) ? null : reasonOf(reason) });
      }
    };
    timer = setTimeout(() => void ask(TIMES), PAUSE);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [text]);
  return found;
}
