import { memo, useLayoutEffect, useMemo, useRef, useState } from "react";
import { spansOf } from "./ansi";
import { bytes } from "./small";
import "./TerminalOutput.css";

const TAIL = 16_000;

/**
 * What a command printed, as it comes in. Of long output the end is drawn, and all of it on demand. It stays at the
 * end while the reader is there.
 */
export const TerminalOutput = memo(function TerminalOutput({ text, label }: { text: string; label: string }) {
  const [isWhole, setWhole] = useState(false);
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  const shown = isWhole ? text : tailOf(text);
  const spans = useMemo(() => spansOf(shown), [shown]);
  useLayoutEffect(() => {
    const node = box.current;
    if (node === null) return;
    const follow = (): void => {
      if (isAtEnd.current) node.scrollTop = node.scrollHeight;
    };
    follow();
    const observer = new ResizeObserver(follow); // it has no height while it is folded away
    observer.observe(node);
    return () => observer.disconnect();
  }, [spans]);
  const onScroll = (): void => {
    const node = box.current;
    if (node !== null) isAtEnd.current = node.scrollTop + node.clientHeight >= node.scrollHeight - 8;
  };
  return (
    <div className="terminal">
      {text.length > TAIL && (
        <button type="button" className="quiet small" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show the end only" : `Show all ${bytes(text.length)}`}
        </button>
      )}
      <pre ref={box} className={`output mono ${isWhole ? "whole" : ""}`} tabIndex={0} role="log" aria-label={label} aria-live="off" onScroll={onScroll}>
        {spans.map(({ text: piece, look, colour, ground }, index) =>
          look === "" && colour === undefined && ground === undefined ? (
            piece
          ) : (
            <span key={index} className={look} style={{ color: colour, backgroundColor: ground }}>
              {piece}
            </span>
          ),
        )}
      </pre>
    </div>
  );
});

function tailOf(text: string): string {
  if (text.length <= TAIL) return text;
  const end = text.slice(-TAIL);
  return end.slice(end.indexOf("\n") + 1);
}
