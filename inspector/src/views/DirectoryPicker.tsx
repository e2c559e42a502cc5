import { useEffect, useState } from "react";
import { Icon } from "../parts/Icon";
import { ErrorLine } from "../parts/small";
import { reasonOf, sandbox } from "../state/server";

/** The directories in one; choosing one of them leads into it. */
export function DirectoryPicker({ path, onChoose }: { path: string; onChoose: (path: string) => void }) {
  const [names, setNames] = useState<string[]>([]);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    let isOver = false;
    sandbox.files.list(path || "/").then(
      (found) => {
        if (isOver) return;
        setError(null);
        setNames(found.filter(({ entryType }) => entryType === "directory").map(({ name }) => name).sort((a, b) => a.localeCompare(b, undefined, { numeric: true })));
      },
      (reason: unknown) => {
        if (isOver) return;
        setNames([]);
        setError(reasonOf(reason));
      },
    );
    return () => {
      isOver = true;
    };
  }, [path]);
  const base = path.replace(/\/+$/, "");
  const above = base.slice(0, base.lastIndexOf("/")) || "/";
  return (
    <div className="field wide picker">
      <ErrorLine text={error} />
      <ul aria-label="Directories">
        {base !== "" && (
          <li>
            <button type="button" className="quiet small" onClick={() => onChoose(above)}>
              <Icon name="up" size={14} />
              Up to {above}
            </button>
          </li>
        )}
        {names.map((name) => (
          <li key={name}>
            <button type="button" className="quiet small mono" onClick={() => onChoose(`${base}/${name}`)}>
              <Icon name="folder" size={14} />
              {name}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
