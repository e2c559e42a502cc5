import { type ReactNode, useEffect, useRef } from "react";
import { Icon } from "./Icon";
import "./small.css";

/** Where an agent, a session or a tool call stands: always a word, never only a colour. */
export function Status({ tone, children }: { tone: "good" | "busy" | "bad" | "idle" | "ask"; children: ReactNode }) {
  return (
    <span className={`status ${tone}`}>
      <i aria-hidden="true" />
      {children}
    </span>
  );
}

interface DialogProps {
  title: string;
  isWide?: boolean;
  onClose: () => void;
  children: ReactNode;
}

export function Dialog({ title, isWide = false, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} className={isWide ? "wide" : ""} aria-labelledby="dialog-title" onClose={onClose} onCancel={onClose}>
      <header>
        <h2 id="dialog-title">{title}</h2>
        <button type="button" className="quiet icon-button" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function ErrorLine({ text }: { text: string | null }) {
  return text === null ? null : (
    <p className="error-line" role="alert">
      {text}
    </p>
  );
}

// Made once: toLocaleString makes one of these at every call, which takes longer than all the rest of a row.
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

export function Time({ at, withDate = false }: { at: number; withDate?: boolean }) {
  const date = new Date(at);
  const text = (withDate ? DATE : CLOCK).format(date);
  return (
    <time dateTime={date.toISOString()} title={FULL.format(date)}>
      {text}
    </time>
  );
}

export function ago(iso: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1000).toFixed(1)} kB`;
  return `${(size / 1_000_000).toFixed(1)} MB`;
}

export function duration(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** The same for what is often over in a moment. */
export function took(milliseconds: number): string {
  if (milliseconds < 100) return `${Math.round(milliseconds)} ms`;
  return milliseconds < 10_000 ? `${(milliseconds / 1000).toFixed(1)} s` : duration(milliseconds);
}

/** Hand a file to the browser's downloads. */
export function save(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
