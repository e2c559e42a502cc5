import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { rowsWith, wantedText } from "../state/find";
import type { Row } from "../state/rows";
import { useStore } from "../state/store";
import "./FindBar.css";

interface Props {
  rows: readonly Row[];
  version: number;
  /** Bring a row into sight. */
  onShow: (index: number) => void;
}

/** Find in a conversation of which only a part is in the document, where the browser's own search cannot. */
export function FindBar({ rows, version, onShow }: Props) {
  const text = useStore(wantedText);
  const input = useRef<HTMLInputElement>(null);
  const [at, setAt] = useState(0);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the rows are mutable: the version stands for them
  const found = useMemo(() => rowsWith(rows, text ?? ""), [rows, version, text]);
  const isOpen = text !== null;
  const row = found[Math.min(at, found.length - 1)];
  useEffect(() => {
    if (isOpen) input.current?.select();
  }, [isOpen]);
  useEffect(() => setAt(0), [text]);
  useEffect(() => {
    if (row !== undefined) onShow(row);
    const timer = setTimeout(() => mark(row, [text ?? ""]), 50);
    return () => clearTimeout(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only a move or another text moves the conversation
  }, [row, text]);
  if (!isOpen) return null;
  const step = (by: number): void => setAt((at + by + found.length) % Math.max(1, found.length));
  const close = (): void => {
    wantedText.set(null);
    mark(undefined, []);
    document.querySelector<HTMLElement>("#prompt")?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  };
  return (
    <div className="find" role="search" onKeyDown={onKey}>
      <input ref={input} type="search" aria-label="Find in the conversation" placeholder="Find" value={text} onChange={(event) => wantedText.set(event.target.value)} />
      <span className="muted" aria-live="polite">
        {found.length === 0 ? "None" : `${Math.min(at, found.length - 1) + 1} of ${found.length}`}
      </span>
      <button type="button" className="quiet icon-button" aria-label="Previous" disabled={found.length === 0} onClick={() => step(-1)}>
        <Icon name="up" />
      </button>
      <button type="button" className="quiet icon-button" aria-label="Next" disabled={found.length === 0} onClick={() => step(1)}>
        <Icon name="down" />
      </button>
      <button type="button" className="quiet icon-button" aria-label="Close the search" onClick={close}>
        <Icon name="close" />
      </button>
    </div>
  );
}

/** Colour the words in that row, without touching what React drew. */
export function mark(row: number | undefined, texts: readonly string[]): void {
  if (!("highlights" in CSS)) return;
  CSS.highlights.delete("found");
  const node = row === undefined ? null : document.querySelector(`.tall-row[data-row="${row}"]`);
  const sought = texts.map((text) => text.trim().toLowerCase()).filter(Boolean);
  if (node === null || sought.length === 0) return;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  for (let place = walker.nextNode(); place !== null; place = walker.nextNode()) {
    const words = place.textContent?.toLowerCase() ?? "";
    for (const wanted of sought) {
      for (let start = words.indexOf(wanted); start !== -1; start = words.indexOf(wanted, start + wanted.length)) {
        const range = new Range();
        range.setStart(place, start);
        range.setEnd(place, start + wanted.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
