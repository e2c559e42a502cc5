import { Icon } from "../parts/Icon";
import type { PlanItem } from "../state/timeline";

const MARKS = { pending: "pending", in_progress: "running", completed: "done" } as const;

export function PlanCard({ item }: { item: PlanItem }) {
  const { entries } = item.plan;
  const done = entries.filter(({ status }) => status === "completed").length;
  return (
    <section className="entry card plan" aria-label="Plan">
      <header>
        <strong>Plan</strong>
        <span className="muted">
          {done} of {entries.length} done
        </span>
      </header>
      <PlanSteps item={item} />
    </section>
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
