import { render } from "preact";
import { embedded, studies } from "./embedded.ts";
import { local } from "./engine/local.ts";
import { App } from "./view/app.tsx";

const { module, worker } = embedded();
const home = document.getElementById("app")!;
home.replaceChildren();
// Inside a page of the documentation the studio shows one path.
if (window !== window.top) document.documentElement.classList.add("embedded");
render(<App module={module} worker={worker} local={local()} studies={studies} />, home);
