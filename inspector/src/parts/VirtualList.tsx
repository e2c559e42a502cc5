import { type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import "./VirtualList.css";

interface Props {
  count: number;
  rowHeight: number;
  label: string;
  /** Stay at the end while more comes. */
  followsEnd: boolean;
  /** A row to bring into sight; -1 for none. */
  wanted?: number;
  children: (index: number) => ReactNode;
}

const OVERSCAN = 10;

/** Rows of one height, of which only those in sight are in the document. */
export function VirtualList({ count, rowHeight, label, followsEnd, wanted = -1, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const onScroll = useCallback(() => {
    const node = box.current;
    if (node === null) return;
    isAtEnd.current = node.scrollTop + node.clientHeight >= node.scrollHeight - rowHeight;
    // In this very frame, else it would show an empty place; but nothing is drawn anew within a row.
    flushSync(() => setTop(Math.floor(node.scrollTop / rowHeight)));
  }, [rowHeight]);
  useEffect(() => {
    const node = box.current;
    if (node === null) return;
    const observer = new ResizeObserver(() => setHeight(node.clientHeight));
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const node = box.current;
    if (node !== null && followsEnd && isAtEnd.current) node.scrollTop = node.scrollHeight;
  }, [count, followsEnd, height]);
  useLayoutEffect(() => {
    const node = box.current;
    if (node === null || wanted === -1) return;
    const place = wanted * rowHeight;
    if (place < node.scrollTop || place + rowHeight > node.scrollTop + node.clientHeight) node.scrollTop = place - node.clientHeight / 3;
  }, [wanted, rowHeight]);
  const first = Math.max(0, Math.min(top, count) - OVERSCAN);
  const last = Math.min(count, top + 1 + Math.ceil(height / rowHeight) + OVERSCAN);
  const rows: ReactNode[] = [];
  for (let index = first; index < last; index += 1) {
    rows.push(
      <div key={index} className="virtual-row" role="listitem" aria-posinset={index + 1} aria-setsize={count} style={{ top: index * rowHeight, height: rowHeight }}>
        {children(index)}
      </div>,
    );
  }
  return (
    <div ref={box} className="virtual" role="list" aria-label={label} tabIndex={0} onScroll={onScroll}>
      <div className="virtual-space" style={{ height: count * rowHeight }}>
        {rows}
      </div>
    </div>
  );
}
