import { type KeyboardEvent, type ReactNode, useEffect, useRef } from "react";
import { Icon } from "./Icon";
import "./Menu.css";

/** Things to do behind a small button. Arrow keys walk through them; it closes when one is chosen, on Escape, and on a click elsewhere. */
export function Menu({ label, children }: { label: string; children: ReactNode }) {
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event): void => {
      const node = box.current;
      if (node?.open && !(event.target instanceof Node && node.contains(event.target))) node.open = false;
    };
    addEventListener("pointerdown", close);
    return () => removeEventListener("pointerdown", close);
  }, []);
  const shut = (): void => {
    if (box.current === null) return;
    box.current.open = false;
    box.current.querySelector("summary")?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Escape") shut();
    const step = STEPS[event.key];
    if (step === undefined || box.current === null) return;
    event.preventDefault();
    box.current.open = true;
    const items = [...box.current.querySelectorAll<HTMLButtonElement>(".menu-items button:enabled")];
    const at = items.indexOf(document.activeElement as HTMLButtonElement);
    items.at(step(at, items.length))?.focus();
  };
  return (
    <details ref={box} className="menu" onKeyDown={onKey}>
      <summary aria-label={label} title={label}>
        <Icon name="more" size={18} />
      </summary>
      <div className="menu-items" onClick={shut}>
        {children}
      </div>
    </details>
  );
}

/** Where a key leads from one of so many. */
const STEPS: Record<string, (at: number, count: number) => number> = {
  ArrowDown: (at, count) => (at + 1) % count,
  ArrowUp: (at, count) => (at <= 0 ? count - 1 : at - 1),
  Home: () => 0,
  End: () => -1,
};
