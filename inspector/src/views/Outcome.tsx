import { Icon } from "../parts/Icon";
import type { AskItem } from "../state/items";

/** How it ended, and who ended it. */
export function Outcome({ item: { outcome, by } }: { item: AskItem }) {
  return (
    <span className="outcome muted">
      <Icon name={by === null ? "close" : "check"} size={14} />
      {by === null ? outcome : `${outcome} · by ${by}`}
    </span>
  );
}
