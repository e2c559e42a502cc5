import { createRoot } from "react-dom/client";
import "./styles/tokens.css";
import "./styles/base.css";
import { App } from "./App";
import { applyTheme } from "./state/theme";

applyTheme();
createRoot(document.getElementById("root") as HTMLElement).render(<App />);
