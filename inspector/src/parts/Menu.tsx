import { type ReactNode, useEffect, useRef } from "react";
import { Icon } from "./Icon";
import "./Menu.css";

/** Things to do behind a small button. It closes when one is chosen, on Escape, and on a click elsewhere. */
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
  return (
    <details
      ref={box}
      className="menu"
      onKeyDown={(event) => {
        if (event.key === "Escape") shut();
      }}
    >
      <summary aria-label={label} title={label}>
        <Icon name="more" size={18} />
      </summary>
      <div className="menu-items" onClick={shut}>
        {children}
      </div>
    </details>
  );
}
