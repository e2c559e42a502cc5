import type { NodeView } from "sandbox-agent-client";
import { useEffect, useState } from "react";
import { ago, Empty, ErrorLine, Status } from "../parts/small";
import { nodeList } from "../state/nodes";
import { reasonOf } from "../state/server";
import { useStore } from "../state/store";
import "./NodesView.css";

const TONES = { up: "good", draining: "busy", gone: "bad" } as const;
const WORDS = { up: "Up", draining: "Draining", gone: "Gone" } as const;

/** The servers of a cluster: which are up, what each has, and taking one out of service. */
export function NodesView() {
  const { nodes, error } = useStore(nodeList);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => nodeList.watch(), []);
  useEffect(() => {
    document.title = "Nodes · Sandbox Agent";
  }, []);
  const change = (node: NodeView): void => {
    setFailure(null);
    const done = node.state === "draining" ? nodeList.resume(node.id) : nodeList.drain(node.id);
    done.catch((reason: unknown) => setFailure(reasonOf(reason)));
  };
  return (
    <main className="nodes-page">
      <header className="page-header">
        <h1>Nodes</h1>
      </header>
      <ErrorLine text={failure ?? error} />
      {nodes.length === 0 && error === null && (
        <Empty title="This server stands alone">
          <p className="muted">Servers that share a PostgreSQL database and a cluster token are listed here.</p>
        </Empty>
      )}
      {nodes.length > 0 && (
        <div className="nodes" tabIndex={0} role="region" aria-label="Nodes">
          <table>
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col">State</th>
                <th scope="col">Sessions</th>
                <th scope="col">Version</th>
                <th scope="col">Started</th>
                <th scope="col">
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {nodes.map((node) => (
                <Row key={node.id} node={node} onChange={() => change(node)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </main>
  );
}

function Row({ node, onChange }: { node: NodeView; onChange: () => void }) {
  return (
    <tr>
      <th scope="row">
        <span className="name">
          {node.id}
          {node.isSelf && <span className="muted"> (this one)</span>}
        </span>
        <code>{node.url || "no address for other nodes"}</code>
      </th>
      <td>
        <Status tone={TONES[node.state]}>{WORDS[node.state]}</Status>
      </td>
      <td>{node.sessions.toLocaleString("en")}</td>
      <td>{node.version}</td>
      <td>
        <time dateTime={node.startedAt} title={node.startedAt}>
          {ago(node.startedAt)}
        </time>
      </td>
      <td>
        {node.state !== "gone" && (
          <button type="button" className="small" aria-label={`${node.state === "draining" ? "Resume" : "Drain"} ${node.id}`} onClick={onChange}>
            {node.state === "draining" ? "Resume" : "Drain"}
          </button>
        )}
      </td>
    </tr>
  );
}
