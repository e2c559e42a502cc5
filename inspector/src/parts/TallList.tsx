import { type ReactNode, useEffect, useLayoutEffect, useReducer, useRef } from "react";
import { flushSync } from "react-dom";
import { Icon } from "./Icon";
import type { Viewport } from "./viewport";
import "./TallList.css";

interface Props {
  count: number;
  label: string;
  /** Where it is scrolled to: whoever keeps it finds the list as it was left. */
  viewport: Viewport;
  isBusy: boolean;
  keyOf: (index: number) => string;
  /** A guess at a row's height, until it is drawn. */
  guess: (index: number) => number;
  children: (index: number) => ReactNode;
  /** What follows the last row. */
  end: ReactNode;
}

/** A log of rows of any height, of which only those near the window are in the document. It stays at its end. */
export function TallList({ count, label, viewport, isBusy, keyOf, guess, children, end }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  viewport.grow(count, guess);
  const drawn = viewport.choose();

  useLayoutEffect(() => {
    if (box.current !== null && column.current !== null && viewport.settle(box.current, column.current)) redraw();
  });
  useEffect(() => whenIdle(() => viewport.widen() && redraw()));
  useEffect(() => {
    const [outer, inner] = [box.current, column.current];
    if (outer === null || inner === null) return;
    const look = (): void => {
      if (viewport.settle(outer, inner)) redraw();
    };
    const observer = new ResizeObserver(look);
    observer.observe(outer);
    observer.observe(inner);
    const onToggle = ({ target }: Event): void => viewport.remember(target as HTMLElement);
    inner.addEventListener("toggle", onToggle, true);
    return () => {
      observer.disconnect();
      inner.removeEventListener("toggle", onToggle, true);
    };
  }, [viewport]);
  const onScroll = (): void => {
    // In this very frame: else it would show an empty place.
    if (box.current !== null && viewport.scrolled(box.current)) flushSync(redraw);
  };

  const rows: ReactNode[] = [];
  let next = 0;
  for (const index of [...drawn, count]) {
    if (index > next) rows.push(<div key={`space ${next}`} style={{ height: viewport.between(next, index) }} />);
    if (index < count) {
      const key = keyOf(index);
      rows.push(
        <div key={key} className="tall-row" data-row={index} data-key={key}>
          {children(index)}
        </div>,
      );
    }
    next = index + 1;
  }
  const jump = (): void => {
    viewport.jump();
    redraw();
    box.current?.focus();
  };
  return (
    <div className="tall">
    <div ref={box} className="conversation" onScroll={onScroll} tabIndex={0} role="log" aria-label={label} aria-busy={isBusy} aria-live={viewport.isAtEnd ? "polite" : "off"}>
      <div ref={column} className="column">
        {rows}
        {end}
      </div>
    </div>
      {!viewport.isAtEnd && (
        <button type="button" className="latest" onClick={jump}>
          <Icon name="latest" />
          Jump to latest
        </button>
      )}
    </div>
  );
}

/** Gives the way to call it off. */
function whenIdle(work: () => void): () => void {
  if (!("requestIdleCallback" in window)) {
    const timer = setTimeout(work, 100);
    return () => clearTimeout(timer);
  }
  const key = requestIdleCallback(work);
  return () => cancelIdleCallback(key);
}
