import { createRoot } from "react-dom/client";
import { App } from "./App";
import { applyTheme } from "./state/theme";
import "./style.css";

applyTheme();
createRoot(document.getElementById("root") as HTMLElement).render(<App />);
