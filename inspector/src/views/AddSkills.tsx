import { useState } from "react";
import { Icon } from "../parts/Icon";

const PLACES = { local: "./skills or /path/to/skills", github: "owner/name", git: "https://example.com/skills.git" } as const;
type Kind = keyof typeof PLACES;

/** Skills from a folder or a repository, for every new session in the directory. Not a form: it stands in one. */
export function AddSkills({ onAdd }: { onAdd: (name: string, config: Record<string, unknown>) => Promise<boolean> }) {
  const [isOpen, setOpen] = useState(false);
  const [kind, setKind] = useState<Kind>("local");
  const [name, setName] = useState("");
  const [source, setSource] = useState("");
  const add = async (): Promise<void> => {
    if (!(await onAdd(name.trim(), { sources: [{ type: kind, source: source.trim() }] }))) return;
    setOpen(false);
    setName("");
    setSource("");
  };
  return (
    <div className="mcp-servers skills-of">
      {isOpen && (
        <fieldset aria-label="New skills">
          <select aria-label="Where the skills are" value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
            <option value="local">Folder</option>
            <option value="github">GitHub</option>
            <option value="git">Git</option>
          </select>
          <input aria-label="Name of the skills" placeholder="Name" value={name} onChange={(event) => setName(event.target.value)} />
          <button type="button" className="quiet icon-button" aria-label="Add no skills" onClick={() => setOpen(false)}>
            <Icon name="close" />
          </button>
          <input className="mono target" aria-label="Source of the skills" placeholder={PLACES[kind]} value={source} onChange={(event) => setSource(event.target.value)} />
        </fieldset>
      )}
      <button type="button" className="small" disabled={isOpen && (name.trim() === "" || source.trim() === "")} onClick={() => (isOpen ? void add() : setOpen(true))}>
        <Icon name="add" size={14} />
        {isOpen ? "Add to this directory" : "Add skills"}
      </button>
    </div>
  );
}
