import { Component, type ReactNode } from "react";

interface Props {
  /** What it is called where it could not be shown. */
  what: string;
  children: ReactNode;
}

/** What agents send may be shaped as nobody foresaw: then this part says so, and the rest of the page goes on. */
export class Boundary extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <p className="error-line" role="alert">
        {this.props.what} cannot be shown: {error.message}. The protocol view has it as it was sent.
      </p>
    );
  }
}
