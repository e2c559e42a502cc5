import { Fold, Icon } from "../parts/Icon";
import type { PlanItem } from "../state/items";

const MARKS = { pending: "pending", in_progress: "running", completed: "done" } as const;

/** One quiet line: while the turn runs, its steps stand at the composer. */
export function PlanCard({ item }: { item: PlanItem }) {
  const { entries } = item.plan;
  const done = entries.filter(({ status }) => status === "completed").length;
  return (
    <details className="entry plan step">
      <summary>
        <Icon name="plan" />
        Plan · {done} of {entries.length} done
        <Fold />
      </summary>
      <PlanSteps item={item} />
    </details>
  );
}

export function PlanSteps({ item }: { item: PlanItem }) {
  return (
    <ol className="plan-steps">
      {item.plan.entries.map(({ content, status, priority }, index) => (
        <li key={index} className={status}>
          <span className="mark" role="img" aria-label={status.replace("_", " ")}>
            <Icon name={MARKS[status] ?? "pending"} />
          </span>
          <span>{content}</span>
          {priority === "high" && <span className="tag">high</span>}
        </li>
      ))}
    </ol>
  );
}
