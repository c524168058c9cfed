import { render } from "preact";
import { embedded, served } from "./embedded.ts";
import { App } from "./view/app.tsx";

const { module, worker } = embedded();
const home = document.getElementById("app")!;
home.replaceChildren();
render(<App module={module} worker={worker} served={served()} />, home);
