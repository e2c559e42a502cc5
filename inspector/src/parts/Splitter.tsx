import { type KeyboardEvent, type PointerEvent, useState } from "react";
import "./Splitter.css";

interface Props {
  label: string;
  /** Under which the width is kept in this browser, and the name of the CSS property that carries it. */
  name: string;
  initial: number;
  min: number;
  max: number;
}

const STEP = 16;

/**
 * The edge between two panes, to be dragged or moved with the arrow keys. It sets `--NAME`, in pixels, for the page. It
 * stands after the pane that it sizes, or within it where that has `data-pane`.
 */
export function Splitter({ label, name, initial, min, max }: Props) {
  const key = `sandbox-agent.width.${name}`;
  const [width, setWidth] = useState(() => apply(name, clamp(Number(localStorage.getItem(key) ?? initial), min, max)));
  const move = (wanted: number): void => {
    const changed = clamp(wanted, min, max);
    localStorage.setItem(key, String(changed));
    setWidth(apply(name, changed));
  };
  const onDrag = (event: PointerEvent<HTMLDivElement>): void => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    const pane = event.currentTarget.closest("[data-pane]") ?? event.currentTarget.previousElementSibling;
    if (pane !== null) move(event.clientX - pane.getBoundingClientRect().left);
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    move(width + step);
  };
  return (
    <div
      className="splitter"
      role="separator"
      aria-label={label}
      aria-orientation="vertical"
      aria-valuenow={width}
      aria-valuemin={min}
      aria-valuemax={max}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={onDrag}
      onDoubleClick={() => move(initial)}
      onKeyDown={onKey}
    />
  );
}

function clamp(value: number, min: number, max: number): number {
  return Math.round(Math.min(max, Math.max(min, value)));
}

function apply(name: string, width: number): number {
  document.documentElement.style.setProperty(`--${name}`, `${width}px`);
  return width;
}
